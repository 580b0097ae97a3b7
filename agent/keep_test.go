package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// Old backups go, and never the newest, nor one that is in use.
func TestBackupsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		r.dev.Put("/etc/motd", "first")
		offer(t, h, intent(1, manifest("m", file("motd", "/etc/motd", "ours"))))
		later(time.Second)
		first := f.ask(t, h, interpret.Operation{Verb: interpret.VerbAdopt, Manifest: "m"}).Actions[0].Backup
		for range 20 { // putting one back keeps what is there
			later(time.Minute)
			f.ask(t, h, interpret.Operation{Verb: interpret.VerbRestore, Backup: first})
			r.dev.Put("/etc/motd", time.Now().String())
		}
		later(time.Hour)
		kept, err := r.store.Backups()
		if err != nil || len(kept) < 5 || len(kept) > 12 {
			t.Errorf("%d are kept, %v", len(kept), err)
		}
		if _, content, err := r.store.ReadBackup(first); err != nil || string(content) != "first" {
			t.Errorf("the one in use: %q, %v", content, err)
		}
	})
}

// A file of ours that somebody edited by hand holds what no manifest can make again: it is kept before it is removed, because it
// is absent or because that was asked for in words; one that is as it was written needs no copy (S13, G05).
func TestEditedFilesAreKeptBeforeTheyGo(t *testing.T) {
	pol := score.Policy{Preset: score.Converge, OnDrift: score.DriftReport}
	for _, explicit := range []bool{false, true} {
		for _, edited := range []bool{false, true} {
			r := newRig(t)
			x := file("x", "/etc/x", "ours")
			in := func(g uint64, scores ...score.Score) agent.Intent {
				m := under(pol, manifest("m", append(scores, file("a", "/etc/a", "1"))...))
				m.Metadata.Generation = g
				return intent(g, m)
			}
			r.apply(in(1, x))
			if edited {
				r.dev.Put("/etc/x", "by hand")
				r.apply(in(1, x))
			}
			x.Decommission = true
			var st interpret.DeviceStatus
			if explicit {
				st = r.confirm(in(2, x))
			} else {
				st = r.confirm(in(2))
			}
			kept, err := r.store.Backups()
			r.gone("/etc/x")
			if err != nil || len(kept) > 0 != edited || len(st.Orphans) > 0 {
				t.Fatalf("explicit %v, edited %v: kept %v, %v; left %+v", explicit, edited, kept, err, st.Orphans)
			}
			if edited {
				if b, content, err := r.store.ReadBackup(kept[0].Name); err != nil || b.Path != "/etc/x" || string(content) != "by hand" {
					t.Errorf("explicit %v: %+v holds %q, %v", explicit, b, content, err)
				}
				body, _, err := r.store.Receipt("by-hand")
				if err != nil || !strings.Contains(string(body), kept[0].Name) {
					t.Errorf("explicit %v: the receipt does not name %s, %v: %s", explicit, kept[0].Name, err, body)
				}
			}
		}
	}
}

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
