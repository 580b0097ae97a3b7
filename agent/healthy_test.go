package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// probedApp is a service that listens on port 80, or should.
func probedApp(h score.Health) score.Score {
	s := service("app", "app.service")
	s.Health = &h
	return s
}

func port80() *score.Probe {
	return &score.Probe{TCP: &score.TCPProbe{Port: 80}, Period: score.Duration(10 * time.Second), FailureThreshold: 2}
}

// What comes after a score that is not ready is not touched until it is, and so long the generation has not converged (H64).
func TestReadinessGates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		offer(t, h, intent(1, manifest("m", probedApp(score.Health{Readiness: port80()}), file("b", "/etc/b", "1", "app"), file("c", "/etc/c", "1"))))
		later(10 * time.Minute)
		st := f.last()
		b, _ := scoreOf(st, "m", "b")
		if app, _ := scoreOf(st, "m", "app"); app.Code != interpret.CodeUnhealthy || app.Conditions.Healthy == nil || *app.Conditions.Healthy {
			t.Errorf("app: %+v", app)
		}
		if b.Outcome != interpret.Waiting || b.Code != interpret.CodeDependency || !strings.Contains(b.Message, `"app"`) || st.ConvergedAt(1) || st.State != interpret.StateConverging {
			t.Errorf("b: %s %s %q, state %s", b.Outcome, b.Code, b.Message, st.State)
		}
		r.gone("/etc/b")
		r.content("/etc/c", "1")
		r.dev.Listen("127.0.0.1:80", memory.Endpoint{})
		later(11 * time.Second)
		r.content("/etc/b", "1")
		if st := f.last(); !st.ConvergedAt(1) {
			t.Errorf("when it is ready: %s", outcomes(st))
		}
	})
}

// What hangs is started again, with longer and longer pauses; and not at all where drift is only reported (H64, S18).
func TestLivenessRestarts(t *testing.T) {
	for _, on := range []score.OnDrift{score.DriftCorrect, score.DriftReport} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			_, f, h, _ := r.running()
			r.dev.Listen("127.0.0.1:80", memory.Endpoint{})
			offer(t, h, intent(1, under(score.Policy{Preset: score.Converge, OnDrift: on}, manifest("m", probedApp(score.Health{Liveness: port80()})))))
			later(10 * time.Minute)
			if st := f.last(); !st.ConvergedAt(1) {
				t.Fatalf("%s: %s", on, outcomes(st))
			}
			restarts := r.timed(memory.OpRestart, nil)
			r.dev.Unlisten("127.0.0.1:80")
			later(2 * time.Hour)
			if on == score.DriftReport {
				if n := restarts.number(); n > 0 {
					t.Errorf("restarted %d times", n)
				}
				if app, _ := scoreOf(f.last(), "m", "app"); app.Outcome != interpret.Drifted || app.Cause != interpret.CauseLiveness && len(app.Changes) == 0 {
					t.Errorf("it is not told: %+v", app)
				}
				return
			}
			gaps := restarts.gaps()
			if n := len(gaps) + 1; n < 10 || n > 40 || gaps[len(gaps)-1] < 300 {
				t.Errorf("%d restarts in two hours, with pauses of %v s", n, gaps)
			}
			r.dev.Listen("127.0.0.1:80", memory.Endpoint{})
			later(time.Hour)
			n := restarts.number()
			later(time.Hour)
			if st := f.last(); !st.ConvergedAt(1) || restarts.number() != n {
				t.Errorf("it works again: %s, restarted %d times", outcomes(st), restarts.number()-n)
			}
		})
	}
}
