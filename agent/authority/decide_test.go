package authority

import (
	"fmt"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

var (
	presets     = []score.Preset{score.Converge, "guarded", "reviewed", "Converge", ""}
	causes      = []interpret.Cause{interpret.CauseIntent, interpret.CauseDrift, interpret.CauseDependency, interpret.CauseAbsent, "explicit", ""}
	effects     = []interpret.Effect{interpret.Create, interpret.Mutate, interpret.Disrupt, interpret.Remove, interpret.Destroy, "reformat", ""}
	provenances = []Provenance{Owned, Adopted, Foreign, "scratch", ""}
)

// all calls f with every combination.
func all(f func(Question)) (n int) {
	for _, preset := range presets {
		for _, cause := range causes {
			for _, effect := range effects {
				for _, provenance := range provenances {
					for bits := range 1 << 5 {
						f(Question{preset, cause, effect, provenance, bits&1 != 0, bits&2 != 0, bits&4 != 0, bits&8 != 0, bits&16 != 0})
						n++
					}
				}
			}
		}
	}
	return n
}

// An invariant says what an answer must not be, or must be, in words of its own.
type invariant struct {
	name string
	when func(Question) bool
	want func(Answer) bool
}

func (q Question) absent() bool { return q.Cause == interpret.CauseAbsent }

// benign changes are made because somebody wants them, and lose nothing.
func (q Question) benign() bool {
	return strings.Contains("intent drift dependency", string(q.Cause)) && q.Cause != "" &&
		strings.Contains("create mutate disrupt", string(q.Effect)) && q.Effect != ""
}

func never(a Answer) func(Answer) bool { return func(got Answer) bool { return got != a } }
func always(a Answer) func(Answer) bool {
	return func(got Answer) bool { return got == a }
}

// Those of requirements 3.3 that this version can meet, and what fails closed.
var invariants = []invariant{
	{"cold start does nothing (S23)", func(q Question) bool { return q.ColdStart }, always(Nothing)},
	{"a blocked device changes nothing (S25)", func(q Question) bool { return q.Blocked }, never(Apply)},
	{"a preset that is not known applies nothing", func(q Question) bool { return q.Preset != score.Converge }, never(Apply)},
	{"a cause that is not known applies nothing", func(q Question) bool { return !q.absent() && !q.benign() }, never(Apply)},
	{"destruction is never applied", func(q Question) bool { return q.Effect == interpret.Destroy }, never(Apply)},
	{"an effect that is not known counts as destruction", func(q Question) bool { return q.Effect == "reformat" || q.Effect == "" }, never(Apply)},
	{"absence never destroys (S13)", func(q Question) bool { return q.absent() && q.Effect != interpret.Remove }, never(Apply)},
	{"a partial list removes nothing (S14)", func(q Question) bool { return q.Partial && (q.absent() || q.Effect == interpret.Remove) }, never(Apply)},
	{"uncertain books remove nothing (cases 123)", func(q Question) bool { return q.Uncertain && (q.absent() || q.Effect == interpret.Remove) }, never(Apply)},
	{"the brake holds (cases 124)", func(q Question) bool { return q.Brake && q.absent() }, never(Apply)},
	{"above the brake a person is asked", func(q Question) bool { return q.Brake && collects(q) }, always(Pending)},
	{"only what is owned is collected", func(q Question) bool { return q.absent() && q.Provenance != Owned }, never(Apply)},
	{"foreign things are never removed", func(q Question) bool {
		return q.Provenance == Foreign && (q.absent() || !q.benign())
	}, never(Apply)},
	{"removing foreign things is refused, not pending", func(q Question) bool {
		return q.Provenance == Foreign && (q.absent() || q.Effect == interpret.Remove || q.Effect == interpret.Destroy) && !q.ColdStart && !q.Blocked
	}, always(Refuse)},
	{"converge converges benign work (H10)", func(q Question) bool {
		return q.Preset == score.Converge && q.benign() && !q.ColdStart && !q.Blocked
	}, always(Apply)},
	{"converge collects (H55)", func(q Question) bool { return collects(q) && !q.Brake }, always(Apply)},
}

func collects(q Question) bool {
	return q.Preset == score.Converge && q.absent() && q.Effect == interpret.Remove && q.Provenance == Owned &&
		!q.Partial && !q.Uncertain && !q.ColdStart && !q.Blocked
}

func TestEveryCombination(t *testing.T) {
	applied, used := 0, map[string]int{}
	n := all(func(q Question) {
		d := Decide(q)
		if d.Answer == Apply {
			applied++
		}
		for _, inv := range invariants {
			if inv.when(q) {
				used[inv.name]++
				if !inv.want(d.Answer) {
					t.Fatalf("%s: %+v is %q", inv.name, q, d.Answer)
				}
			}
		}
		if (d.Answer == Apply) != (d.Authority == "standing:"+string(q.Preset)) || (d.Answer == Apply) == (d.Reason != "") {
			t.Fatalf("%+v: an answer needs an authority or a reason, not both: %+v", q, d)
		}
	})
	for _, inv := range invariants {
		if used[inv.name] == 0 {
			t.Errorf("%s: was never asked", inv.name)
		}
	}
	if n != 33600 || applied != 361 {
		t.Errorf("%d of %d combinations apply", applied, n)
	}
}

// Whatever is known to be wrong can only take an authority away.
func TestStatesOnlyRestrict(t *testing.T) {
	all(func(q Question) {
		if Decide(q).Answer == Apply {
			return
		}
		for i, worse := range []Question{q, q, q, q, q} {
			*[]*bool{&worse.ColdStart, &worse.Partial, &worse.Uncertain, &worse.Brake, &worse.Blocked}[i] = true
			if Decide(worse).Answer == Apply {
				t.Fatalf("%+v applies, %+v does not", worse, q)
			}
		}
	})
}

// What a person reads.
func TestReasons(t *testing.T) {
	ask := func(change func(*Question)) string {
		q := Question{Preset: score.Converge, Cause: interpret.CauseIntent, Effect: interpret.Mutate, Provenance: Owned}
		change(&q)
		d := Decide(q)
		return fmt.Sprintf("%s: %s%s", d.Answer, d.Authority, d.Reason)
	}
	tests := []struct {
		change func(*Question)
		want   string
	}{
		{func(*Question) {}, "apply: standing:converge"},
		{func(q *Question) { q.ColdStart = true }, "nothing: no verified intent was ever seen"},
		{func(q *Question) { q.Blocked = true }, "report: this device was told to only observe"},
		{func(q *Question) { q.Provenance, q.Effect = Foreign, interpret.Remove }, "refuse: it is foreign: adopt it first"},
		{func(q *Question) { q.Cause, q.Effect, q.Partial = interpret.CauseAbsent, interpret.Remove, true }, "report: absence alone does not remove it"},
		{func(q *Question) { q.Preset = "reviewed" }, `pending: no standing authority under preset "reviewed"`},
		{func(q *Question) { q.Cause, q.Effect, q.Brake = interpret.CauseAbsent, interpret.Remove, true }, "pending: more would be removed at once than a device does by itself"},
		{func(q *Question) { q.Effect = interpret.Destroy }, "pending: destruction needs a signed approval"},
	}
	for _, tt := range tests {
		if got := ask(tt.change); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
