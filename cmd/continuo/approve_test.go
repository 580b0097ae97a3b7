package main

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/cmd/internal/golden"
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
	if _, there := pi.mem.Read("/etc/motd"); !there {
		t.Fatal("a preview removed it")
	}
	s.step("approve", 0, ask("--action", "kiosk/motd", "--confirm")...)
	if _, there := pi.mem.Read("/etc/motd"); there {
		t.Error("it is still there")
	}
	s.step("a plan that nobody made", 1, "approve", "pi-1", "--plan", strings.Repeat("0", 64), "--confirm")
	golden.Check(t, "approve.txt", masked(s.all.String()))
}
