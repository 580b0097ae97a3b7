package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/cmd/internal/golden"
	"github.com/continuo-fleet/continuo/interpret"
)

// guarded claims a file that is there already, and one that is not.
const guarded = `apiVersion: continuo/v1
kind: Manifest
metadata: {name: kiosk}
spec:
  target: {device: pi-1}
  policy: {preset: guarded}
  scores:
    - {kind: file, id: conf, spec: {path: /etc/kiosk.conf, content: "url=https://example.org\n", mode: "0644"}}
    - {kind: file, id: motd, spec: {path: /etc/motd, content: "Managed.\n", mode: "0644"}}
`

const uuid = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(uuid), "UUID"},
	{regexp.MustCompile(`pass-[A-Z2-7]{26}`), "pass-ID"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "DIGEST"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\d{8}T\d{6}Z`), "TIME"},
	{regexp.MustCompile(`reported TIME`), "alive"}, // the first heartbeat may have come before there was anybody to hear it
	{regexp.MustCompile(`  +`), "  "},
	{regexp.MustCompile(`(?m) +$`), ""},
	// the device may have looked once more, and found nothing to change
	{regexp.MustCompile(`motd  file  changed  standing:guarded  intent\n  present: false → true`), "motd  file  unchanged  standing:guarded"},
}

// masked takes out what is another in every run.
func masked(s string) string {
	for _, m := range masks {
		s = m.pattern.ReplaceAllString(s, m.with)
	}
	return s
}

var planID = regexp.MustCompile(`(?m)^plan ([0-9a-f]{64})$`)

// A story is a row of commands on one bench, and what they said.
type story struct {
	*bench
	all strings.Builder
}

func (s *story) step(title string, want int, args ...string) (stdout string) {
	s.t.Helper()
	code, out, errs := s.run(args...)
	if code != want {
		s.t.Errorf("%s: exit %d, want %d: %s%s", title, code, want, out, errs)
	}
	s.all.WriteString("# " + title + "\n$ continuo " + args[0] + "\n" + out + errs + "\n")
	return out
}

func (s *story) plan(title string, want int) (id string) {
	s.t.Helper()
	m := planID.FindStringSubmatch(s.step(title, want, "plan", "pi-1", "--actor", "ann@desk"))
	if m == nil {
		s.t.Fatalf("%s: no plan", title)
	}
	return m[1]
}

// From a foreign file to a plan, its installation, its receipt, what is left over and what is put back, with the
// commands that an operator types: G26, G29, G32, G40, X61, X71, cases 155, 162.
func TestPlanInstallAndReceipts(t *testing.T) {
	b := newBench(t)
	b.up("--device", "pi-1")
	pi := b.device("pi-1")
	pi.mem.Put("/etc/kiosk.conf", "url=http://old.example\n")
	s := &story{bench: b}
	ask := func(args ...string) []string { return append(args, "--actor", "ann@desk") }

	s.step("publish", 1, "publish", b.write("m.yaml", guarded), "--confirm", "--wait")
	if got, _ := pi.mem.Read("/etc/kiosk.conf"); got != "url=http://old.example\n" {
		t.Fatalf("the foreign file is %q", got)
	}
	id := s.plan("plan", 1)
	s.step("install, without consent", 0, ask("install", "pi-1", "--plan", id)...)
	if got, _ := pi.mem.Read("/etc/kiosk.conf"); got != "url=http://old.example\n" {
		t.Fatalf("a preview made it %q", got)
	}

	// somebody's hands between the plan and the consent
	pi.mem.Put("/etc/kiosk.conf", "url=http://other.example\n")
	out := s.step("install what is not the plan any more", 1, ask("install", "pi-1", "--plan", id, "--confirm")...)
	m := planID.FindStringSubmatch(out)
	if m == nil || m[1] == id || !strings.Contains(out, "plan_changed") {
		t.Fatalf("no plan of now: %s", out)
	}
	if got, _ := pi.mem.Read("/etc/kiosk.conf"); got != "url=http://other.example\n" {
		t.Fatalf("a plan that changed made it %q", got)
	}
	const op = "0f8fad5b-d9cb-469f-a165-70867728950e"
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	install := ask("install", "pi-1", "--plan", m[1], "--confirm", "--operation", op, "--expires", until, "--reason", "ticket 7")
	out = s.step("install the plan of now", 0, install...)
	if got, _ := pi.mem.Read("/etc/kiosk.conf"); got != "url=https://example.org\n" {
		t.Fatalf("after install it is %q", got)
	}
	backup := regexp.MustCompile(`kept as backup (\S+)`).FindStringSubmatch(out)
	if backup == nil {
		t.Fatalf("no backup: %s", out)
	}

	// the same operation again does nothing new, another one under its id is refused
	before := pi.mem.Identity("/etc/kiosk.conf")
	if _, again, _ := b.run(install...); again != out || pi.mem.Identity("/etc/kiosk.conf") != before {
		t.Errorf("the same operation again:\n%s\nnot\n%s", again, out)
	}
	if code, text, _ := b.run(append(install, "--reason", "ticket 8")...); code != 1 || !strings.Contains(text, string(interpret.ResultConflict)) {
		t.Errorf("another one under its id: exit %d: %s", code, text)
	}

	s.step("plan when all is well", 0, ask("plan", "pi-1")...)
	s.step("status", 0, "status", "pi-1", "--wait")
	s.step("receipt", 0, "receipts", "pi-1", op)
	s.step("rollback-check", 0, ask("rollback-check", "pi-1")...)
	s.step("release, without consent", 0, ask("release", "pi-1", "kiosk", "motd")...)
	s.step("release", 0, ask("release", "pi-1", "kiosk", "motd", "--confirm")...)
	s.step("adopt, without consent", 0, ask("adopt", "pi-1", "kiosk", "motd")...)
	s.step("adopt", 0, ask("adopt", "pi-1", "kiosk", "motd", "--confirm")...)
	s.step("adopt what is not there", 1, ask("adopt", "pi-1", "kiosk", "nothing", "--confirm")...)
	s.step("unpublish, without consent", 0, "unpublish", "pi-1", "kiosk")
	s.step("unpublish what is not there", 1, "unpublish", "pi-1", "kosk", "--confirm")
	s.step("unpublish", 0, "unpublish", "pi-1", "kiosk", "--confirm")
	s.step("what is left", 0, "status", "pi-1", "--wait")
	s.step("restore, without consent", 0, ask("restore", "pi-1", backup[1])...)
	s.step("restore", 0, ask("restore", "pi-1", backup[1], "--confirm")...)
	if got, _ := pi.mem.Read("/etc/kiosk.conf"); got != "url=http://other.example\n" {
		t.Errorf("after restore it is %q", got)
	}
	s.step("restore what is not there", 1, ask("restore", "pi-1", "nothing", "--confirm")...)
	golden.Check(t, "operate.txt", masked(s.all.String()))
}
