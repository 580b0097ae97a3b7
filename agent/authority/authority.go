// Package authority decides whether a change to a device may happen. It is one pure
// function over closed sets, so that every combination can be enumerated.
//
// It knows policies, causes, effects and provenance, and neither scores nor
// topologies nor books.
package authority

import (
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// A Given is a one-shot authority that is at hand for a change.
type Given string

// One-shot authorities.
const (
	None   Given = ""
	Plan   Given = "plan"   // a person confirmed the plan that the change is part of
	Signed Given = "signed" // a person approved this very change
	Begun  Given = "begun"  // the journal says that it was begun under an authority, and not ended
)

// A Question is one planned change.
type Question struct {
	// Policy in force: what Effective returned.
	Policy     score.Policy
	Cause      interpret.Cause
	Effect     interpret.Effect
	Provenance interpret.Provenance
	// Replaces: what is overwritten is kept nowhere else, if it is foreign.
	Replaces bool
	// Given is the one-shot authority at hand, Name what it is called in records.
	Given Given
	Name  string
	// ColdStart: no verified intent was ever seen.
	ColdStart bool
	// FetchFailed: the intent that this belongs to could not be had whole.
	FetchFailed bool
	// Partial: the intent is not complete, so that absence means nothing.
	Partial bool
	// Uncertain: books were lost, so that ownership may be wrong.
	Uncertain bool
	// Brake: more would be removed than a device does by itself.
	Brake bool
	// Blocked: the operator told the device to only observe.
	Blocked bool
	// Closed: the policy has a window, and it is not open.
	Closed bool
}

// An Answer is what may happen.
type Answer struct {
	Decision  interpret.Decision
	Authority string // of DecideApply: which authority covers it
	Code      interpret.Code
	Reason    string
}

// Decide answers q. The first rule that matches wins; what no rule knows does not
// happen.
func Decide(q Question) Answer {
	absent := q.Cause == interpret.CauseAbsent
	wanted := wish(q.Cause)
	removes := q.Effect == interpret.Remove
	destroys := !removes && !mends(q.Effect)
	collects := q.Policy.OnAbsent == score.AbsentCollect || q.Policy.OnAbsent == score.AbsentRestore
	foreign := q.Provenance == interpret.Foreign
	switch {
	case q.ColdStart:
		return Answer{interpret.DecideNothing, "", interpret.CodePolicy, "no verified intent was ever seen"}
	case q.FetchFailed && q.Cause != interpret.CauseDrift && q.Cause != interpret.CauseLiveness:
		return Answer{interpret.DecideNothing, "", interpret.CodePolicy, "the intent is not here whole"}
	case q.Blocked:
		return Answer{interpret.DecideReport, "", interpret.CodeBlocked, "this device was told to only observe"}
	case foreign && (absent || q.Cause == interpret.CauseExplicit || removes || destroys):
		return refuse("it is foreign, and nothing foreign is removed: adopt it first")
	case foreign && q.Replaces && q.Given == None:
		return refuse("it was there before and differs: adopt it (continuo adopt), or install a plan, which overwrites it after a backup (continuo install)")
	case absent && q.Provenance == interpret.Scratch && removes:
		return apply(q)
	case absent && (q.Partial || q.Uncertain || q.Provenance != interpret.Owned || !removes):
		return Answer{interpret.DecideReport, "", interpret.CodeNotOwned, "absence alone does not remove it"}
	case absent && !collects:
		return Answer{interpret.DecideReport, "", interpret.CodeOrphaned, "the policy reports what is no longer named, and removes nothing"}
	case absent && q.Brake && q.Given != Signed:
		return Answer{interpret.DecidePending, "", interpret.CodeSignature, "more would be removed at once than a device does by itself"}
	case destroys && q.Provenance == interpret.Scratch:
		return apply(q)
	case destroys && q.Policy.OnDestroy == score.DestroyNever:
		return Answer{interpret.DecideRefuse, "", interpret.CodePolicy, "the policy says that nothing is ever destroyed"}
	case destroys && q.Given != Signed && q.Given != Begun:
		return Answer{interpret.DecidePending, "", interpret.CodeSignature, "it cannot be made again: a signed approval has to let it happen"}
	case q.Given == Signed || q.Given == Begun:
		return apply(q)
	case q.Cause == interpret.CauseExplicit && !(removes && collects && q.Provenance == interpret.Owned):
		return Answer{interpret.DecidePending, "", interpret.CodeSignature, "a signed approval has to let it be removed"}
	case q.Given == Plan:
		return apply(q)
	case (q.Cause == interpret.CauseDrift || q.Cause == interpret.CauseLiveness) && q.Policy.OnDrift != score.DriftCorrect:
		return Answer{interpret.DecideReport, "", interpret.CodePolicy, "the policy reports drift and does not correct it"}
	case wanted && q.Policy.OnIntent != score.IntentApply, wanted && removes && !collects:
		return Answer{interpret.DecidePending, "", interpret.CodeConfirm, "a plan has to be confirmed: continuo plan, continuo install"}
	case q.Cause == interpret.CauseRollback && q.Policy.OnFailure != score.FailureRollBack:
		return Answer{interpret.DecideReport, "", interpret.CodePolicy, "the policy does not roll back"}
	case q.Closed:
		return Answer{interpret.DecidePending, "", interpret.CodeWindow, "it waits for the window of its policy"}
	case absent, q.Cause == interpret.CauseExplicit, wanted, q.Cause == interpret.CauseDrift, q.Cause == interpret.CauseLiveness, q.Cause == interpret.CauseRollback:
		return apply(q)
	}
	return Answer{interpret.DecidePending, "", interpret.CodeSignature, "a signed approval has to let it happen"}
}

func refuse(why string) Answer {
	return Answer{interpret.DecideRefuse, "", "foreign", why}
}

func apply(q Question) Answer {
	if q.Given != None {
		return Answer{Decision: interpret.DecideApply, Authority: string(q.Given) + ":" + q.Name}
	}
	return Answer{Decision: interpret.DecideApply, Authority: "standing:" + string(q.Policy.Preset)}
}

// wish reports whether a change is made because somebody wants what it leads to.
func wish(c interpret.Cause) bool {
	return c == interpret.CauseIntent || c == interpret.CauseDependency
}

// mends reports whether nothing is lost by an effect. What is unknown counts as the worst.
func mends(e interpret.Effect) bool {
	return e == interpret.Create || e == interpret.Mutate || e == interpret.Disrupt
}
