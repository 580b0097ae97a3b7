package main

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/cmd/internal/golden"
	"github.com/continuo-fleet/continuo/interpret"
)

// What can be undone by nobody happens when an approval is signed for exactly that, and not before: S17.
func TestApprove(t *testing.T) {
	b := newBench(t)
	b.up("--device", "pi-1")
	pi := b.device("pi-1")
	s := &story{bench: b}
	b.run("publish", b.write("m.yaml", guarded), "--confirm", "--wait")
	gone := strings.Replace(guarded, "id: motd,", "id: motd, decommission: true,", 1)
	s.step("publish a decommission", 1, "publish", b.write("gone.yaml", gone), "--confirm", "--wait")
	id := s.plan("plan", 1)
	ask := func(args ...string) []string {
		return append([]string{"approve", "pi-1", "--plan", id, "--actor", "ann@desk"}, args...)
	}
	s.step("an action that the plan does not have", 2, ask("--action", "kiosk/conf2")...)
	s.step("without consent", 0, ask()...)
	s.step("the first digits are enough", 0, "approve", "pi-1", "--plan", id[:8], "--actor", "ann@desk")
	s.step("fewer are not", 2, "approve", "pi-1", "--plan", id[:7])
	if _, there := pi.mem.Read("/etc/motd"); !there {
		t.Fatal("a preview removed it")
	}
	s.step("approve", 0, ask("--action", "kiosk/motd", "--confirm")...)
	if _, there := pi.mem.Read("/etc/motd"); there {
		t.Error("it is still there")
	}
	s.step("digits that no plan begins with", 1, "install", "pi-1", "--plan", "00000000", "--confirm")
	s.step("a plan that nobody made", 1, "approve", "pi-1", "--plan", strings.Repeat("0", 64), "--confirm")
	golden.Check(t, "approve.txt", masked(s.all.String()))
}

// The first digits of a plan are enough if only one begins with them.
func TestPlanByItsFirstDigits(t *testing.T) {
	of := func(id string) interpret.Receipt { return interpret.Receipt{Plan: &interpret.Plan{ID: id}} }
	all := []interpret.Receipt{of("aaaaaaaa11"), {}, of("aaaaaaaa11"), of("aaaaaaab22"), of("aaaaaaab33")}
	if p, known, err := planOf(all, "aaaaaaaa"); p.ID != "aaaaaaaa11" || !known || err != nil {
		t.Errorf("%+v, %v, %v", p, known, err)
	}
	if _, known, err := planOf(all, "aaaaaaac"); known || err != nil {
		t.Errorf("%v, %v", known, err)
	}
	if _, known, err := planOf(all, "aaaaaaab"); known || err == nil || !strings.Contains(err.Error(), "give more digits") {
		t.Errorf("%v, %v", known, err)
	}
}

// The last manifest of a device is not removed by a slip: what it made goes when somebody has signed for that.
func TestUnpublishTheLast(t *testing.T) {
	b := newBench(t)
	b.up("--device", "pi-1")
	pi := b.device("pi-1")
	if code, out, errs := b.run("publish", b.write("m.yaml", good), "--confirm", "--wait"); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	code, out, errs := b.run("unpublish", "pi-1", "kiosk")
	if code != 0 || !strings.Contains(out, "conf (file, file:/etc/kiosk.conf): the device removes what it made for it") ||
		!strings.Contains(errs, "no manifest is left for this device: it removes nothing before an approval is signed") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	b.run("unpublish", "pi-1", "kiosk", "--confirm")
	if code, out, _ := b.run("status", "pi-1", "--wait"); code != 1 || !strings.Contains(out, "pending") || !strings.Contains(out, "kiosk.conf of kiosk/conf is left over: more would be removed") {
		t.Errorf("what waits for a signature counts as converged: exit %d: %s", code, out)
	}
	code, out, errs = b.run("plan", "pi-1")
	id := planID.FindStringSubmatch(out)
	if code != 1 || id == nil || !strings.Contains(out, "pending: brake") || !strings.Contains(errs, "to approve what waits for a signature: continuo approve pi-1 --plan") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	if _, there := pi.mem.Read("/etc/kiosk.conf"); !there {
		t.Fatal("it is gone already")
	}
	code, out, errs = b.run("approve", "pi-1", "--plan", id[1], "--confirm")
	if _, there := pi.mem.Read("/etc/kiosk.conf"); code != 0 || there {
		t.Errorf("exit %d, there: %v: %s%s", code, there, out, errs)
	}
	if code, out, _ := b.run("plan", "pi-1"); code != 0 || !strings.Contains(out, "nothing differs") {
		t.Errorf("exit %d: %s", code, out)
	}
}
