package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/cmd/internal/golden"
	"github.com/continuo-fleet/continuo/fleet"
)

// open waits until so many requests are open.
func (b *bench) open(n int) {
	b.t.Helper()
	code := min(n, 1)
	for late := time.Now().Add(20 * time.Second); ; {
		if got, out, _ := b.run("requests", "-o", "json"); got == code && strings.Count(out, `"decision"`) == n {
			return
		} else if time.Now().After(late) {
			b.t.Fatalf("never %d requests: exit %d: %s", n, got, out)
		}
	}
}

// What waits is a request that everybody who may look sees; who signs for it lets exactly that happen, and who rejects it
// ends it: S05, S47, S49, X83.
func TestRequests(t *testing.T) {
	b := newBench(t)
	b.up("--device", "pi-1", "--device", "pi-2")
	pi := b.device("pi-1")
	s := &story{bench: b}
	b.run("publish", b.write("m.yaml", guarded), "--confirm", "--wait")
	s.step("nothing waits", 0, "requests")
	gone := strings.NewReplacer("id: motd,", "id: motd, decommission: true,", "id: conf,", "id: conf, decommission: true,").Replace(guarded)
	b.run("publish", b.write("gone.yaml", gone), "--confirm", "--wait")
	b.open(2) // what a device asks for and its status travel apart
	s.step("two wait", 1, "requests")
	s.step("the same list", 1, "approve")
	s.step("of another device", 0, "requests", "pi-2")
	all := document[fleet.Requests](b, 1, "requests")
	ids := map[string]string{}
	for _, q := range all.Open {
		ids[string(q.Action.Score)] = q.ID
	}
	if len(ids) != 2 {
		t.Fatalf("%+v", all)
	}
	s.step("look at one", 0, "approve", ids["motd"][:8], "--actor", "ann@desk")
	if _, there := pi.mem.Read("/etc/motd"); !there {
		t.Fatal("a preview removed it")
	}
	// Who has no key here writes it down for others.
	held := filepath.Join(b.dir, "held.json")
	if code, _, errs := b.run("approve", ids["motd"], "--out", held, "--unsigned"); code != 0 {
		t.Errorf("exit %d: %s", code, errs)
	}
	if e, err := fleet.ReadEnvelope(held); err != nil || len(e.Signatures) != 0 {
		t.Errorf("%d signatures, %v", len(e.Signatures), err)
	} else if signed, err := fleet.ReadSigned(e); err != nil || signed.Operation == nil || signed.Operation.Approvals[0].Request != ids["motd"] {
		t.Errorf("%+v, %v", signed, err)
	}
	// Whoever signs it is told whether it is a yes or a no.
	for words, args := range map[string][]string{"  lets decommission kiosk/motd": nil, "  says no to decommission kiosk/motd": {"--reject"}} {
		if code, _, errs := b.run(append([]string{"approve", ids["motd"], "--out", held, "--unsigned"}, args...)...); code != 0 {
			t.Errorf("exit %d: %s", code, errs)
		}
		if _, out, _ := b.run("sign", held); !strings.Contains(out, words) {
			t.Errorf("want %q in\n%s", words, out)
		}
	}
	if code, _, _ := b.run("approve", ids["motd"], "--unsigned"); code != 2 {
		t.Errorf("--unsigned without a file: exit %d", code)
	}
	s.step("approve it", 0, "approve", ids["motd"], "pi-1", "--actor", "ann@desk", "--confirm")
	if _, there := pi.mem.Read("/etc/motd"); there {
		t.Error("it is still there")
	}
	b.open(1)
	s.step("it is no request any more", 1, "approve", ids["motd"], "--confirm")
	s.step("reject the other", 0, "approve", ids["conf"], "--reject", "--actor", "ann@desk", "--reason", "we need it", "--confirm")
	b.open(0)
	s.step("and none is left", 0, "requests")
	s.step("no id", 2, "approve", "pi-1")
	s.step("too few digits", 2, "approve", ids["conf"][:7])
	if _, there := pi.mem.Read("/etc/kiosk.conf"); !there {
		t.Error("what was rejected is gone")
	}
	if code, out, _ := b.run("status", "pi-1"); code != 1 || !strings.Contains(out, "rejected by ann@desk at ") {
		t.Errorf("exit %d: %s", code, out)
	}
	golden.Check(t, "requests.txt", masked(s.all.String()))
}
