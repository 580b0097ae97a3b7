package authority

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// An invariant says what an answer must be, in words of its own: nothing of the rules is
// used here. Of a question that it is about, the answer is want, or, if want is empty,
// anything but never.
type invariant struct {
	name        string
	about       func(*Question) bool
	want, never interpret.Decision
}

const (
	must    = interpret.DecideApply
	mustNot = interpret.DecideApply
)

// sound: nothing stands in the way of a change but its policy.
func sound(q *Question) bool {
	return !q.ColdStart && !q.FetchFailed && !q.Blocked && q.Cause != "whim" && q.Provenance != "found"
}

// benign changes lose nothing, and have a cause that is not absence or decommission.
func benign(q *Question) bool {
	return q.Effect == interpret.Mutate && q.Cause != interpret.CauseAbsent && q.Cause != interpret.CauseExplicit
}

// overwrites what is kept nowhere else.
func overwrites(q *Question) bool { return q.Provenance == interpret.Foreign && q.Replaces }

func byItself(q *Question) bool { return q.Given == None }

// taken away are things that were there.
func takenAway(q *Question) bool {
	return q.Effect == interpret.Remove || q.Effect == interpret.Destroy
}

// undone is what the transaction that is under way made, as the books prove.
func undone(q *Question) bool {
	return q.Provenance == interpret.Scratch && !q.Uncertain && q.Effect != interpret.Mutate
}

func hasCause(q *Question, causes ...interpret.Cause) bool {
	for _, c := range causes {
		if q.Cause == c {
			return true
		}
	}
	return false
}

func collectable(q *Question) bool {
	return sound(q) && q.Cause == interpret.CauseAbsent && (q.Effect == interpret.Remove || q.Effect == interpret.Nothing) &&
		q.Provenance == interpret.Owned && !q.Partial && !q.Uncertain
}

// invariants: those of the requirements, 3.3 in its order, and then the rest.
var invariants = []invariant{
	{"3.3.1 S23 K14: a cold start does nothing", func(q *Question) bool { return q.ColdStart }, interpret.DecideNothing, ""},
	{"3.3.2 S43 K15: of what could not be fetched nothing is done", func(q *Question) bool {
		return q.FetchFailed && !hasCause(q, interpret.CauseDrift, interpret.CauseLiveness, interpret.CauseDependency, interpret.CauseRollback)
	}, interpret.DecideNothing, ""},
	{"3.3.3 S13: absence never destroys", func(q *Question) bool {
		return q.Cause == interpret.CauseAbsent && q.Effect == interpret.Destroy
	}, "", mustNot},
	{"3.3.4 S14: absence from a part removes nothing", func(q *Question) bool {
		return q.Cause == interpret.CauseAbsent && q.Partial && !undone(q)
	}, "", mustNot},
	{"3.3.5 S17 K2: nobody destroys without a signature", func(q *Question) bool {
		return q.Effect == interpret.Destroy && q.Given != Signed && q.Given != Begun && !undone(q)
	}, "", mustNot},
	{"3.3.6 G10 G27 G28 K1: where nothing is granted nothing happens by itself", func(q *Question) bool {
		p := q.Policy
		return byItself(q) && p.OnIntent == score.IntentConfirm && p.OnDrift == score.DriftReport && p.OnFailure == score.FailureHold &&
			p.OnAbsent != score.AbsentCollect && !undone(q)
	}, "", mustNot},
	{"3.3.7 G11 K3: drift that is to be reported is reported", func(q *Question) bool {
		return sound(q) && byItself(q) && benign(q) && !overwrites(q) && q.Policy.OnDrift == score.DriftReport &&
			hasCause(q, interpret.CauseDrift, interpret.CauseLiveness)
	}, interpret.DecideReport, ""},
	{"G11 K3: and never corrected", func(q *Question) bool {
		return byItself(q) && q.Policy.OnDrift == score.DriftReport && hasCause(q, interpret.CauseDrift, interpret.CauseLiveness) && !undone(q)
	}, "", mustNot},
	{"3.3.8 H10 S37: what is wished and loses nothing is done", func(q *Question) bool {
		return sound(q) && benign(q) && !overwrites(q) && !q.Closed && q.Policy.OnIntent == score.IntentApply &&
			hasCause(q, interpret.CauseIntent, interpret.CauseDependency)
	}, must, ""},
	{"3.3.8 H10 K3: drift is corrected", func(q *Question) bool {
		return sound(q) && benign(q) && !overwrites(q) && !q.Closed && q.Policy.OnDrift == score.DriftCorrect &&
			hasCause(q, interpret.CauseDrift, interpret.CauseLiveness)
	}, must, ""},
	{"3.3.9 H55 K2: what is owned and absent is collected", func(q *Question) bool {
		return collectable(q) && q.Policy.OnAbsent == score.AbsentCollect && !q.Brake && !q.Closed
	}, must, ""},
	{"3.3.10: a wish that takes something away asks, unless the policy collects", func(q *Question) bool {
		return byItself(q) && q.Effect == interpret.Remove && (q.Policy.OnAbsent != score.AbsentCollect || q.Uncertain) && !undone(q)
	}, "", mustNot},
	{"3.3.11: nothing foreign is taken away", func(q *Question) bool {
		return sound(q) && q.Provenance == interpret.Foreign && (takenAway(q) || hasCause(q, interpret.CauseAbsent, interpret.CauseExplicit))
	}, interpret.DecideRefuse, ""},
	{"3.3.12 S34 K15: the last known intent holds while fetching fails", func(q *Question) bool {
		return q.FetchFailed && !q.ColdStart && !q.Blocked && q.Provenance == interpret.Owned && benign(q) && !q.Closed &&
			hasCause(q, interpret.CauseDrift, interpret.CauseLiveness) && q.Policy.OnDrift == score.DriftCorrect
	}, must, ""},
	{"S34 K15: and so does what follows from it", func(q *Question) bool {
		return q.FetchFailed && !q.ColdStart && !q.Blocked && q.Provenance == interpret.Owned && benign(q) && !q.Closed &&
			q.Cause == interpret.CauseDependency && q.Policy.OnIntent == score.IntentApply
	}, must, ""},

	// foreign content, K14
	{"nothing foreign is overwritten by itself", func(q *Question) bool { return byItself(q) && overwrites(q) }, "", mustNot},
	{"and that is a refusal", func(q *Question) bool { return sound(q) && byItself(q) && overwrites(q) }, interpret.DecideRefuse, ""},
	{"a person may have it overwritten", func(q *Question) bool {
		return sound(q) && benign(q) && overwrites(q) && !byItself(q)
	}, must, ""},
	{"what is foreign and is not overwritten may be set", func(q *Question) bool {
		return sound(q) && benign(q) && q.Cause == interpret.CauseIntent && q.Provenance == interpret.Foreign && !q.Replaces && !q.Closed &&
			q.Policy.OnIntent == score.IntentApply
	}, must, ""},

	// what nobody knows
	{"a cause that is not known is no reason", func(q *Question) bool { return q.Cause == "whim" }, "", mustNot},
	{"a provenance that is not known is not touched", func(q *Question) bool { return q.Provenance == "found" }, "", mustNot},
	{"and neither can be consented to", func(q *Question) bool {
		return (q.Cause == "whim" && !q.FetchFailed || q.Provenance == "found" && q.Cause != "whim" && !q.FetchFailed) && !q.ColdStart && !q.Blocked
	}, interpret.DecideRefuse, ""},

	// states
	{"S25: a blocked device changes nothing", func(q *Question) bool { return q.Blocked }, "", mustNot},
	{"S25: and says so", func(q *Question) bool { return q.Blocked && !q.ColdStart && !q.FetchFailed }, interpret.DecideReport, ""},
	{"lost books remove nothing that is absent", func(q *Question) bool { return q.Uncertain && q.Cause == interpret.CauseAbsent }, "", mustNot},
	{"lost books remove nothing by themselves", func(q *Question) bool { return q.Uncertain && byItself(q) && takenAway(q) }, "", mustNot},
	{"S14 K2: above the brake nothing is collected by itself", func(q *Question) bool {
		return q.Brake && byItself(q) && hasCause(q, interpret.CauseAbsent, interpret.CauseExplicit) && !undone(q)
	}, "", mustNot},
	{"S14: above the brake somebody is asked", func(q *Question) bool {
		return collectable(q) && q.Brake && q.Policy.OnAbsent == score.AbsentCollect && (q.Given == None || q.Given == Plan)
	}, interpret.DecidePending, ""},
	{"S14: and the answer counts", func(q *Question) bool {
		return collectable(q) && q.Policy.OnAbsent == score.AbsentCollect && q.Given == Signed
	}, must, ""},
	{"X103: nothing happens by itself while the window is closed", func(q *Question) bool {
		return q.Closed && byItself(q) && q.Cause != interpret.CauseRollback && !undone(q)
	}, "", mustNot},
	{"X103: what waits only for its window is pending", func(q *Question) bool {
		return sound(q) && q.Closed && byItself(q) && q.Cause == interpret.CauseIntent && benign(q) && !overwrites(q) && q.Policy.OnIntent == score.IntentApply
	}, interpret.DecidePending, ""},
	{"X103: a person does not wait", func(q *Question) bool { return sound(q) && benign(q) && !byItself(q) }, must, ""},

	// absence
	{"K2: only what is owned is collected", func(q *Question) bool {
		return q.Cause == interpret.CauseAbsent && q.Provenance != interpret.Owned && !undone(q) &&
			!(q.Effect == interpret.Nothing && q.Provenance == interpret.Adopted)
	}, "", mustNot},
	{"what was adopted and stays can be given up", func(q *Question) bool {
		return sound(q) && q.Cause == interpret.CauseAbsent && q.Effect == interpret.Nothing && q.Provenance == interpret.Adopted &&
			!q.Partial && !q.Uncertain && !q.Brake && !q.Closed && q.Policy.OnAbsent == score.AbsentCollect
	}, must, ""},
	{"K2 X104: what is not collected is reported, also to who confirms a plan", func(q *Question) bool {
		return collectable(q) && q.Policy.OnAbsent != score.AbsentCollect && q.Given != Begun && q.Given != Signed
	}, interpret.DecideReport, ""},
	{"X80 X104: what is only reported goes if a person signs for just that", func(q *Question) bool {
		return collectable(q) && q.Policy.OnAbsent == score.AbsentReport && q.Given == Signed
	}, must, ""},
	{"X104: what is released stays, whoever signs", func(q *Question) bool {
		return collectable(q) && q.Policy.OnAbsent == score.AbsentRelease && q.Given == Signed
	}, interpret.DecideReport, ""},
	{"K13: what was begun is removed whole", func(q *Question) bool { return collectable(q) && q.Given == Begun }, must, ""},
	{"what is absent and cannot be collected is reported", func(q *Question) bool {
		return sound(q) && q.Cause == interpret.CauseAbsent && q.Provenance != interpret.Foreign && !undone(q) &&
			(q.Effect == interpret.Mutate || q.Effect == interpret.Destroy || q.Partial || q.Uncertain)
	}, interpret.DecideReport, ""},

	// decommission, S13 S15 S38
	{"S17 S38: decommission is signed for, unless the policy collects and the thing is owned", func(q *Question) bool {
		return q.Cause == interpret.CauseExplicit && (q.Given == None || q.Given == Plan) && !undone(q) &&
			(q.Policy.OnAbsent != score.AbsentCollect || q.Provenance != interpret.Owned || q.Uncertain || q.Effect == interpret.Destroy || q.Effect == interpret.Mutate)
	}, "", mustNot},
	{"S17 S18: and until then it is pending, and no failure", func(q *Question) bool {
		return sound(q) && q.Cause == interpret.CauseExplicit && (q.Given == None || q.Given == Plan) && !undone(q) && q.Provenance != interpret.Foreign &&
			(q.Effect == interpret.Remove && q.Policy.OnAbsent != score.AbsentCollect || q.Effect == interpret.Destroy && q.Policy.OnDestroy == score.DestroySignature)
	}, interpret.DecidePending, ""},
	{"K2: what is owned is decommissioned where it would be collected", func(q *Question) bool {
		return sound(q) && q.Cause == interpret.CauseExplicit && q.Effect == interpret.Remove && q.Provenance == interpret.Owned && !q.Uncertain &&
			!q.Brake && !q.Closed && q.Policy.OnAbsent == score.AbsentCollect
	}, must, ""},
	{"S13: what is signed for is decommissioned", func(q *Question) bool {
		return sound(q) && q.Cause == interpret.CauseExplicit && q.Provenance != interpret.Foreign && q.Given == Signed &&
			(q.Effect != interpret.Destroy || q.Policy.OnDestroy == score.DestroySignature)
	}, must, ""},

	// destruction
	{"X104: never is never, also for what was begun", func(q *Question) bool {
		return q.Policy.OnDestroy == score.DestroyNever && q.Effect == interpret.Destroy && !undone(q)
	}, "", mustNot},
	{"X104: and no approval is asked for", func(q *Question) bool {
		return sound(q) && q.Policy.OnDestroy == score.DestroyNever && q.Effect == interpret.Destroy && !undone(q) && q.Cause != interpret.CauseAbsent
	}, interpret.DecideRefuse, ""},
	{"K13: what was begun is finished", func(q *Question) bool {
		return sound(q) && q.Given == Begun && q.Provenance == interpret.Owned && q.Cause != interpret.CauseAbsent &&
			(q.Effect != interpret.Destroy || q.Policy.OnDestroy == score.DestroySignature)
	}, must, ""},
	{"S17: destruction waits for its signature", func(q *Question) bool {
		return sound(q) && q.Effect == interpret.Destroy && q.Policy.OnDestroy == score.DestroySignature && q.Cause != interpret.CauseAbsent &&
			(q.Provenance == interpret.Owned || q.Provenance == interpret.Adopted) && (q.Given == None || q.Given == Plan)
	}, interpret.DecidePending, ""},
	{"X78: what this transaction made is undone without asking", func(q *Question) bool {
		return sound(q) && undone(q) && (q.Effect != interpret.Destroy || q.Cause != interpret.CauseAbsent)
	}, must, ""},

	// plans, G29 G32
	{"G27: a wish that the policy does not grant is pending", func(q *Question) bool {
		return sound(q) && byItself(q) && q.Policy.OnIntent == score.IntentConfirm && q.Cause == interpret.CauseIntent &&
			!overwrites(q) && q.Effect == interpret.Mutate
	}, interpret.DecidePending, ""},
	{"G27: and never done by itself", func(q *Question) bool {
		return byItself(q) && q.Policy.OnIntent == score.IntentConfirm && q.Cause == interpret.CauseIntent && !undone(q)
	}, "", mustNot},
	{"G27: what follows from a change is pending where nothing is changed by itself", func(q *Question) bool {
		return sound(q) && byItself(q) && q.Policy.OnIntent == score.IntentConfirm && q.Policy.OnDrift != score.DriftCorrect && q.Cause == interpret.CauseDependency &&
			!overwrites(q) && q.Effect == interpret.Mutate
	}, interpret.DecidePending, ""},
	{"H22: what follows from drift that was corrected is done", func(q *Question) bool {
		return sound(q) && byItself(q) && q.Policy.OnDrift == score.DriftCorrect && q.Cause == interpret.CauseDependency && !overwrites(q) && !q.Closed &&
			benign(q)
	}, must, ""},
	{"3.2.7: what is wished and takes something away is pending, and a plan lets it", func(q *Question) bool {
		return sound(q) && byItself(q) && q.Effect == interpret.Remove && !undone(q) && q.Provenance != interpret.Foreign &&
			hasCause(q, interpret.CauseIntent, interpret.CauseDependency) && q.Policy.OnAbsent != score.AbsentCollect
	}, interpret.DecidePending, ""},
	{"G32: a plan lets happen what loses no data", func(q *Question) bool {
		return sound(q) && q.Given == Plan && q.Effect == interpret.Remove && q.Provenance != interpret.Foreign &&
			q.Cause != interpret.CauseAbsent && q.Cause != interpret.CauseExplicit
	}, must, ""},
	{"3.2.7: converge takes away what a wish takes away", func(q *Question) bool {
		return sound(q) && q.Effect == interpret.Remove && q.Provenance == interpret.Owned && !q.Uncertain && !q.Closed &&
			q.Policy.OnAbsent == score.AbsentCollect && q.Policy.OnIntent == score.IntentApply && q.Cause == interpret.CauseIntent
	}, must, ""},
	{"a removal by drift is asked for, where drift is corrected", func(q *Question) bool {
		return sound(q) && byItself(q) && q.Effect == interpret.Remove && q.Provenance == interpret.Owned &&
			hasCause(q, interpret.CauseDrift, interpret.CauseLiveness) && q.Policy.OnDrift == score.DriftCorrect && q.Policy.OnAbsent != score.AbsentCollect
	}, interpret.DecidePending, ""},

	// rollback
	{"K9: nothing is rolled back that the policy does not roll back", func(q *Question) bool {
		return byItself(q) && q.Cause == interpret.CauseRollback && q.Policy.OnFailure != score.FailureRollBack && !undone(q)
	}, "", mustNot},
	{"K9: and that is reported", func(q *Question) bool {
		return sound(q) && byItself(q) && q.Cause == interpret.CauseRollback && q.Policy.OnFailure != score.FailureRollBack && !undone(q) &&
			q.Effect != interpret.Destroy && q.Provenance != interpret.Foreign
	}, interpret.DecideReport, ""},
	{"K9 X61: a rollback needs no person, no wish, no window, and nothing that would have to be fetched", func(q *Question) bool {
		return !q.ColdStart && !q.Blocked && q.Provenance != "found" && benign(q) && !overwrites(q) && q.Cause == interpret.CauseRollback &&
			q.Policy.OnFailure == score.FailureRollBack
	}, must, ""},
}

// failed returns the first invariant that an answer breaks.
func failed(q *Question, got interpret.Decision) *invariant {
	for i := range invariants {
		if inv := &invariants[i]; inv.about(q) && (inv.want != "" && got != inv.want || inv.never != "" && got == inv.never) {
			return inv
		}
	}
	return nil
}

// Every combination there is keeps every invariant: requirements 3.3; S13–S20, S25, S37,
// S38, G10, G11, G27, G28, X78, X104.
func TestEveryCombination(t *testing.T) {
	t.Parallel()
	asked := make([]int, len(invariants))
	decisions := map[interpret.Decision]int{}
	q := new(Question)
	for n := 0; n < number; n += every {
		ask(q, n)
		a := decide(rules, q)
		if why := broken(rules, q, a); why != "" {
			t.Fatalf("%s: %+v: %+v", why, *q, a)
		}
		if every == 1 && n%101 != 0 {
			continue
		}
		decisions[a.Decision]++
		for i := range invariants {
			if invariants[i].about(q) {
				asked[i]++
			}
		}
		applied := a.Decision == interpret.DecideApply
		if applied != (a.Authority != "") || applied == (a.Reason != "") || applied == (a.Code != "") {
			t.Fatalf("%+v: an answer has an authority, or a code and a reason: %+v", *q, a)
		}
	}
	for i, inv := range invariants {
		if asked[i] == 0 {
			t.Errorf("%s: was never asked", inv.name)
		}
	}
	for _, d := range []interpret.Decision{interpret.DecideApply, interpret.DecideReport, interpret.DecidePending, interpret.DecideRefuse, interpret.DecideNothing} {
		if decisions[d] == 0 {
			t.Errorf("nothing is %s", d)
		}
	}
}

// broken says what is wrong with a decision on q, if anything: an invariant, or that less
// in its way would not have let it happen.
func broken(by []rule, q *Question, got Answer) string {
	if inv := failed(q, got.Decision); inv != nil {
		return inv.name
	}
	if got.Code == CodeReleased && !(collectable(q) || q.Effect == interpret.Nothing && q.Provenance == interpret.Adopted && !q.Partial && !q.Uncertain) {
		return "K2: it is forgotten because it is absent from what is not known whole"
	}
	if got.Decision == interpret.DecideApply {
		return hindered(func() bool { return decide(by, q).Decision == interpret.DecideApply }, q)
	}
	return ""
}

// hindered changes q, which applies, by one thing after the other that can only help, and
// returns the one that does not. What is known to be wrong and every word of a policy can
// only take away, a one-shot authority can only add. Which of two is stricter is said here
// and nowhere else.
func hindered(applies func() bool, q *Question) string {
	for _, s := range states {
		if fact := s.of(q); *fact {
			*fact = false
			ok := applies()
			*fact = true
			if !ok {
				return "it applies only because of " + s.name
			}
		}
	}
	p := &q.Policy
	ok := loosened(&p.OnIntent, score.IntentApply, applies) && loosened(&p.OnDrift, score.DriftCorrect, applies) &&
		loosened(&p.OnAbsent, score.AbsentCollect, applies) && loosened(&p.OnDestroy, score.DestroySignature, applies) &&
		loosened(&p.OnFailure, score.FailureRollBack, applies)
	if !ok {
		return "it applies only because its policy is stricter"
	}
	if q.Provenance != interpret.Scratch && !loosened(&q.Provenance, interpret.Owned, applies) {
		return "it applies only because it is not owned"
	}
	switch q.Given {
	case None:
		ok = loosened(&q.Given, Plan, applies) && loosened(&q.Given, Signed, applies) && loosened(&q.Given, Begun, applies)
	case Plan:
		ok = loosened(&q.Given, Signed, applies)
	}
	if !ok {
		return "it applies only because nobody gave an authority"
	}
	return ""
}

func loosened[T comparable](word *T, to T, applies func() bool) bool {
	was := *word
	if was == to {
		return true
	}
	*word = to
	ok := applies()
	*word = was
	return ok
}

// Every word there is counts as one of the words that are enumerated: what nobody knows
// as the worst.
func TestWords(t *testing.T) {
	t.Parallel()
	type swap struct {
		name string
		do   func(q *Question) bool // reports whether the question is another one now
	}
	var swaps []swap
	add := func(name string, do func(q *Question) bool) { swaps = append(swaps, swap{name, do}) }
	for _, w := range []score.OnIntent{"", "Apply", "confirm "} {
		add("onIntent "+string(w), func(q *Question) bool {
			was := q.Policy.OnIntent
			q.Policy.OnIntent = w
			return was == score.IntentConfirm
		})
	}
	for _, w := range []score.OnDrift{score.DriftIgnore, "", "Correct"} {
		add("onDrift "+string(w), func(q *Question) bool {
			was := q.Policy.OnDrift
			q.Policy.OnDrift = w
			return was == score.DriftReport
		})
	}
	for _, w := range []score.OnAbsent{"", "Collect"} {
		add("onAbsent "+string(w), func(q *Question) bool {
			was := q.Policy.OnAbsent
			q.Policy.OnAbsent = w
			return was == score.AbsentReport
		})
	}
	add("secret", func(q *Question) bool { // what was rotated is a change that something follows from
		was := q.Cause
		q.Cause = interpret.CauseSecret
		return was == interpret.CauseDependency
	})
	add("restore", func(q *Question) bool {
		was := q.Policy.OnAbsent
		q.Policy.OnAbsent = score.AbsentRestore
		return was == score.AbsentCollect
	})
	for _, w := range []score.OnDestroy{"", "Signature"} {
		add("onDestroy "+string(w), func(q *Question) bool {
			was := q.Policy.OnDestroy
			q.Policy.OnDestroy = w
			return was == score.DestroyNever
		})
	}
	for _, w := range []score.OnFailure{score.FailureRollForward, "", "rollback"} {
		add("onFailure "+string(w), func(q *Question) bool {
			was := q.Policy.OnFailure
			q.Policy.OnFailure = w
			return was == score.FailureHold
		})
	}
	for _, w := range []interpret.Effect{interpret.Create, interpret.Disrupt} {
		add("effect "+string(w), func(q *Question) bool { was := q.Effect; q.Effect = w; return was == interpret.Mutate })
	}
	for _, w := range []interpret.Effect{"", "reformat", "Mutate"} {
		add("effect "+string(w), func(q *Question) bool { was := q.Effect; q.Effect = w; return was == interpret.Destroy })
	}
	for _, w := range []interpret.Cause{"", "Intent"} {
		add("cause "+string(w), func(q *Question) bool { was := q.Cause; q.Cause = w; return was == "whim" })
	}
	for _, w := range []interpret.Provenance{"", "Owned"} {
		add("provenance "+string(w), func(q *Question) bool { was := q.Provenance; q.Provenance = w; return was == "found" })
	}
	for _, w := range []Given{"sudo", "Signed"} {
		add("given "+string(w), func(q *Question) bool { was := q.Given; q.Given = w; return was == None })
	}
	q, other := new(Question), new(Question)
	for n := 0; n < number>>len(states); n += every {
		for _, bits := range []int{0, 1, 2, 4, 8, 16, 32, 64, 128} {
			ask(q, n<<len(states)|bits)
			want := decide(rules, q)
			for _, s := range swaps {
				*other = *q
				if !s.do(other) {
					continue
				}
				if got := decide(rules, other); got != want {
					t.Fatalf("%s: %+v: got %+v, want %+v", s.name, *other, got, want)
				}
			}
		}
	}
}

// What a person reads, and what a machine does.
func TestAnswers(t *testing.T) {
	tests := []struct {
		change func(*Question)
		want   string
	}{
		{func(*Question) {}, "apply by standing:converge"},
		{func(q *Question) { q.Given, q.Name = Plan, "0123" }, "apply by plan:0123"},
		{func(q *Question) { q.Given, q.Name = Begun, "standing:guarded" }, "apply by begun:standing:guarded"},
		{func(q *Question) { q.Given = "sudo" }, "apply by standing:converge"},
		{func(q *Question) { q.Provenance, q.Effect = interpret.Scratch, interpret.Remove }, "apply by transaction"},
		{func(q *Question) { q.ColdStart = true }, "nothing policy: no verified intent was ever seen"},
		{func(q *Question) { q.FetchFailed = true }, "nothing policy: the intent is not here whole"},
		{func(q *Question) { q.Blocked = true }, "report blocked: this device was told to only observe"},
		{func(q *Question) { q.Cause = "whim" }, "refuse policy: this version does not know why it would be done"},
		{func(q *Question) { q.Provenance = "" }, "refuse policy: this version does not know whose it is"},
		{func(q *Question) { q.Provenance, q.Effect = interpret.Foreign, interpret.Remove }, "refuse foreign: it is foreign, and nothing foreign is removed: adopt it first"},
		{func(q *Question) { q.Provenance, q.Replaces = interpret.Foreign, true }, "refuse foreign: it was there before and differs: adopt it (continuo adopt), or install a plan, which overwrites it after a backup (continuo install)"},
		{func(q *Question) { q.Cause, q.Effect = interpret.CauseAbsent, interpret.Destroy }, "report not_owned: absence alone destroys nothing: name it again with decommission: true"},
		{func(q *Question) { q.Cause, q.Effect, q.Uncertain = interpret.CauseAbsent, interpret.Remove, true }, "report not_owned: books were lost, and until they are made again nothing is removed because it is absent"},
		{func(q *Question) {
			q.Cause, q.Effect, q.Provenance = interpret.CauseAbsent, interpret.Remove, interpret.Adopted
		}, "report not_owned: it was there before and was adopted, so that no approval removes it while it is not named: give it up (continuo release), or name it again with decommission: true"},
		{func(q *Question) { q.Cause, q.Effect, q.Partial = interpret.CauseAbsent, interpret.Remove, true }, "report not_owned: what there is to be is not known whole, so that absence means nothing"},
		{func(q *Question) {
			q.Cause, q.Effect, q.Policy.OnAbsent = interpret.CauseAbsent, interpret.Remove, score.AbsentRelease
		}, "report released: the policy releases what is no longer named: it stays, and is the device's own"},
		{func(q *Question) {
			q.Cause, q.Effect, q.Policy.OnAbsent = interpret.CauseAbsent, interpret.Remove, score.AbsentReport
		}, "report orphaned: the policy reports what is no longer named, and removes nothing: a signed approval (continuo approve) lets it be removed"},
		{func(q *Question) { q.Effect, q.Policy.OnDestroy = interpret.Destroy, score.DestroyNever }, "refuse policy: the policy says that nothing is ever destroyed"},
		{func(q *Question) { q.Effect = interpret.Destroy }, "pending pending_signature: it cannot be made again: a signed approval has to let it happen"},
		{func(q *Question) { q.Cause, q.Effect, q.Brake = interpret.CauseAbsent, interpret.Remove, true }, "pending brake: more would be removed at once than a device does by itself: a signed approval has to let it happen"},
		{func(q *Question) {
			q.Cause, q.Effect, q.Provenance = interpret.CauseExplicit, interpret.Remove, interpret.Adopted
		}, "pending pending_signature: a signed approval has to let it be removed"},
		{func(q *Question) { q.Cause, q.Policy.OnDrift = interpret.CauseDrift, score.DriftReport }, "report policy: the policy reports drift and does not correct it"},
		{func(q *Question) { q.Policy.OnIntent = score.IntentConfirm }, "pending pending_confirm: a plan has to be confirmed: continuo plan, continuo install"},
		{func(q *Question) { q.Cause = interpret.CauseRollback }, "report policy: the policy does not roll back"},
		{func(q *Question) { q.Effect, q.Policy.OnAbsent = interpret.Remove, score.AbsentReport }, "pending pending_confirm: it removes something, and the policy does not: confirm a plan (continuo plan, continuo install)"},
		{func(q *Question) { q.Closed = true }, "pending pending_window: it waits for the window of its policy"},
	}
	reasons := map[string]bool{}
	for _, tt := range tests {
		q := Question{
			Policy: score.Policy{Preset: score.Converge}.Filled(), Cause: interpret.CauseIntent,
			Effect: interpret.Mutate, Provenance: interpret.Owned,
		}
		tt.change(&q)
		a := Decide(q)
		got := fmt.Sprintf("%s %s: %s", a.Decision, a.Code, a.Reason)
		if a.Decision == interpret.DecideApply {
			got = "apply by " + a.Authority
		}
		if got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
		reasons[a.Reason] = true
	}
	for _, r := range rules {
		if !reasons[r.answer.Reason] {
			t.Errorf("nobody has read %q", r.answer.Reason)
		}
	}
	if a := decide(nil, &Question{}); a.Decision != interpret.DecideRefuse || strings.TrimSpace(a.Reason) == "" {
		t.Errorf("without rules: %+v", a)
	}
	if names := ruleNames(); len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Errorf("two rules have one name: %q", names)
	}
}

func ruleNames() (names []string) {
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}
