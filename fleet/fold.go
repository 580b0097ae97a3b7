package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
)

// A Verdict is how a device is, in one word.
type Verdict string

// Verdicts.
const (
	Converged   Verdict = "converged"   // it is what it should be
	Converging  Verdict = "converging"  // it is on its way
	Drifted     Verdict = "drifted"     // it was left otherwise than it should be
	Pending     Verdict = "pending"     // it waits for a person
	Unsupported Verdict = "unsupported" // it cannot be what it should be
	Failed      Verdict = "failed"      // it tried, or refused
	Stale       Verdict = "stale"       // it is silent
	Unknown     Verdict = "unknown"     // nothing is known that could be judged
)

// Settled reports whether nothing will change by itself soon.
func (v Verdict) Settled() bool { return v != Converging && v != Unknown && v != Stale }

// Liveness is whether a device is heard of. It is judged by the clock of the store, never by the device's.
type Liveness string

// Livenesses.
const (
	Live    Liveness = "alive"
	Silent  Liveness = "silent"
	Unheard Liveness = "unknown" // no control service listens, or not for long enough
)

// refusals are the codes under which an agent says that it did not accept what is published for it.
var refusals = []interpret.Code{
	"untrusted", "malformed", "unsupported", "unsupported_version", "unknown_epoch", "wrong_purpose", "wrong_audience", "expired",
	"not_yet_valid", "too_few_signatures", "key_revoked", "key_not_valid", "out_of_scope", "old_epoch", "too_large", "size_mismatch", "digest_mismatch", "not_whole",
}

// noticed is how long after a publication a device that is heard of has looked at it. Until then it is not known whether
// an older refusal holds for what was published since.
const noticed = 5 * time.Second

// refusal is what a device says against what is published for it, if anything.
func refusal(s DeviceState) (interpret.Problem, bool) {
	codes := refusals
	switch held := s.Status.Generation; {
	case s.Desired == 0 || s.Desired == held:
		return interpret.Problem{}, false
	case s.Desired < held: // above what it holds, nothing is refused for these
		codes = append(codes[:len(codes):len(codes)], "control_plane_regressed", interpret.Code(wire.CodeRegressed), interpret.Code(wire.CodeEquivocation))
	}
	if s.ReportedAt.Before(s.Published) && s.LastHeard.Sub(s.Published) < noticed {
		return interpret.Problem{}, false
	}
	return problem(s.Status, codes...)
}

// Fold says how a device is, from what is published for it, its last status, and whether it is heard of. It looks at
// nothing else. The reason is for people.
func Fold(s DeviceState) (v Verdict, reason string) {
	desired, st, live := s.Desired, s.Status, s.Liveness
	switch {
	case s.Heartbeat.Conflict != "":
		return Failed, conflictReason(s.Heartbeat)
	case s.Unreadable != "":
		return Unknown, "its status cannot be read: " + s.Unreadable
	case live == Silent && st == nil && desired == 0:
		return Unknown, "nothing is published for it, and it never reported"
	case live == Silent:
		return Stale, "no heartbeat arrives"
	case st == nil && desired == 0:
		return Unknown, "nothing is published for it"
	case st == nil && live == Live:
		return Converging, "it has not reported yet"
	case st == nil:
		return Unknown, "it never reported"
	}
	if p, ok := refusal(s); ok {
		return Failed, fmt.Sprintf("it did not accept generation %d: %s", desired, p.Message)
	}
	switch {
	case desired == 0 && st.Generation > 0:
		return Pending, fmt.Sprintf("nothing is published for it any more; it holds generation %d", st.Generation)
	case desired == 0:
		return Unknown, "nothing is published for it"
	case desired < st.Generation:
		return Pending, fmt.Sprintf("it holds generation %d, and only %d is published: publish again", st.Generation, desired)
	case desired > st.Generation:
		return Converging, fmt.Sprintf("it holds generation %d, and %d is published", st.Generation, desired)
	case st.Phase == interpret.PhaseRunning:
		return Converging, "a pass is under way"
	}
	switch st.State {
	case interpret.StateConverged:
		return Converged, ""
	case interpret.StateConverging:
		return Converging, cmp.Or(unready(st), first(st, interpret.Waiting))
	case interpret.StateRolledBack:
		return Failed, first(st, interpret.RolledBack)
	case interpret.StatePending:
		return Pending, cmp.Or(first(st, interpret.Pending), leftOver(st))
	case interpret.StateDrifted:
		return Drifted, first(st, interpret.Drifted)
	case interpret.StateUnsupported:
		return Unsupported, first(st, interpret.Unsupported)
	case interpret.StateFailed, interpret.StatePartial:
		return Failed, first(st, interpret.Failed, interpret.Conflict, interpret.Refused, interpret.RolledBack)
	}
	return Unknown, fmt.Sprintf("it reports the state %q, which this program does not know: update it", st.State)
}

func problem(st *interpret.DeviceStatus, codes ...interpret.Code) (interpret.Problem, bool) {
	i := slices.IndexFunc(st.Problems, func(p interpret.Problem) bool { return slices.Contains(codes, p.Code) })
	if i < 0 {
		return interpret.Problem{}, false
	}
	return st.Problems[i], true
}

// unready is what the first score says that holds and is not up yet.
func unready(st *interpret.DeviceStatus) string {
	for _, m := range st.Manifests {
		for _, s := range m.Scores {
			if s.Outcome.Converged() && !s.Conditions.Good() {
				return fmt.Sprintf("%s/%s is not up yet: %s", m.Name, s.ID, cmp.Or(s.Message, string(s.Code), "it does not say why"))
			}
		}
	}
	return ""
}

// leftOver is what the first thing says that is left over and waits.
func leftOver(st *interpret.DeviceStatus) string {
	for _, o := range st.Orphans {
		if o.Pending() {
			return fmt.Sprintf("%s of %s/%s is left over: %s", o.Resource, o.Manifest, o.Score, cmp.Or(o.Message, string(o.Code)))
		}
	}
	return ""
}

// first is what the first score with one of the outcomes says.
func first(st *interpret.DeviceStatus, outcomes ...interpret.Outcome) string {
	for _, m := range st.Manifests {
		for _, s := range m.Scores {
			if slices.Contains(outcomes, s.Outcome) {
				text := s.Message
				if text == "" {
					text = string(s.Code)
				}
				return fmt.Sprintf("%s/%s is %s: %s", m.Name, s.ID, s.Outcome, text)
			}
		}
	}
	return ""
}
