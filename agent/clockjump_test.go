package agent_test

import (
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// onTrial gives the device a version that is good, and then one that does not become ready: nobody listens on its port.
func (r *rig) onTrial(h agent.Handler) {
	r.t.Helper()
	probed := func(n uint64, content string) score.Manifest {
		s := service("app", "app.service", "conf")
		s.Health = &score.Health{Readiness: &score.Probe{TCP: &score.TCPProbe{Port: 80}, Period: score.Duration(10 * time.Second)}}
		return version(n, manifest("m", file("conf", "/etc/conf", content), s))
	}
	r.dev.Listen("127.0.0.1:80", memory.Endpoint{})
	offer(r.t, h, intent(1, probed(1, "1")))
	later(time.Minute)
	r.dev.Unlisten("127.0.0.1:80")
	offer(r.t, h, intent(2, probed(2, "2")))
}

// A device that was off for hours in the middle of a trial, or whose clock was set, gives the version its time once more;
// one that never becomes ready is rolled back all the same (case 135).
func TestTrialOverALongStop(t *testing.T) {
	for _, ready := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			_, f, h, stop := r.running()
			r.onTrial(h)
			later(3 * time.Minute)
			again := func() {
				stop()
				time.Sleep(10 * time.Hour)
				r.restart()
				_, f, h, stop = r.running()
			}
			again()
			later(4 * time.Minute)
			r.content("/etc/conf", "2")
			if ready {
				r.dev.Listen("127.0.0.1:80", memory.Endpoint{})
				later(10 * time.Minute)
				r.content("/etc/conf", "2")
				if st := f.last(); !st.ConvergedAt(2) {
					t.Errorf("%s, state %s", outcomes(st), st.State)
				}
				return
			}
			again() // not for ever
			later(time.Minute)
			r.content("/etc/conf", "1")
			if b := f.last().Manifests[0].RolledBack; b == nil || b.Code != interpret.CodeDeadline {
				t.Errorf("rolled back: %+v", b)
			}
		})
	}
}
