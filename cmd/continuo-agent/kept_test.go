package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/golden"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// put writes a file of the device by hand.
func (b *bench) put(path, content string) {
	b.t.Helper()
	file := filepath.Join(b.root, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) read(path string) string {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.root, path))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(content)
}

// everything is every file below a directory, with its content, but for the words that commands leave for the audit.
func everything(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "asked" {
			return filepath.SkipDir
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		st, serr := os.Stat(name)
		if serr == nil {
			all.WriteString(name + " " + st.ModTime().String() + " " + string(content) + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`by-hand-[A-Z2-7]{26}`), "by-hand-ID"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "DIGEST"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\d{8}T\d{6}Z`), "TIME"},
	{regexp.MustCompile(`(?m)  \S+:\S+  (\d{4})  /`), "  OWNER  $1  /"},
	{regexp.MustCompile(`  +`), "  "},
	{regexp.MustCompile(`(?m) +$`), ""},
}

func masked(s string) string {
	for _, m := range masks {
		s = m.pattern.ReplaceAllString(s, m.with)
	}
	return s
}

// What was overwritten is kept, listed and put back; every step is previewed, and has its receipt: G29, G38, G40, S25.
func TestBackupsReceiptsAndInventory(t *testing.T) {
	b := newBench(t)
	b.put("etc/kiosk.conf", "url=http://old.example\n")
	var all strings.Builder
	step := func(title string, want int, args ...string) (stdout string) {
		t.Helper()
		before := everything(t, b.root)
		code, out, errs := b.run(kiosk, append(args, "--root", b.root)...)
		if code != want {
			t.Errorf("%s: exit %d, want %d: %s", title, code, want, errs)
		}
		if !strings.Contains(strings.Join(args, " "), "--confirm") && everything(t, b.root) != before {
			t.Errorf("%s: something was written", title)
		}
		all.WriteString("# " + title + "\n$ continuo-agent " + args[0] + "\n" + out + errs + "\n")
		return out
	}
	step("nothing was kept yet", 0, "backups")
	step("nothing was done yet", 0, "receipts")
	step("nothing is owned yet", 0, "inventory")
	step("what would be overwritten", 0, "apply", "-f", "-")
	step("overwrite it", 0, "apply", "-f", "-", "--confirm")
	out := step("what was kept", 0, "backups")
	name := regexp.MustCompile(`kiosk\.conf\.\S+`).FindString(out)
	if name == "" {
		t.Fatal(out)
	}
	out = step("what was done", 0, "receipts")
	id := named.FindString(out)
	if got := step("one receipt", 0, "receipts", id); !strings.Contains(got, "-url=http://old.example") {
		t.Errorf("no diff: %s", got)
	}
	step("what is owned", 0, "inventory")
	if err := os.Remove(filepath.Join(b.root, "etc/motd")); err != nil {
		t.Fatal(err)
	}
	step("preview of putting it back", 0, "restore", name)
	step("put it back", 0, "restore", name, "--confirm")
	if got := b.read("etc/kiosk.conf"); got != "url=http://old.example\n" {
		t.Errorf("it is %q", got)
	}
	step("put it back again", 0, "restore", name, "--confirm")
	step("what is there of what is owned", 0, "inventory")
	step("what was kept then", 0, "backups")
	step("a backup that is not there", 1, "restore", "nothing", "--confirm")
	step("a receipt that is not there", 1, "receipts", "nothing")
	golden.Check(t, "kept.txt", masked(all.String()))

	code, out, _ := b.run("", "receipts", id, "-o", "json", "--root", b.root)
	var r interpret.Receipt
	if err := score.Decode([]byte(out), &r); code != 0 || err != nil || r.Verb != interpret.VerbInstall || len(r.Actions) != 2 || r.Actions[0].Backup != name {
		t.Errorf("exit %d: %v: %+v", code, err, r)
	}
}

// A running agent keeps its books to itself: looking at them works, and whoever wants to write is told what to do.
func TestRestoreBesideARunningAgent(t *testing.T) {
	b := newBench(t)
	b.put("etc/kiosk.conf", "old\n")
	if code, _, errs := b.apply(kiosk, "--confirm"); code != 0 {
		t.Fatal(errs)
	}
	books := b.open()
	defer books.Close()
	kept, err := books.Backups()
	if err != nil || len(kept) != 1 {
		t.Fatalf("%v, %v", kept, err)
	}
	for _, args := range [][]string{{"backups"}, {"receipts"}, {"inventory"}, {"restore", kept[0].Name}} {
		if code, out, errs := b.run("", append(args, "--root", b.root)...); code != 0 || out == "" {
			t.Errorf("%v: exit %d: %s%s", args, code, out, errs)
		}
	}
	code, _, errs := b.run("", "restore", kept[0].Name, "--confirm", "--root", b.root)
	if code != 1 || !strings.Contains(errs, "another agent is using it; stop that one first") ||
		!strings.Contains(errs, "or ask the agent that is running: continuo restore DEVICE "+kept[0].Name+" --confirm") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// The ceiling of a device holds for what is done by hand, too. Without its configuration there is none.
func TestCeilingByHand(t *testing.T) {
	b := newBench(t)
	b.put("etc/kiosk.conf", "old\n")
	if code, _, errs := b.apply(kiosk, "--confirm"); code != 0 {
		t.Fatal(errs)
	}
	books := b.open()
	kept, err := books.Backups()
	if err != nil || len(kept) != 1 {
		t.Fatalf("%v, %v", kept, err)
	}
	if err := books.Close(); err != nil {
		t.Fatal(err)
	}
	low := b.write("low.yaml", minimal+"ceiling: {paths: [/etc/motd]}\n")
	here := []string{"--config", low, "--root", b.root, "--state", filepath.Join(b.root, config.DefaultState)}
	b.put("etc/kiosk.conf", "by hand\n")
	code, out, _ := b.run(kiosk, append([]string{"apply", "-f", "-", "--confirm"}, here...)...)
	if code != 1 || !strings.Contains(out, "path_not_allowed") || b.read("etc/kiosk.conf") != "by hand\n" {
		t.Errorf("apply: exit %d: %s", code, out)
	}
	for _, more := range [][]string{nil, {"--confirm"}} {
		code, out, _ = b.run("", append(append([]string{"restore", kept[0].Name}, more...), here...)...)
		if code != 1 || !strings.Contains(out, "refused") || b.read("etc/kiosk.conf") != "by hand\n" {
			t.Errorf("restore %v: exit %d: %s", more, code, out)
		}
	}
	code, out, _ = b.run("", append([]string{"inventory"}, here...)...)
	if code != 0 || !strings.Contains(out, "changed") || strings.Contains(out, "unknown") {
		t.Errorf("inventory: exit %d: %s", code, out)
	}
	bad := b.write("bad.yaml", minimal+"ceiling: {paths: [etc]}\n")
	if code, _, errs := b.run(kiosk, "apply", "-f", "-", "--confirm", "--config", bad, "--root", b.root); code != cli.Invalid || !strings.Contains(errs, "ceiling") {
		t.Errorf("a ceiling that is wrong: exit %d: %s", code, errs)
	}
}

// Without -f a plan is about what the agent accepted last, and it makes no write at all, nor does any other command
// that only looks: H54, G25.
func TestPlanOfWhatWasAccepted(t *testing.T) {
	b := newBench(t)
	trusting := b.accept(kiosk)
	state := filepath.Join(b.root, config.DefaultState)
	b.put("etc/motd", "mine\n")
	before := everything(t, b.root)
	run := func(args ...string) (int, string, string) {
		return b.run("", append(args, "--config", trusting, "--root", b.root, "--state", state)...)
	}
	code, out, errs := run("plan", "-o", "json")
	var p interpret.Plan
	if err := score.Decode([]byte(out), &p); code != 1 || err != nil || p.Generation != 3 || p.Device != "pi-7" || len(p.Actions) != 2 || len(p.ID) != 64 {
		t.Errorf("exit %d: %v: %s%s", code, err, out, errs)
	}
	if p.Actions[1].Provenance != interpret.Foreign || p.Actions[0].Action != interpret.ActionCreate {
		t.Errorf("got %+v", p.Actions)
	}
	if code, again, _ := run("plan"); code != 1 || !strings.Contains(again, "plan "+p.ID+"\n") {
		t.Errorf("the same device gives another plan: exit %d: %s", code, again)
	}
	for _, args := range [][]string{{"status"}, {"backups"}, {"receipts"}, {"inventory"}, {"rollback-check"}} {
		if _, out, errs := run(args...); out == "" {
			t.Errorf("%v: %s", args, errs)
		}
	}
	if everything(t, b.root) != before {
		t.Error("something was written")
	}
	if code, _, errs := b.run("", "plan", "--config", b.write("agent.yaml", minimal), "--root", b.root, "--state", b.dir+"/none"); code != 1 || !strings.Contains(errs, "nothing was accepted yet") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if code, _, errs := run("rollback-check", "x"); code != cli.Invalid {
		t.Errorf("exit %d: %s", code, errs)
	}
	// A rollback that nothing could be done of is found before it is needed: X61.
	back := b.accept(strings.Replace(kiosk, "preset: converge", "preset: converge, onFailure: rollBack", 1))
	code, out, _ = b.run("", "rollback-check", "--config", back, "--root", b.root, "--state", state)
	if code != 1 || !strings.Contains(out, "no version of this manifest was good yet") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// asks are the commands that change nothing of a device.
var asks = map[string]bool{
	"completion": true, "help": true, "info": true, "kinds": true, "unit": true, "version": true, "plan": true, "status": true,
	"inventory": true, "export": true, "backups": true, "receipts": true, "rollback-check": true, "secrets": true,
	"run":       true, // the agent, under the policies that were signed
	"enroll":    true, // an operator consents to it: it writes a configuration where there is none
	"job-ended": true, // run by the service manager, to keep how a job ended
	"revert":    true, // run by the timer of a checkpoint, that a change which was allowed does not cut the device off
}

// Every command either changes nothing, or has --confirm: G29. That those preview is shown above.
func TestChangingCommandsAskForConsent(t *testing.T) {
	root := newRoot()
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	seen := ""
	for _, c := range root.Commands() {
		if confirm := c.Flags().Lookup("confirm") != nil; confirm == asks[c.Name()] {
			t.Errorf("%s: has --confirm: %v", c.Name(), confirm)
		} else if confirm {
			seen += " " + c.Name()
		}
	}
	if seen != " apply restore" {
		t.Errorf("those that change something are%s", seen)
	}
}
