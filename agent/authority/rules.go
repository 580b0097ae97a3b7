package authority

import (
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// A rule gives its answer if all that it asks about a question holds.
type rule struct {
	name   string
	from   string // the requirements that it comes from
	when   all
	answer Answer
}

// A term is one thing that a rule asks. It is data, so that tests can change it.
type term interface{ holds(*Question) bool }

type (
	fact   func(*Question) bool
	not    struct{ term }
	all    []term
	either []term
)

func (f fact) holds(q *Question) bool { return f(q) }

func (n not) holds(q *Question) bool { return !n.term.holds(q) }

func (terms all) holds(q *Question) bool {
	for _, t := range terms {
		if !t.holds(q) {
			return false
		}
	}
	return true
}

func (terms either) holds(q *Question) bool {
	for _, t := range terms {
		if t.holds(q) {
			return true
		}
	}
	return false
}

// rules are asked from the first to the last. What is known about the device and the
// change comes first, and no authority is above it; then what needs a signature; then
// the one-shot authorities; and last what the policy lets a device do by itself.
var rules = []rule{
	// facts
	{"nothing is planned before the first verified intent", "3.2(1), K14, S23", all{coldStart},
		nothing("no verified intent was ever seen")},
	{"nothing is planned of what is not here whole", "3.2(2), K15, S34, S43", all{fetchFailed, not{judgedByLast}},
		nothing("the intent is not here whole")},
	{"a blocked device only observes", "S25", all{blocked},
		report(interpret.CodeBlocked, "this device was told to only observe")},
	{"a cause that is not known is no reason", "fails closed", all{not{anyKnownCause}},
		refuse(interpret.CodePolicy, "this version does not know why it would be done")},
	{"what nobody can place is not touched", "fails closed, X78", all{not{anyKnownProvenance}},
		refuse(interpret.CodePolicy, "this version does not know whose it is")},
	{"nothing foreign is removed", "3.2(3)", all{foreign, either{absent, explicit, removes, destroys}},
		refuse(CodeForeign, "it is foreign, and nothing foreign is removed: adopt it first")},
	{"nothing foreign is overwritten by itself", "K14, the open point of 3.2", all{foreign, replaces, not{either{planned, signed, begun}}},
		refuse(CodeForeign, "it was there before and differs: adopt it (continuo adopt), or install a plan, which overwrites it after a backup (continuo install)")},

	// absence
	{"absence does nothing but remove", "3.2(4), S13", all{absent, not{removes}},
		report(interpret.CodeNotOwned, "absence alone destroys nothing: name it again with decommission: true")},
	{"lost books prove nothing", "3.2(4), X78", all{absent, uncertain},
		report(interpret.CodeNotOwned, "books were lost, and until they are made again nothing is removed because it is absent")},
	{"what was adopted is not made again", "3.2(4)", all{absent, adopted, not{stays}},
		report(interpret.CodeNotOwned, "it was there before and was adopted, so that no approval removes it while it is not named: give it up (continuo release), or name it again with decommission: true")},
	{"what this transaction made it may undo", "3.2(5), X78", all{scratch, not{uncertain}, either{removes, destroys}},
		apply},
	{"absence from a part means nothing", "3.2(4), S14", all{absent, partial},
		report(interpret.CodeNotOwned, "what there is to be is not known whole, so that absence means nothing")},
	{"what is released stays", "X104", all{absent, releases, not{begun}},
		report(CodeReleased, "the policy releases what is no longer named: it stays, and is the device's own")},
	{"what is only reported stays", "3.2(4), K2; begun: K13", all{absent, not{collects}, not{either{signed, begun}}},
		report(interpret.CodeOrphaned, "the policy reports what is no longer named, and removes nothing: a signed approval (continuo approve) lets it be removed")},

	// what needs a signature
	{"never means never", "X104", all{destroys, not{destroyable}},
		refuse(interpret.CodePolicy, "the policy says that nothing is ever destroyed")},
	{"destruction is signed for", "3.2(5), S17; begun: K13", all{destroys, not{either{signed, begun}}},
		pending(interpret.CodeSignature, "it cannot be made again: a signed approval has to let it happen")},
	{"above the brake removal is signed for", "3.2(4), S14; begun: K13", all{either{absent, explicit}, brake, not{either{signed, begun}}},
		pending(interpret.CodeBrake, "more would be removed at once than a device does by itself: a signed approval has to let it happen")},
	{"a signature covers what it names", "3.2(6, 7), K13", all{either{signed, begun}},
		apply},
	{"decommission is signed for, unless it could be collected", "3.2(6), S13, S17", all{explicit, not{all{removes, collects, owned, not{uncertain}}}},
		pending(interpret.CodeSignature, "a signed approval has to let it be removed")},

	// what needs a plan, or the policy
	{"a plan covers what it shows", "3.2(7), G32", all{planned},
		apply},
	{"drift is corrected only if the policy says so", "3.2(7), K3, G11", all{either{drift, liveness}, not{corrects}},
		report(interpret.CodePolicy, "the policy reports drift and does not correct it")},
	{"a wish is applied only if the policy says so", "3.2(7), K1, G27", all{intent, not{applies}},
		pending(interpret.CodeConfirm, "a plan has to be confirmed: continuo plan, continuo install")},
	{"what follows from a change is done if the policy lets changes be made", "3.2(7), H22", all{dependency, not{either{applies, corrects}}},
		pending(interpret.CodeConfirm, "a plan has to be confirmed: continuo plan, continuo install")},
	{"a rollback happens only if the policy says so", "K9", all{rollback, not{rollsBack}},
		report(interpret.CodePolicy, "the policy does not roll back")},
	{"removal is confirmed, unless the policy collects", "3.2(7)", all{removes, not{all{collects, not{uncertain}}}},
		pending(interpret.CodeConfirm, "it removes something, and the policy does not: confirm a plan (continuo plan, continuo install)")},
	{"changes wait for the window", "X103", all{closed, not{rollback}},
		pending(interpret.CodeWindow, "it waits for the window of its policy")},
	{"what is left the policy covers", "3.2(7), H10, H55", all{anyKnownCause},
		apply},
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

// Causes. A rollback brings the last good generation back: what ends a change that was
// begun in a window does not wait for the next one.
var (
	intent     fact = func(q *Question) bool { return q.Cause == interpret.CauseIntent }
	drift      fact = func(q *Question) bool { return q.Cause == interpret.CauseDrift }
	dependency fact = func(q *Question) bool {
		return q.Cause == interpret.CauseDependency || q.Cause == interpret.CauseSecret // whoever gave a secret another value changed what it goes into
	}
	absent   fact = func(q *Question) bool { return q.Cause == interpret.CauseAbsent }
	explicit fact = func(q *Question) bool { return q.Cause == interpret.CauseExplicit }
	liveness fact = func(q *Question) bool { return q.Cause == interpret.CauseLiveness }
	rollback fact = func(q *Question) bool { return q.Cause == interpret.CauseRollback }

	// judgedByLast are the causes that do not come from an intent that is new.
	judgedByLast  = either{drift, dependency, liveness, rollback}
	anyKnownCause = either{intent, drift, dependency, absent, explicit, liveness, rollback}
)

// Effects. What is not known destroys. To give up a thing that stays asks for what its
// removal would ask for, except that nothing is lost.
var (
	stays    fact = func(q *Question) bool { return q.Effect == interpret.Nothing }
	removes  fact = func(q *Question) bool { return q.Effect == interpret.Remove || q.Effect == interpret.Nothing }
	destroys fact = func(q *Question) bool {
		switch q.Effect {
		case interpret.Nothing, interpret.Create, interpret.Mutate, interpret.Disrupt, interpret.Remove:
			return false
		}
		return true
	}
)

// Provenances.
var (
	owned   fact = func(q *Question) bool { return q.Provenance == interpret.Owned }
	adopted fact = func(q *Question) bool { return q.Provenance == interpret.Adopted }
	foreign fact = func(q *Question) bool { return q.Provenance == interpret.Foreign }
	scratch fact = func(q *Question) bool { return q.Provenance == interpret.Scratch }

	anyKnownProvenance = either{owned, adopted, foreign, scratch}
)

// One-shot authorities.
var (
	planned fact = func(q *Question) bool { return q.Given == Plan }
	signed  fact = func(q *Question) bool { return q.Given == Signed }
	begun   fact = func(q *Question) bool { return q.Given == Begun }
)

// What the policy says. Each holds for the words that give leave, and for no other.
var (
	applies     fact = func(q *Question) bool { return q.Policy.OnIntent == score.IntentApply }
	corrects    fact = func(q *Question) bool { return q.Policy.OnDrift == score.DriftCorrect }
	destroyable fact = func(q *Question) bool { return q.Policy.OnDestroy == score.DestroySignature }
	rollsBack   fact = func(q *Question) bool { return q.Policy.OnFailure == score.FailureRollBack }
	releases    fact = func(q *Question) bool { return q.Policy.OnAbsent == score.AbsentRelease }
	collects    fact = func(q *Question) bool {
		return q.Policy.OnAbsent == score.AbsentCollect || q.Policy.OnAbsent == score.AbsentRestore
	}
)

// States.
var (
	replaces    fact = func(q *Question) bool { return q.Replaces }
	coldStart   fact = func(q *Question) bool { return q.ColdStart }
	fetchFailed fact = func(q *Question) bool { return q.FetchFailed }
	partial     fact = func(q *Question) bool { return q.Partial }
	uncertain   fact = func(q *Question) bool { return q.Uncertain }
	brake       fact = func(q *Question) bool { return q.Brake }
	blocked     fact = func(q *Question) bool { return q.Blocked }
	closed      fact = func(q *Question) bool { return q.Closed }
)
