package agent_test

import (
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// What somebody wrote by hand into a file of ours is kept before a plan that a person confirmed overwrites it, and the receipt
// names the copy; what was there before the file was ours stays what comes back when its score goes (G05, G38).
func TestInstallKeepsWhatItOverwrites(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		r.dev.Put("/etc/a", "theirs")
		pol := score.Policy{Preset: score.Reviewed}
		offer(t, h, intent(1, under(pol, manifest("m", file("a", "/etc/a", "ours"))), manifest("n", file("n", "/etc/n", "1"))))
		install := func() interpret.ReceiptAction {
			t.Helper()
			later(time.Minute)
			plan := f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
			rc := f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: plan.ID})
			if rc.Result != interpret.ResultDone || len(rc.Actions) != 1 {
				t.Fatalf("got %+v", rc)
			}
			return rc.Actions[0]
		}
		holds := func(backup, want string) {
			t.Helper()
			if _, content, err := r.store.ReadBackup(backup); err != nil || string(content) != want {
				t.Errorf("backup %q holds %q, %v; want %q", backup, content, err, want)
			}
		}
		first := install()
		holds(first.Backup, "theirs")
		r.dev.Put("/etc/a", "by hand")
		second := install()
		r.content("/etc/a", "ours")
		holds(second.Backup, "by hand")
		if e, _ := r.store.Owner("file:/etc/a"); e.Backup != first.Backup {
			t.Errorf("what would come back is %q, not %q", e.Backup, first.Backup)
		}
		r.dev.Delete("/etc/a")
		if third := install(); third.Backup != "" {
			t.Errorf("nothing was there, and backup %q is named", third.Backup)
		}
	})
}
