// Package authority decides whether a change to a device may happen. It is one pure
// function over closed sets, so that every combination can be enumerated.
//
// It knows presets, causes, effects and provenance, and neither scores nor
// topologies nor books. This version knows the preset converge; the rules of the
// others come into the same function.
package authority

import (
	"fmt"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// A Provenance says how a resource came to the device, as far as its books can prove.
type Provenance string

// Provenances.
const (
	Owned   Provenance = "owned"   // this agent made it
	Adopted Provenance = "adopted" // it was there before, and was taken over
	Foreign Provenance = "foreign" // no record claims it
)

// A Question is one planned change.
type Question struct {
	Preset     score.Preset
	Cause      interpret.Cause
	Effect     interpret.Effect
	Provenance Provenance
	// ColdStart: no verified intent was ever seen.
	ColdStart bool
	// Partial: the intent is not complete, so that absence means nothing.
	Partial bool
	// Uncertain: books were lost, so that ownership may be wrong.
	Uncertain bool
	// Brake: more would be removed than a device does by itself.
	Brake bool
	// Blocked: the operator told the device to only observe.
	Blocked bool
}

// An Answer is what may happen.
type Answer string

// Answers.
const (
	Apply   Answer = "apply"   // a standing authority covers it
	Report  Answer = "report"  // nothing happens, and it is said
	Pending Answer = "pending" // a person has to say yes
	Refuse  Answer = "refuse"  // no authority could ever cover it
	Nothing Answer = "nothing" // it may not even be planned
)

// A Decision is an answer with its reason.
type Decision struct {
	Answer    Answer
	Authority string // of an Apply: which authority covers it
	Reason    string
}

// Decide answers q. The first rule that matches wins; what no rule knows does not
// happen.
func Decide(q Question) Decision {
	absent := q.Cause == interpret.CauseAbsent
	switch {
	case q.ColdStart:
		return Decision{Nothing, "", "no verified intent was ever seen"}
	case q.Blocked:
		return Decision{Report, "", "this device was told to only observe"}
	case q.Provenance == Foreign && (absent || q.Effect == interpret.Remove || q.Effect == interpret.Destroy):
		return Decision{Refuse, "", "it is foreign: adopt it first"}
	case absent && (q.Partial || q.Uncertain || q.Provenance != Owned || q.Effect != interpret.Remove):
		return Decision{Report, "", "absence alone does not remove it"}
	case q.Preset != score.Converge:
		return Decision{Pending, "", fmt.Sprintf("no standing authority under preset %q", q.Preset)}
	case absent && q.Brake:
		return Decision{Pending, "", "more would be removed at once than a device does by itself"}
	case absent || wish(q.Cause) && mends(q.Effect):
		return Decision{Apply, "standing:" + string(q.Preset), ""}
	}
	return Decision{Pending, "", "destruction needs a signed approval"}
}

// wish reports whether a change is made because somebody wants what it leads to.
func wish(c interpret.Cause) bool {
	return c == interpret.CauseIntent || c == interpret.CauseDrift || c == interpret.CauseDependency
}

// mends reports whether nothing is lost by an effect. What is unknown counts as the worst.
func mends(e interpret.Effect) bool {
	return e == interpret.Create || e == interpret.Mutate || e == interpret.Disrupt
}
