package authority

import (
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// A term is one thing that a rule asks about a question.
type term func(*Question) bool

// A rule gives its answer if all of its terms hold.
type rule struct {
	name   string
	when   []term
	answer Answer
}

func (r rule) matches(q *Question) bool {
	for _, holds := range r.when {
		if !holds(q) {
			return false
		}
	}
	return true
}

// rules are asked from the first to the last. What is known about the device and the
// change comes first, and no authority is above it; then what needs a signature; then
// the one-shot authorities; and last what the policy lets a device do by itself.
var rules = []rule{
	// facts
	{"nothing is planned before the first verified intent", when(coldStart), nothing("no verified intent was ever seen")},
	{"nothing is planned of what is not here whole", when(fetchFailed, not(judgedByLast)), nothing("the intent is not here whole")},
	{"a blocked device only observes", when(blocked), report(interpret.CodeBlocked, "this device was told to only observe")},
	{"a cause that is not known is no reason", when(not(anyKnownCause)), refuse(interpret.CodePolicy, "this version does not know why it would be done")},
	{"what nobody can place is not touched", when(not(anyKnownProvenance)), refuse(interpret.CodePolicy, "this version does not know whose it is")},
	{"nothing foreign is removed", when(foreign, either(absent, explicit, removes, destroys)), refuse(CodeForeign, "it is foreign, and nothing foreign is removed: adopt it first")},
	{"nothing foreign is overwritten by itself", when(foreign, replaces, not(either(planned, signed, begun))), refuse(CodeForeign, "it was there before and differs: adopt it (continuo adopt), or install a plan, which overwrites it after a backup (continuo install)")},

	// absence
	{"absence does nothing but remove", when(absent, not(removes)), report(interpret.CodeNotOwned, "absence alone destroys nothing: name it again with decommission: true")},
	{"lost books prove nothing", when(absent, uncertain), report(interpret.CodeNotOwned, "books were lost, and until they are made again nothing is removed because it is absent")},
	{"what was adopted is not made again", when(absent, adopted, not(stays)), report(interpret.CodeNotOwned, "it was there before and was adopted: absence alone does not remove it")},
	{"what this transaction made it may undo", when(scratch, not(uncertain), either(removes, destroys)), apply},
	{"absence from a part means nothing", when(absent, partial), report(interpret.CodeNotOwned, "what there is to be is not known whole, so that absence means nothing")},
	{"what is released stays", when(absent, releases, not(begun)), report(CodeReleased, "the policy releases what is no longer named: it stays, and is the device's own")},
	{"what is only reported stays", when(absent, not(collects), not(begun)), report(interpret.CodeOrphaned, "the policy reports what is no longer named, and removes nothing")},

	// what needs a signature
	{"never means never", when(destroys, not(destroyable)), refuse(interpret.CodePolicy, "the policy says that nothing is ever destroyed")},
	{"destruction is signed for", when(destroys, not(either(signed, begun))), pending(interpret.CodeSignature, "it cannot be made again: a signed approval has to let it happen")},
	{"above the brake removal is signed for", when(either(absent, explicit), brake, not(either(signed, begun))), pending(CodeBrake, "more would be removed at once than a device does by itself: a signed approval has to let it happen")},
	{"a signature covers what it names", when(either(signed, begun)), apply},
	{"decommission is signed for, unless it could be collected", when(explicit, not(both(removes, collects, owned, not(uncertain)))), pending(interpret.CodeSignature, "a signed approval has to let it be removed")},

	// what needs a plan, or the policy
	{"a plan covers what it shows", when(planned), apply},
	{"drift is corrected only if the policy says so", when(either(drift, liveness), not(corrects)), report(interpret.CodePolicy, "the policy reports drift and does not correct it")},
	{"a wish is applied only if the policy says so", when(either(intent, dependency), not(applies)), pending(interpret.CodeConfirm, "a plan has to be confirmed: continuo plan, continuo install")},
	{"a rollback happens only if the policy says so", when(rollback, not(rollsBack)), report(interpret.CodePolicy, "the policy does not roll back")},
	{"removal is confirmed, unless the policy collects", when(removes, not(both(collects, not(uncertain)))), pending(interpret.CodeConfirm, "it removes something, and the policy does not: confirm a plan (continuo plan, continuo install)")},
	{"changes wait for the window", when(closed, not(rollback)), pending(interpret.CodeWindow, "it waits for the window of its policy")},
	{"what is left the policy covers", when(anyKnownCause), apply},
}

// Answers. Which authority covers what is applied, Decide fills in.
var (
	apply   = Answer{Decision: interpret.DecideApply}
	unknown = refuse(interpret.CodePolicy, "no authority covers it")
)

func nothing(why string) Answer {
	return Answer{Decision: interpret.DecideNothing, Code: interpret.CodePolicy, Reason: why}
}

func report(code interpret.Code, why string) Answer {
	return Answer{Decision: interpret.DecideReport, Code: code, Reason: why}
}

func pending(code interpret.Code, why string) Answer {
	return Answer{Decision: interpret.DecidePending, Code: code, Reason: why}
}

func refuse(code interpret.Code, why string) Answer {
	return Answer{Decision: interpret.DecideRefuse, Code: code, Reason: why}
}

func when(all ...term) []term { return all }

func not(t term) term { return func(q *Question) bool { return !t(q) } }

func either(terms ...term) term {
	return func(q *Question) bool {
		for _, t := range terms {
			if t(q) {
				return true
			}
		}
		return false
	}
}

func both(terms ...term) term {
	return func(q *Question) bool { return rule{when: terms}.matches(q) }
}

// Causes. A rollback brings the last good generation back: what ends a change that was
// begun in a window does not wait for the next one.
func intent(q *Question) bool     { return q.Cause == interpret.CauseIntent }
func drift(q *Question) bool      { return q.Cause == interpret.CauseDrift }
func dependency(q *Question) bool { return q.Cause == interpret.CauseDependency }
func absent(q *Question) bool     { return q.Cause == interpret.CauseAbsent }
func explicit(q *Question) bool   { return q.Cause == interpret.CauseExplicit }
func liveness(q *Question) bool   { return q.Cause == interpret.CauseLiveness }
func rollback(q *Question) bool   { return q.Cause == interpret.CauseRollback }

var (
	// judgedByLast are the causes that do not come from an intent that is new.
	judgedByLast  = either(drift, dependency, liveness, rollback)
	anyKnownCause = either(judgedByLast, intent, absent, explicit)
)

// Effects. What is not known destroys. To give up a thing that stays asks for what its
// removal would ask for, except that nothing is lost.
func stays(q *Question) bool   { return q.Effect == interpret.Nothing }
func removes(q *Question) bool { return q.Effect == interpret.Remove || stays(q) }

func destroys(q *Question) bool {
	switch q.Effect {
	case interpret.Create, interpret.Mutate, interpret.Disrupt, interpret.Remove, interpret.Nothing:
		return false
	}
	return true
}

// Provenances.
func owned(q *Question) bool   { return q.Provenance == interpret.Owned }
func adopted(q *Question) bool { return q.Provenance == interpret.Adopted }
func foreign(q *Question) bool { return q.Provenance == interpret.Foreign }
func scratch(q *Question) bool { return q.Provenance == interpret.Scratch }

var anyKnownProvenance = either(owned, adopted, foreign, scratch)

// One-shot authorities.
func planned(q *Question) bool { return q.Given == Plan }
func signed(q *Question) bool  { return q.Given == Signed }
func begun(q *Question) bool   { return q.Given == Begun }

// What the policy says. Each is true for the words that give leave, and for no other.
func applies(q *Question) bool     { return q.Policy.OnIntent == score.IntentApply }
func corrects(q *Question) bool    { return q.Policy.OnDrift == score.DriftCorrect }
func destroyable(q *Question) bool { return q.Policy.OnDestroy == score.DestroySignature }
func rollsBack(q *Question) bool   { return q.Policy.OnFailure == score.FailureRollBack }
func releases(q *Question) bool    { return q.Policy.OnAbsent == score.AbsentRelease }
func collects(q *Question) bool {
	return q.Policy.OnAbsent == score.AbsentCollect || q.Policy.OnAbsent == score.AbsentRestore
}

// States.
func replaces(q *Question) bool    { return q.Replaces }
func coldStart(q *Question) bool   { return q.ColdStart }
func fetchFailed(q *Question) bool { return q.FetchFailed }
func partial(q *Question) bool     { return q.Partial }
func uncertain(q *Question) bool   { return q.Uncertain }
func brake(q *Question) bool       { return q.Brake }
func blocked(q *Question) bool     { return q.Blocked }
func closed(q *Question) bool      { return q.Closed }
