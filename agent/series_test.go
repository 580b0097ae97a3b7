package agent_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
)

// Generations begin anew with a trust root that says so: the first of the new series counts above the highest of the one
// before, also after a restart, and nothing of that one comes back.
func TestGenerationsBeginAnew(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, stop := r.running()
		high := intent(1<<62, version(1<<62, manifest("m", file("f", "/etc/f", "thief"))))
		offer(t, h, high)
		later(time.Minute)
		anew := intent(1, version(1, manifest("m", file("f", "/etc/f", "owner"))))
		anew.Series = 4
		offer(t, h, anew)
		later(time.Minute)
		if got, _ := r.dev.Read("/etc/f"); got != "owner" || !f.last().ConvergedAt(1) {
			t.Fatalf("%q, %s", got, f.last().State)
		}
		for range 2 {
			if err := h.Offer(high); !isRefusal(err, agent.CodeRegressed) {
				t.Fatalf("what was before is taken: %v", err)
			}
			stop()
			r.restart()
			_, f, h, stop = r.running()
			later(time.Minute)
			if g := f.last().Generation; g != 1 {
				t.Errorf("at generation %d after a restart", g)
			}
		}
		stop()
	})
}

func isRefusal(err error, code interpret.Code) bool {
	r, ok := errors.AsType[*agent.Refusal](err)
	return ok && r.Code == code
}

func hasProblem(st interpret.DeviceStatus, code interpret.Code) bool {
	return slices.ContainsFunc(st.Problems, func(p interpret.Problem) bool { return p.Code == code })
}

// What is in force and not trusted any more is only looked at, until something is published again.
func TestTrustThatIsTakenBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		a, f, h, stop := r.running()
		defer stop()
		offer(t, h, intent(1, version(1, manifest("m", file("f", "/etc/f", "1")))))
		later(time.Minute)
		good := a.Open
		a.Open = func([]byte) (agent.Intent, error) { return agent.Intent{}, errors.New("the key was stolen") }
		h.TrustChanged()
		r.dev.Put("/etc/f", "drift")
		later(10 * time.Minute)
		if got, _ := r.dev.Read("/etc/f"); got != "drift" || !hasProblem(f.last(), agent.CodeIntentLost) {
			t.Fatalf("%q, %v", got, f.last().Problems)
		}
		a.Open = good
		offer(t, h, intent(2, version(2, manifest("m", file("f", "/etc/f", "2")))))
		later(time.Minute)
		if got, _ := r.dev.Read("/etc/f"); got != "2" || hasProblem(f.last(), agent.CodeIntentLost) {
			t.Errorf("%q, %v", got, f.last().Problems)
		}
	})
}
