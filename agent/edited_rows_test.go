package agent_test

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

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
