package authority

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
)

// A mutant is the rules with one thing changed: rule is the first that is another one.
type mutant struct {
	name  string
	rule  int
	rules []rule
}

// mutants are all that one change makes of rules: a rule left out, asked after the next
// one, or answering otherwise; a term or a part of one negated, true always, or never; any
// instead of all.
func mutants() (out []mutant) {
	add := func(i int, how string, change func([]rule) []rule) {
		out = append(out, mutant{rules[i].name + ": " + how, i, change(slices.Clone(rules))})
	}
	for i, r := range rules {
		add(i, "left out", func(rs []rule) []rule { return slices.Delete(rs, i, i+1) })
		if i+1 < len(rules) {
			add(i, "asked after the next", func(rs []rule) []rule { rs[i], rs[i+1] = rs[i+1], rs[i]; return rs })
		}
		for _, d := range []interpret.Decision{interpret.DecideApply, interpret.DecideReport, interpret.DecidePending, interpret.DecideRefuse, interpret.DecideNothing} {
			if d != r.answer.Decision {
				add(i, "answers "+string(d), func(rs []rule) []rule { rs[i].answer.Decision = d; return rs })
			}
		}
		vary(r.when, "", func(how string, t term) {
			add(i, how, func(rs []rule) []rule { rs[i].when = all{t}; return rs })
		})
	}
	return out
}

var (
	always fact = func(*Question) bool { return true }
	never  fact = func(*Question) bool { return false }
)

// vary calls f with every term that is t but for one change.
func vary(t term, at string, f func(how string, t term)) {
	f(at+" always", always)
	f(at+" never", never)
	f(at+" negated", not{t})
	parts := func(ts []term, whole func([]term) term) {
		for i, part := range ts {
			if len(ts) == 1 {
				at = at + ".only"
			}
			vary(part, fmt.Sprintf("%s.%d", at, i), func(how string, t term) {
				others := slices.Clone(ts)
				others[i] = t
				f(how, whole(others))
			})
		}
	}
	switch t := t.(type) {
	case all:
		if len(t) > 1 {
			f(at+" any", either(t))
		}
		parts(t, func(ts []term) term { return all(ts) })
	case either:
		f(at+" all", all(t))
		parts(t, func(ts []term) term { return either(ts) })
	case not:
		vary(t.term, at+".not", func(how string, t term) { f(how, not{t}) })
	}
}

// sample are the questions that mutants are asked, and which rule answers each: all but
// those of a cold start that has something else in its way as well.
func sample() (questions []int, by []uint8) {
	q := new(Question)
	for n := 0; n < number; n += every {
		k := int((uint64(n) * stride) % uint64(number))
		ask(q, k)
		if q.ColdStart && (q.FetchFailed || q.Blocked) {
			continue
		}
		i := slices.IndexFunc(rules, func(r rule) bool { return r.when.holds(q) })
		questions, by = append(questions, k), append(by, uint8(i))
	}
	return questions, by
}

// equivalent are the mutants that decide everything as the rules do, and why.
var equivalent = map[string]string{
	"nothing is planned before the first verified intent: asked after the next":                   "both say that nothing is planned",
	"a cause that is not known is no reason: asked after the next":                                "both refuse: which is said first does not matter",
	"what nobody can place is not touched: asked after the next":                                  "they are about other provenances",
	"nothing foreign is removed: asked after the next":                                            "both refuse: which is said first does not matter",
	"nothing foreign is overwritten by itself: asked after the next":                              "what is foreign and absent is answered before both",
	"absence does nothing but remove: asked after the next":                                       "both report: which is said first does not matter",
	"lost books prove nothing: asked after the next":                                              "both report: which is said first does not matter",
	"what was adopted is not made again: asked after the next":                                    "they are about other provenances",
	"what is only reported stays: asked after the next":                                           "what is absent and destroys is answered before both",
	"above the brake removal is signed for: asked after the next":                                 "one is about what is signed, and the other about what is not",
	"drift is corrected only if the policy says so: asked after the next":                         "they are about other causes",
	"a wish is applied only if the policy says so: asked after the next":                          "they are about other causes",
	"what follows from a change is done if the policy lets changes be made: asked after the next": "they are about other causes",
	"removal is confirmed, unless the policy collects: asked after the next":                      "both wait: for what first does not matter",
	"what is left the policy covers:  always":                                                     lastRule,
	"what is left the policy covers: .only.0 always":                                              lastRule,
	"what is left the policy covers: .only.0.0 always":                                            lastRule,
	"what is left the policy covers: .only.0.1 always":                                            lastRule,
	"what is left the policy covers: .only.0.2 always":                                            lastRule,
	"what is left the policy covers: .only.0.3 always":                                            lastRule,
	"what is left the policy covers: .only.0.4 always":                                            lastRule,
	"what is left the policy covers: .only.0.5 always":                                            lastRule,
	"what is left the policy covers: .only.0.6 always":                                            lastRule,
}

const lastRule = "a cause that is not known is refused before: that it is asked for once more is a second lock"

// Any change of any single rule breaks an invariant, or changes nothing that matters.
// What is decided must break an invariant: the golden file says that something is
// different, not that it is wrong. What is only said is compared with the golden file.
func TestAnyMutantIsCaught(t *testing.T) {
	t.Parallel()
	questions, by := sample()
	q := new(Question)
	said := decisions(rules)
	left := maps.Clone(equivalent)
	all := mutants()
	same := 0
	for _, m := range all {
		caught := false
		decided, words := "", ""
		for j, n := range questions {
			if int(by[j]) < m.rule {
				continue // answered before the mutant
			}
			ask(q, n)
			was, is := decide(rules, q), decide(m.rules, q)
			if was == is {
				continue
			}
			if caught = broken(m.rules, q, is) != ""; caught {
				break
			}
			if was.Decision != is.Decision && decided == "" {
				decided = fmt.Sprintf("%+v: %v, not %v", *q, is, was)
			}
			if words == "" {
				words = fmt.Sprintf("%+v: %v, not %v", *q, is, was)
			}
		}
		if !caught && decided == "" && words != "" {
			caught = decisions(m.rules) != said
		}
		why, listed := equivalent[m.name]
		delete(left, m.name)
		switch {
		case caught && listed && every == 1:
			t.Errorf("%s is listed as no other rule (%s), and is one", m.name, why)
		case !caught && decided != "":
			t.Errorf("%s: nobody noticed: %s", m.name, decided)
		case !caught && !listed && every == 1:
			t.Errorf("%s: it decides nothing otherwise, and is not listed with the reason: %s", m.name, words)
		case !caught:
			same++
		}
	}
	for name := range left {
		t.Errorf("%s: there is no such mutant", name)
	}
	t.Logf("%d mutants of %d rules were asked %d questions; %d are no other rules", len(all), len(rules), len(questions), same)
}
