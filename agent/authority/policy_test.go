package authority

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// A field is one word of a policy, and what it lets a device do.
type field struct {
	name   string
	words  []string
	set    func(*score.Policy, string)
	grants func(score.Policy) int // the higher, the more
}

// order ranks words from the strictest; every other word grants nothing.
func order(strictest ...string) func(string) int {
	return func(w string) int {
		for i, o := range strictest {
			if o == w {
				return i
			}
		}
		return 0
	}
}

var fields = []field{
	{"onIntent", []string{"", "apply", "confirm", "Apply"}, func(p *score.Policy, w string) { p.OnIntent = score.OnIntent(w) },
		func(p score.Policy) int { return order("confirm", "apply")(string(p.OnIntent)) }},
	{"onDrift", []string{"", "correct", "report", "ignore", "Correct"}, func(p *score.Policy, w string) { p.OnDrift = score.OnDrift(w) },
		func(p score.Policy) int { return order("report", "correct")(string(p.OnDrift)) }},
	{"onAbsent", []string{"", "collect", "restore", "release", "report", "Collect"}, func(p *score.Policy, w string) { p.OnAbsent = score.OnAbsent(w) },
		func(p score.Policy) int {
			return map[score.OnAbsent]int{score.AbsentRelease: 1, score.AbsentCollect: 2, score.AbsentRestore: 2}[p.OnAbsent]
		}},
	{"onDestroy", []string{"", "signature", "never", "Signature"}, func(p *score.Policy, w string) { p.OnDestroy = score.OnDestroy(w) },
		func(p score.Policy) int { return order("never", "signature")(string(p.OnDestroy)) }},
	{"onFailure", []string{"", "hold", "rollForward", "rollBack", "rollback"}, func(p *score.Policy, w string) { p.OnFailure = score.OnFailure(w) },
		func(p score.Policy) int { return order("hold", "rollBack")(string(p.OnFailure)) }},
}

// of are all policies with a preset and a word of one field.
func (f field) of() (all []score.Policy) {
	for _, preset := range []score.Preset{"", score.Converge, score.Guarded, score.Reviewed, "Converge"} {
		for _, w := range f.words {
			p := score.Policy{Preset: preset}
			f.set(&p, w)
			all = append(all, p)
		}
	}
	return all
}

// Whatever a ceiling or a score say, for each field and each preset, they only take away
// from what the manifest grants by itself; and that less of a word lets nothing more
// happen, TestEveryCombination shows. The one exception is a score that is rolled back
// where its manifest is not: of onFailure the nearest word counts.
func TestCeilingAndScoreOnlyRestrict(t *testing.T) { // G10, K1: no reviewed device converges from outside
	for _, f := range fields {
		for _, m := range f.of() {
			alone := Effective(nil, m, nil)
			for _, a := range f.of() {
				down, by := Effective(&a, m, nil), Effective(nil, m, &a)
				for _, g := range fields {
					if g.grants(down) > g.grants(alone) {
						t.Fatalf("ceiling %+v lets %s of %+v do more: %+v", a, g.name, m, down)
					}
					if g.grants(by) > g.grants(alone) && (g.name != "onFailure" || a.OnFailure != score.FailureRollBack) {
						t.Fatalf("score %+v lets %s of %+v do more: %+v", a, g.name, m, by)
					}
					if g.name != "onFailure" && g.grants(down) != g.grants(by) {
						t.Fatalf("%s: %+v restricts %+v to %+v as a ceiling, and to %+v as a score", g.name, a, m, down, by)
					}
					if bound := Effective(nil, a, nil); a.Preset != "" && g.name != "onFailure" && g.grants(down) > g.grants(bound) {
						t.Fatalf("%s: ceiling %+v does not bound %+v: %+v", g.name, a, m, down)
					}
				}
				for _, b := range f.of() {
					ab, ba := Effective(&a, m, &b), Effective(&b, m, &a)
					for _, g := range fields[:4] {
						if g.grants(ab) != g.grants(ba) {
							t.Fatalf("%s: the order of %+v and %+v matters", g.name, a, b)
						}
						if g.grants(ab) > min(g.grants(Effective(&a, m, nil)), g.grants(Effective(nil, m, &b))) {
							t.Fatalf("%s: %+v, %+v and %+v give %+v", g.name, a, m, b, ab)
						}
					}
					if ab.OnFailure == score.FailureRollBack && Effective(&a, score.Policy{OnFailure: score.FailureRollBack}, nil).OnFailure != score.FailureRollBack {
						t.Fatalf("a score got round the ceiling %+v", a)
					}
				}
				once := Effective(&a, m, &a)
				if twice := Effective(&a, once, &a); fmt.Sprint(words(twice)) != fmt.Sprint(words(once)) {
					t.Fatalf("twice is not once: %+v, then %+v", words(once), words(twice))
				}
			}
		}
	}
}

func words(p score.Policy) []string {
	return []string{string(p.Preset), string(p.OnIntent), string(p.OnDrift), string(p.OnAbsent), string(p.OnDestroy), string(p.OnFailure)}
}

func TestEffective(t *testing.T) {
	tests := []struct {
		name               string
		ceiling            *score.Policy
		manifest           score.Policy
		of                 *score.Policy
		want               string
		deadline           time.Duration
		removals, ofTwenty int
	}{
		{"nothing is said", nil, score.Policy{}, nil, "[guarded apply correct report signature hold]", 10 * time.Minute, 5, 5},
		{"an empty ceiling", &score.Policy{}, score.Policy{Preset: score.Converge}, &score.Policy{}, "[converge apply correct collect signature hold]", 10 * time.Minute, 5, 5},
		{"a word of the manifest", nil, score.Policy{Preset: score.Converge, OnAbsent: score.AbsentRestore, OnFailure: score.FailureRollBack, Deadline: score.Duration(time.Minute)}, nil,
			"[converge apply correct restore signature rollBack]", time.Minute, 5, 5},
		{"a reviewed device", &score.Policy{Preset: score.Reviewed}, score.Policy{Preset: score.Converge, OnFailure: score.FailureRollBack}, &score.Policy{OnFailure: score.FailureRollBack},
			"[reviewed confirm report report signature hold]", 10 * time.Minute, 5, 5},
		{"a device that holds", &score.Policy{OnFailure: score.FailureHold}, score.Policy{OnFailure: score.FailureRollBack}, nil, "[guarded apply correct report signature hold]", 10 * time.Minute, 5, 5},
		{"a guarded device may roll back", &score.Policy{Preset: score.Guarded}, score.Policy{Preset: score.Converge, OnFailure: score.FailureRollBack}, nil,
			"[guarded apply correct report signature rollBack]", 10 * time.Minute, 5, 5},
		{"the nearest onFailure, and the deadline of the manifest", nil, score.Policy{OnFailure: score.FailureRollBack}, &score.Policy{OnFailure: score.FailureRollForward, Deadline: score.Duration(time.Hour)},
			"[guarded apply correct report signature rollForward]", 10 * time.Minute, 5, 5},
		{"a reviewed score", nil, score.Policy{Preset: score.Converge, OnFailure: score.FailureRollBack}, &score.Policy{Preset: score.Reviewed}, "[reviewed confirm report report signature hold]", 10 * time.Minute, 5, 5},
		{"a reviewed score that says so", nil, score.Policy{Preset: score.Converge}, &score.Policy{Preset: score.Reviewed, OnFailure: score.FailureRollBack},
			"[reviewed confirm report report signature rollBack]", 10 * time.Minute, 5, 5},
		{"one word", nil, score.Policy{Preset: score.Converge}, &score.Policy{OnDrift: score.DriftIgnore, OnDestroy: score.DestroyNever}, "[converge apply ignore collect never hold]", 10 * time.Minute, 5, 5},
		{"brakes", &score.Policy{Brake: &score.Brake{MaxRemovals: new(2)}}, score.Policy{Brake: &score.Brake{MaxFraction: new(0.5)}}, nil, "[guarded apply correct report signature hold]", 10 * time.Minute, 2, 10},
		{"the lower brake of each", &score.Policy{Brake: &score.Brake{MaxFraction: new(0.1)}}, score.Policy{Brake: &score.Brake{MaxRemovals: new(1), MaxFraction: new(0.5)}}, nil, "[guarded apply correct report signature hold]", 10 * time.Minute, 1, 2},
		{"a brake of the ceiling loosens nothing", &score.Policy{Brake: &score.Brake{MaxRemovals: new(50), MaxFraction: new(1.0)}}, score.Policy{}, nil, "[guarded apply correct report signature hold]", 10 * time.Minute, 5, 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Effective(tt.ceiling, tt.manifest, tt.of)
			if got := fmt.Sprint(words(p)); got != tt.want || time.Duration(p.Deadline) != tt.deadline {
				t.Errorf("got %s %s, want %s %s", got, p.Deadline, tt.want, tt.deadline)
			}
			if few, many := Brake(p, 1), Brake(p, 20); few != tt.removals || many != tt.ofTwenty {
				t.Errorf("the brake lets %d of 1 and %d of 20 go, want %d and %d", few, many, tt.removals, tt.ofTwenty)
			}
		})
	}
}

// The larger of the two bounds counts, and nonsense is no bound that lets more go.
func TestBrake(t *testing.T) { // S14: 49 of 50 trip it
	tests := []struct {
		removals    *int
		fraction    *float64
		owned, want int
	}{
		{nil, nil, 0, 5}, {nil, nil, 24, 5}, {nil, nil, 25, 5}, {nil, nil, 30, 6}, {nil, nil, 50, 10}, {nil, nil, 1000, 200},
		{new(0), new(0.0), 1000, 0}, {new(0), new(0.29), 100, 29}, {new(0), new(0.2), 4, 0}, {new(0), new(1.0), 7, 7},
		{new(3), new(0.0), 1000, 3}, {new(-1), new(-0.5), 100, 0}, {new(0), new(math.NaN()), 100, 0}, {new(0), new(7.0), 10, 10},
		{new(0), new(math.Inf(1)), 10, 10}, {new(0), new(0.5), -3, 0},
	}
	for _, tt := range tests {
		if got := Brake(score.Policy{Brake: &score.Brake{MaxRemovals: tt.removals, MaxFraction: tt.fraction}}, tt.owned); got != tt.want {
			t.Errorf("%+v: got %d", tt, got)
		}
	}
	if got := Brake(score.Policy{}, 50); got != 10 {
		t.Errorf("without a brake: got %d", got)
	}
}

// What is given is not changed, and shares nothing with what is returned.
func TestEffectiveCopies(t *testing.T) {
	m := score.Policy{Brake: &score.Brake{MaxRemovals: new(9)}, Window: &score.Window{Cron: "0 2 * * *", Duration: score.Duration(time.Hour)}}
	p := Effective(&score.Policy{Brake: &score.Brake{MaxRemovals: new(3)}}, m, nil)
	p.Window.Cron = "never"
	if *m.Brake.MaxRemovals != 9 || m.Brake.MaxFraction != nil || m.Window.Cron != "0 2 * * *" {
		t.Errorf("the manifest was changed: %+v", m)
	}
}
