package agent_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// many are ten services, ten containers and a hundred files, all of them with change in it.
func many(change string) (scores []score.Score) {
	for i := range 10 {
		s, c := service(score.ID(fmt.Sprint("app", i)), fmt.Sprintf("app%d.service", i)), container(score.ID(fmt.Sprint("web", i)), fmt.Sprint("web", i))
		app, web := s.Spec.(score.Service), c.Spec.(score.Container)
		app.UnitFile += "# " + change + "\n"
		web.Env = map[string]score.Value{"CHANGE": score.Text(change)}
		s.Spec, c.Spec = app, web
		scores = append(scores, s, c)
	}
	for i := range 100 {
		scores = append(scores, file(score.ID(fmt.Sprint("f", i)), fmt.Sprint("/etc/f", i), change))
	}
	return scores
}

// reloadsOf plays in, and counts the daemon-reloads of that.
func (r *rig) reloadsOf(in agent.Intent) (n int, st interpret.DeviceStatus) {
	r.t.Helper()
	before := r.dev.DaemonReloads()
	st = r.confirm(in)
	if st.State != interpret.StateConverged {
		r.t.Fatal(outcomes(st), st.Orphans)
	}
	return r.dev.DaemonReloads() - before, st
}

// However many units a pass makes, changes and removes, the service manager reads its definitions once for all of
// them, and never when nothing is to be done (cases 55).
func TestOneReloadForAPass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		begun := time.Now()
		for i, step := range []struct {
			what   string
			scores []score.Score
			want   int
		}{
			{"all is new", many("1"), 1},
			{"nothing is to be done", many("1"), 0},
			{"all changes", many("2"), 1},
			{"nothing is to be done again", many("2"), 0},
			{"all units go", many("2")[20:], 1},
			{"nothing is left to be done", many("2")[20:], 0},
		} {
			m := manifest("m", step.scores...)
			m.Metadata.Generation = uint64(i + 1)
			if n, _ := r.reloadsOf(intent(uint64(i+1), m)); n != step.want {
				t.Errorf("%s: %d daemon-reloads, want %d", step.what, n, step.want)
			}
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it took %s: somebody waited for nobody", took)
		}
		if left := r.dev.List("/etc/systemd/system"); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	})
}

// What is decommissioned goes with what is made.
func TestReloadOfWhatIsDecommissioned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		scores := many("1")[:20]
		wide := score.Policy{Preset: score.Converge, Brake: &score.Brake{MaxRemovals: new(20)}}
		r.reloadsOf(intent(1, under(wide, manifest("m", scores...))))
		for i := range 10 {
			scores[i].Decommission = true
		}
		for i := 10; i < 20; i++ {
			scores[i] = many("2")[i]
		}
		if n, _ := r.reloadsOf(intent(2, under(wide, manifest("m", scores...)))); n > 2 {
			t.Errorf("ten that go and ten that change cost %d daemon-reloads", n)
		}
	})
}

// A plain unit that is new is read when it is started; that it is enabled is told once for all, at the end. A chain of new containers costs
// one reload for each of them, as each is defined when what it needs is up.
func TestReloadsOfChains(t *testing.T) {
	chain := func(of func(i int) score.Score) (scores []score.Score) {
		for i := range 5 {
			s := of(i)
			if i > 0 {
				s.After = []score.ID{scores[i-1].ID}
			}
			scores = append(scores, s)
		}
		return scores
	}
	app := func(i int) score.Score {
		return service(score.ID(fmt.Sprint("app", i)), fmt.Sprintf("app%d.service", i))
	}
	for _, tt := range []struct {
		what string
		of   func(i int) score.Score
		want int
	}{
		{"services", app, 1},
		{"services that are not enabled", func(i int) score.Score {
			s := app(i)
			spec := s.Spec.(score.Service)
			spec.Enabled = nil
			s.Spec = spec
			return s
		}, 0},
		{"containers", func(i int) score.Score {
			return container(score.ID(fmt.Sprint("web", i)), fmt.Sprint("web", i))
		}, 5},
	} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			if n, _ := r.reloadsOf(intent(1, manifest("m", chain(tt.of)...))); n != tt.want {
				t.Errorf("a chain of five %s costs %d daemon-reloads, want %d", tt.what, n, tt.want)
			}
		})
	}
}

// A start that takes long holds up the others for a moment, and a stop ends the wait.
func TestSlowStartHoldsUpNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, stop := r.running()
		r.dev.Before(func(ctx context.Context, c memory.Call) error {
			if c.Op == memory.OpStart && c.Resource == "unit:slow.service" {
				select {
				case <-time.After(10 * time.Minute):
				case <-ctx.Done():
				}
			}
			return ctx.Err()
		})
		slow := service("slow", "slow.service")
		offer(t, h, intent(1, manifest("m", slow, container("web", "web"), service("app", "app.service"))))
		later(5 * time.Second)
		if c := r.dev.Config("web"); c.Name == "" {
			t.Error("the container waits for the slow service")
		}
		if n := r.dev.DaemonReloads(); n != 1 {
			t.Errorf("%d daemon-reloads", n)
		}
		later(time.Hour)
		if st := f.last(); st.State != interpret.StateConverged {
			t.Error(outcomes(st))
		}
		begun := time.Now()
		stop()
		if took := time.Since(begun); took > time.Second {
			t.Errorf("stopping took %s", took)
		}
	})
}

// What was written and not read when the agent was killed, or stopped, is read by the next one.
func TestReloadIsMadeUpFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, _, h, stop := r.running()
		var asked []topology.Resource
		r.dev.Before(func(ctx context.Context, c memory.Call) error {
			if c.Op == memory.OpService && slices.Contains(asked, c.Resource) { // the look after the definition
				<-ctx.Done()
			}
			if c.Op == memory.OpDefine {
				asked = append(asked, c.Resource)
			}
			return ctx.Err()
		})
		offer(t, h, intent(1, manifest("m", service("app", "app.service"), container("web", "web"))))
		later(time.Second)
		stop()
		r.dev.Before(nil)
		r.restart()
		_, f, _, _ := r.running()
		later(time.Minute)
		if st := f.last(); st.State != interpret.StateConverged {
			t.Error(outcomes(st))
		}
	})
}
