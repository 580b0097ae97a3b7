package main

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
)

// What a command says to do next is true, and is there where it is needed.
func TestHints(t *testing.T) {
	b := newBench(t)
	b.up("--device", "pi-1", "--device", "pi-2")
	pi := b.device("pi-1")
	other := strings.ReplaceAll(strings.Replace(good, "kiosk}", "other}", 1), "/etc/kiosk.conf", "/etc/other.conf")
	says := func(code int, want string, args ...string) {
		t.Helper()
		got, out, errs := b.run(args...)
		if got != code || !strings.Contains(out+errs, want) {
			t.Errorf("%s: exit %d, want %d and %q:\n%s%s", strings.Join(args, " "), got, code, want, out, errs)
		}
	}
	b.run("publish", b.write("m.yaml", strings.Replace(guarded, "preset: guarded", "preset: reviewed", 1)), "--confirm", "--wait")
	first := document[interpret.Plan](b, 1, "plan", "pi-1")
	says(0, "every action of it is done then; all of it is refused if anything has changed since 20", "install", "pi-1", "--plan", first.ID)
	says(0, "published; what comes of it: continuo status pi-1 --wait", "publish", b.write("other.yaml", other), "--confirm")
	says(0, "it would be refused: the plan is for generation 1, and 2 is published; ask for a new one: continuo plan pi-1", "install", "pi-1", "--plan", first.ID)
	b.run("status", "pi-1", "--wait")
	says(1, "continuo install pi-1 --plan", "install", "pi-1", "--plan", first.ID, "--confirm")
	now := document[interpret.Plan](b, 1, "plan", "pi-1")
	b.run("install", "pi-1", "--plan", now.ID, "--confirm")
	says(1, "nothing was done, and nothing is to be done: the device is as it should be", "install", "pi-1", "--plan", now.ID, "--confirm")

	says(0, `pi-1 has not reported any of them, did you mean "kiosk"?: it would be refused`, "adopt", "pi-1", "kosk")
	says(0, "pi-1 has not reported any of them: it would be refused", "adopt", "pi-1", "kiosk", "nothing")
	says(0, "nothing was to be done", "adopt", "pi-1", "kiosk", "conf", "--confirm")

	// What is left over is named with the command that removes it.
	less := strings.Replace(guarded, "    - {kind: file, id: motd", "#", 1)
	b.run("publish", b.write("less.yaml", less), "--confirm", "--wait")
	left := document[interpret.Plan](b, 1, "plan", "pi-1")
	says(1, "continuo approve pi-1 --plan "+left.ID+" --action kiosk/motd --confirm", "plan", "pi-1")
	says(0, "none of it is done by that", "install", "pi-1", "--plan", left.ID)
	says(1, "nothing was done, and the plan of now has nothing that an install does", "install", "pi-1", "--plan", now.ID, "--confirm")
	says(1, "to let what is left over be removed, name it: --action kiosk/motd", "approve", "pi-1", "--plan", left.ID)
	says(0, "removed file:/etc/motd", "approve", "pi-1", "--plan", left.ID, "--action", "kiosk/motd", "--confirm")
	if _, there := pi.mem.Read("/etc/motd"); there {
		t.Error("what was approved is still there")
	}

	// Only of the last manifest it is said that none is left.
	if _, out, errs := b.run("unpublish", "pi-1", "other"); strings.Contains(errs, "no manifest is left") || !strings.Contains(out, "the device removes what it made for it") {
		t.Errorf("unpublish: %s%s", out, errs)
	}

	// A command without --replace does not offer it.
	b.run("adopt", "pi-2", "kiosk", "--confirm", "--timeout", "300ms")
	if code, _, errs := b.run("rollback-check", "pi-2", "--timeout", "300ms"); code != 1 || strings.Contains(errs, "--replace") || !strings.Contains(errs, "wait for it: continuo receipts pi-2 ") {
		t.Errorf("exit %d: %s", code, errs)
	}
	says(0, "pi-2 has sent no receipt; continuo status pi-2 says whether it is heard of", "history", "pi-2")
}
