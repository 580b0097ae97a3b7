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
						all = append(all, score.Policy{OnIntent: i, OnDrift: d, OnAbsent: a, OnDestroy: x, OnFailure: f})
					}
				}
			}
		}
	}
	return all
}()

// number of questions.
var number = len(policies) * len(causes) * len(effects) * len(provenances) * len(givens) << len(states)

// ask makes q the nth of them.
func ask(q *Question, n int) {
	for _, s := range states {
		*s.of(q), n = n&1 != 0, n>>1
	}
	next := func(size int) (i int) {
		i, n = n%size, n/size
		return i
	}
	q.Given = givens[next(len(givens))]
	q.Cause = causes[next(len(causes))]
	q.Effect = effects[next(len(effects))]
	q.Provenance = provenances[next(len(provenances))]
	p := &policies[next(len(policies))]
	q.Policy.OnIntent, q.Policy.OnDrift, q.Policy.OnAbsent, q.Policy.OnDestroy, q.Policy.OnFailure = p.OnIntent, p.OnDrift, p.OnAbsent, p.OnDestroy, p.OnFailure
}

// stride is prime to number, so that n*stride runs through all questions, and soon
// through very different ones.
const stride = 1_000_003
