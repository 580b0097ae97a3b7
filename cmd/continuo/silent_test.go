package main

import (
	"regexp"
	"strings"
	"testing"
)

// A device that cannot be reached has not drifted: the command says so in its own words, and what was asked for is
// done when the device comes back.
func TestAskADeviceThatIsAway(t *testing.T) {
	b := newBench(t)
	b.up("--device", "pi-1")
	code, out, errs := b.run("plan", "pi-1", "--timeout", "300ms")
	if code != 1 || out != "" || !strings.Contains(errs, "pi-1 has not answered within 300ms, and was never heard of: its name may be wrong; that it cannot be reached says nothing about drift") {
		t.Errorf("plan: exit %d: %s%s", code, out, errs)
	}
	code, out, errs = b.run("restore", "pi-1", "nothing", "--confirm", "--timeout", "300ms")
	id := regexp.MustCompile("operation (" + uuid + ") is valid until").FindStringSubmatch(errs)
	if code != 1 || out != "" || id == nil || !strings.Contains(errs, "continuo receipts pi-1 "+id[1]) || !strings.Contains(errs, "--operation "+id[1]+" --expires 20") {
		t.Fatalf("restore: exit %d: %s%s", code, out, errs)
	}
	first := errs
	code, _, errs = b.run("adopt", "pi-1", "kiosk", "--confirm", "--timeout", "300ms")
	if code != 1 || !strings.Contains(errs, "it has not answered operation "+id[1]) || !strings.Contains(errs, "--replace") {
		t.Errorf("another one: exit %d: %s", code, errs)
	}
	if code, _, errs := b.run("receipts", "pi-1", id[1]); code != 1 || !strings.Contains(errs, "pi-1 has not sent it") {
		t.Errorf("no receipt yet: exit %d: %s", code, errs)
	}

	b.device("pi-1")
	// The same command again, as the message says, waits for the same operation.
	until := regexp.MustCompile(`--expires (\S+)`).FindStringSubmatch(first)
	code, out, errs = b.run("restore", "pi-1", "nothing", "--confirm", "--operation", id[1], "--expires", until[1])
	if code != 1 || !strings.Contains(out, "receipt "+id[1]+": restore refused: no_backup") {
		t.Errorf("it came back: exit %d: %s%s", code, out, errs)
	}
	if code, out, errs := b.run("receipts", "pi-1", id[1]); code != 0 || !strings.Contains(out, "no_backup") {
		t.Errorf("the receipt: exit %d: %s%s", code, out, errs)
	}
}
