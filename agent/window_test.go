package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// Windows: changes wait for their time, and a person may not (X103).
func TestWindow(t *testing.T) {
	bubble(t, func(t *testing.T) { // begins at midnight UTC
		time.Local = time.UTC
		r := newRig(t)
		_, f, h, _ := r.running()
		pol := score.Policy{Preset: score.Converge, Window: &score.Window{Cron: "0 2 * * *", Duration: score.Duration(2 * time.Hour)}}
		offer(t, h, intent(1, under(pol, manifest("m", file("a", "/etc/a", "1")))))
		later(time.Hour)
		st := f.last()
		r.want(st, "m/a=pending/pending_window")
		if s := st.Manifests[0].Scores[0]; !strings.HasSuffix(s.Message, ", which opens at 2000-01-01T02:00:00Z") {
			t.Errorf("it says %q", s.Message)
		}
		later(time.Hour + time.Second)
		r.content("/etc/a", "1")
		later(3 * time.Hour)
		r.dev.Put("/etc/a", "drift")
		later(time.Hour)
		r.want(f.last(), "m/a=pending/pending_window")
		plan := f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
		f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: plan.ID})
		r.content("/etc/a", "1")
	})
}

// A window that opens while a pass is under way is not missed, and several windows have to be open at once (X103).
func TestWindowOpensDuringAPass(t *testing.T) {
	bubble(t, func(t *testing.T) { // begins at midnight UTC
		time.Local = time.UTC
		r := newRig(t)
		_, f, h, _ := r.running(func(c *agent.Config) { c.Relist = 24 * time.Hour })
		r.dev.Before(func(_ context.Context, c memory.Call) error {
			if c.Op == memory.OpFile && c.Resource == "file:/etc/slow" {
				time.Sleep(5 * time.Minute)
			}
			return nil
		})
		m := under(score.Policy{Preset: score.Converge, Window: &score.Window{Cron: "2 0 * * *", Duration: score.Duration(2 * time.Hour)}},
			manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1")))
		m.Spec.Scores[1].Policy = &score.Policy{Window: &score.Window{Cron: "0 1 * * *", Duration: score.Duration(10 * time.Minute)}}
		offer(t, h, intent(1, m, manifest("n", file("slow", "/etc/slow", "1"))))
		later(30 * time.Minute)
		r.content("/etc/a", "1")
		r.want(f.last(), "m/a=unchanged m/b=pending/pending_window n/slow=unchanged")
		later(45 * time.Minute)
		r.content("/etc/b", "1")
		r.dev.Before(nil)
	})
}
