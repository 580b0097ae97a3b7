package health

import (
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// A State is what is known of one score.
type State struct {
	Readiness Verdict
	Liveness  Verdict
	// Since is when it began to be as it is, well or not.
	Since time.Time
	// Message says for people why it is not well; empty if it is. It holds no secrets, and
	// stays the same while the reason does.
	Message string
	// Restart is when a restart falls due because the liveness fails; zero if none does.
	Restart time.Time
	// Restarts is how many there were in a row, after none of which it worked for long.
	Restarts int
}

// Ready reports whether those that come after the score may begin: it has no readiness, or it holds.
func (s State) Ready() bool { return s.Readiness == "" || s.Readiness == Healthy }

// Alive reports whether the score does not hang, as far as is known.
func (s State) Alive() bool { return s.Liveness != Unhealthy }

// Healthy is the condition of the same name: ready and alive. What is not known yet is
// not ready; a liveness that is not known yet says nothing.
func (s State) Healthy() bool { return s.Ready() && s.Alive() }

// State returns what is known of a score; ok is false if it has no probe.
func (w *Watch) State(mark topology.Mark) (s State, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.scores[mark]; s != nil {
		return s.state(), true
	}
	return State{}, false
}

func (s *watched) state() State {
	st := State{Since: s.since, Restart: s.restart, Restarts: s.budget.Restarts()}
	if s.readiness != nil {
		st.Readiness, _ = s.readiness.judge.Verdict()
	}
	if s.liveness != nil {
		st.Liveness, _ = s.liveness.judge.Verdict()
	}
	switch {
	case !st.Alive():
		st.Message = "it hangs: " + s.liveness.judge.why()
	case !st.Ready():
		st.Message = "it is not ready: " + s.readiness.judge.why()
	}
	return st
}

// why says for people why the verdict is not good.
func (j *Judge) why() string {
	switch {
	case j.detail != "":
		return j.detail
	case j.row == 0:
		return "the first look is still to come"
	}
	return "it works again, but not for long enough yet"
}
