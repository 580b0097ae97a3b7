package authority

import (
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// One word for everything that a rule can tell apart, and a word that nobody knows. What
// the other words mean, TestWords shows.
var (
	onIntents  = []score.OnIntent{score.IntentApply, score.IntentConfirm}
	onDrifts   = []score.OnDrift{score.DriftCorrect, score.DriftReport}
	onAbsents  = []score.OnAbsent{score.AbsentCollect, score.AbsentRelease, score.AbsentReport}
	onDestroys = []score.OnDestroy{score.DestroySignature, score.DestroyNever}
	onFailures = []score.OnFailure{score.FailureRollBack, score.FailureHold}

	causes = []interpret.Cause{
		interpret.CauseIntent, interpret.CauseDrift, interpret.CauseDependency, interpret.CauseAbsent, interpret.CauseExplicit,
		interpret.CauseLiveness, interpret.CauseRollback, "whim",
	}
	effects     = []interpret.Effect{interpret.Nothing, interpret.Mutate, interpret.Remove, interpret.Destroy}
	provenances = []interpret.Provenance{interpret.Owned, interpret.Adopted, interpret.Foreign, interpret.Scratch, "found"}
	givens      = []Given{None, Plan, Signed, Begun}
)

// states are the facts that can be true or not, Replaces among them.
var states = []struct {
	name string
	of   func(*Question) *bool
}{
	{"coldStart", func(q *Question) *bool { return &q.ColdStart }},
	{"fetchFailed", func(q *Question) *bool { return &q.FetchFailed }},
	{"partial", func(q *Question) *bool { return &q.Partial }},
	{"uncertain", func(q *Question) *bool { return &q.Uncertain }},
	{"brake", func(q *Question) *bool { return &q.Brake }},
	{"blocked", func(q *Question) *bool { return &q.Blocked }},
	{"closed", func(q *Question) *bool { return &q.Closed }},
	{"replaces", func(q *Question) *bool { return &q.Replaces }},
}

// policies are all there are, as far as rules can tell them apart.
var policies = func() (all []score.Policy) {
	for _, i := range onIntents {
		for _, d := range onDrifts {
			for _, a := range onAbsents {
				for _, x := range onDestroys {
					for _, f := range onFailures {
						all = append(all, score.Policy{Preset: "p", OnIntent: i, OnDrift: d, OnAbsent: a, OnDestroy: x, OnFailure: f})
					}
				}
			}
		}
	}
	return all
}()

// number of questions.
var number = len(policies) * len(causes) * len(effects) * len(provenances) * len(givens) << len(states)

// question is the nth of them.
func question(n int) (q Question) {
	*states[0].of(&q), *states[1].of(&q), *states[2].of(&q), *states[3].of(&q) = n&1 != 0, n&2 != 0, n&4 != 0, n&8 != 0
	*states[4].of(&q), *states[5].of(&q), *states[6].of(&q), *states[7].of(&q) = n&16 != 0, n&32 != 0, n&64 != 0, n&128 != 0
	n >>= len(states)
	next := func(size int) (i int) {
		i, n = n%size, n/size
		return i
	}
	q.Given = givens[next(len(givens))]
	q.Cause = causes[next(len(causes))]
	q.Effect = effects[next(len(effects))]
	q.Provenance = provenances[next(len(provenances))]
	q.Policy = policies[next(len(policies))]
	return q
}

// stride is prime to number, so that n*stride runs through all questions, and soon
// through very different ones.
const stride = 1_000_003
