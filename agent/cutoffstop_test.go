package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// An agent that is stopped inside a window blames nobody: the next one tries at once, and the version is not condemned.
func TestStopInsideTheWindowCondemnsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := netRig(t)
		_, _, h, stop := r.running()
		offer(t, h, intent(1, version(1, manifest("m", file("f", "/etc/f", "1")))))
		later(time.Minute)
		r.runner.Reach = func(context.Context) error { return errors.New("not yet") }
		second := intent(2, version(2, manifest("m", file("f", "/etc/f", "2"), shut)))
		offer(t, h, second)
		later(20 * time.Second)
		if !r.shut() || !r.dev.CheckpointOpen() {
			t.Fatalf("shut %v, open %v", r.shut(), r.dev.CheckpointOpen())
		}
		stop()
		if r.shut() || r.dev.CheckpointOpen() {
			t.Fatalf("shut %v, open %v", r.shut(), r.dev.CheckpointOpen())
		}
		r.restart()
		r.bindNet()
		_, f, h, _ := r.running()
		offer(t, h, second)
		later(time.Minute)
		if st := f.last(); !st.ConvergedAt(2) || !r.shut() || st.Manifests[0].RolledBack != nil {
			t.Errorf("%s: %s, shut %v", st.State, outcomes(st), r.shut())
		}
	})
}

// With a timeout of the score that is shorter than its window, what is there at its end is taken back as well.
func TestTimeoutInsideTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := netRig(t)
		r.runner.Reach = func(context.Context) error { return errors.New("no answer") }
		s := shut
		s.Engine = &score.Engine{Timeout: score.Duration(20 * time.Second)}
		began := time.Now()
		r.want(r.apply(intent(1, manifest("m", s))), "m/fw=rolled_back/connectivity")
		if took := time.Since(began); took > 25*time.Second || r.shut() || r.dev.CheckpointOpen() {
			t.Errorf("after %s: shut %v, open %v", took, r.shut(), r.dev.CheckpointOpen())
		}
	})
}
