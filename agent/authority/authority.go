// Package authority decides whether a change to a device may happen: whether the
// policy in force, or a person's one-shot word, covers it. All of it is pure functions
// over closed sets, so that every combination can be enumerated.
//
// It knows policies, causes, effects and provenance. It neither looks at a device, nor
// keeps books, nor does anything.
package authority

import (
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// A Given is a one-shot authority that is at hand for a change. A word that is not
// known counts as none.
type Given string

// One-shot authorities.
const (
	None   Given = ""
	Plan   Given = "plan"   // a person confirmed the plan that the change is part of
	Signed Given = "signed" // a person approved this very change
	Begun  Given = "begun"  // the journal says that it was begun under an authority, and not ended
)

// A Question is one planned change. Words that are not known count as the worst there
// is.
type Question struct {
	// Policy in force: what Effective returned.
	Policy     score.Policy
	Cause      interpret.Cause
	Effect     interpret.Effect
	Provenance interpret.Provenance
	// Replaces: what is overwritten is kept nowhere else, if it is foreign. Whoever is
	// told to apply such a change makes a durable backup first.
	Replaces bool
	// Given is the one-shot authority at hand, Name what it is called in records.
	Given Given
	Name  string
	// ColdStart: no verified intent was ever seen.
	ColdStart bool
	// FetchFailed: the intent that this belongs to could not be fetched or verified
	// whole. What is judged against the last one that could goes on.
	FetchFailed bool
	// Partial: the intent is not complete, so that absence means nothing.
	Partial bool
	// Uncertain: books were lost, so that ownership may be wrong.
	Uncertain bool
	// Brake: more would be removed than a device does by itself (see Brake).
	Brake bool
	// Blocked: the operator told the device to only observe.
	Blocked bool
	// Closed: a window is not open (see Windows and Open).
	Closed bool
}

// An Answer is what may happen.
type Answer struct {
	Decision  interpret.Decision
	Authority string // of DecideApply: which authority covers it
	Code      interpret.Code
	Reason    string
}

// Codes of answers, besides those of package interpret.
const (
	CodeForeign  interpret.Code = "foreign"  // it was there before, and is not touched
	CodeReleased interpret.Code = "released" // the policy gives it up: whoever keeps the books forgets it
)

// Decide answers q. The first rule that matches wins, and what no rule knows does not
// happen.
func Decide(q Question) Answer { return decide(rules, &q) }

func decide(rules []rule, q *Question) Answer {
	for i := range rules {
		if rules[i].when.holds(q) {
			a := rules[i].answer
			if a.Decision == interpret.DecideApply {
				a.Authority = covering(q)
			}
			return a
		}
	}
	return unknown
}

// covering names the authority of what is applied.
func covering(q *Question) string {
	switch {
	case q.Given == Plan, q.Given == Signed, q.Given == Begun:
		return string(q.Given) + ":" + q.Name
	case scratch(q) && (removes(q) || destroys(q)):
		return "transaction"
	}
	return "standing:" + string(q.Policy.Preset)
}
