package agent_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// wilds make random devices and assignments, out of few things, so that they meet.
type wilds struct{ *rand.Rand }

func pick[T any](w wilds, of ...T) T { return of[w.IntN(len(of))] }

func (w wilds) policy() score.Policy {
	return score.Policy{
		Preset:   pick(w, score.Converge, score.Guarded, score.Reviewed),
		OnIntent: pick(w, "", "", score.IntentApply, score.IntentConfirm), OnDrift: pick(w, "", score.DriftCorrect, score.DriftReport, score.DriftIgnore),
		OnAbsent: pick(w, "", score.AbsentCollect, score.AbsentRestore, score.AbsentRelease, score.AbsentReport),
	}
}

func (w wilds) scores(taken map[string]bool) (out []score.Score) {
	for i := range 1 + w.IntN(6) {
		id := score.ID(fmt.Sprintf("s%d", i))
		var after []score.ID
		if i > 0 && w.IntN(3) == 0 {
			after = append(after, score.ID(fmt.Sprintf("s%d", w.IntN(i))))
		}
		s := file(id, fmt.Sprintf("/etc/f%d", w.IntN(12)), pick(w, "1", "2"), after...)
		if w.IntN(4) == 0 {
			s = service(id, fmt.Sprintf("u%d.service", w.IntN(3)), after...)
		}
		claim := string(s.Spec.Claims()[0])
		if taken[claim] {
			return out
		}
		taken[claim] = true
		s.Decommission = w.IntN(12) == 0 && len(after) == 0
		if w.IntN(6) == 0 {
			s.Policy = new(w.policy())
			s.Policy.Preset = ""
		}
		if w.IntN(15) == 0 {
			s.Engine = &score.Engine{Noop: true}
		}
		out = append(out, s)
	}
	return out
}

func (w wilds) manifests(generation uint64) (out []score.Manifest) {
	taken := map[string]bool{}
	for _, name := range []string{"l", "m", "n"} {
		if w.IntN(4) == 0 {
			continue
		}
		if scores := w.scores(taken); len(scores) > 0 {
			m := under(w.policy(), manifest(name, scores...))
			m.Metadata.Generation = generation
			out = append(out, m)
		}
	}
	return out
}

// disturb changes a device by hand.
func (w wilds) disturb(r *rig) {
	for i := range 12 {
		path := fmt.Sprintf("/etc/f%d", i)
		switch w.IntN(6) {
		case 0:
			r.dev.Put(path, pick(w, "1", "2", "theirs"))
		case 1:
			if _, there := r.dev.Read(path); there {
				r.dev.Delete(path)
			}
		}
	}
}

// key names an action of a plan, or what was done, by what it is about.
func key(manifest string, id score.ID) string { return manifest + "/" + string(id) }

// A plan is what then happens: what it says is applied, and no other, is changed by the pass after it; making it touches
// nothing and says the same each time, also about the same assignment in another order; and what was to be confirmed is
// done when it is installed (G29, H54, X71, X76).
func TestPlanIsWhatHappens(t *testing.T) {
	for seed := range uint64(150) {
		w := wilds{rand.New(rand.NewPCG(seed, 1))}
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			w.disturb(r)
			for n := range uint64(1 + w.IntN(3)) { // a past
				r.confirm(intent(n+1, w.manifests(n+1)...))
				w.disturb(r)
			}
			in := intent(9, w.manifests(9)...)
			rec, books := r.dev.Record(), fmt.Sprint(r.store.Entries())
			plan, err := r.runner.Plan(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			shuffled := in
			shuffled.Assignment.Spec.Manifests = slices.Clone(in.Assignment.Spec.Manifests)
			for i := range shuffled.Assignment.Spec.Manifests {
				m := &shuffled.Assignment.Spec.Manifests[i]
				m.Spec.Scores = slices.Clone(m.Spec.Scores)
				w.Shuffle(len(m.Spec.Scores), func(i, j int) { m.Spec.Scores[i], m.Spec.Scores[j] = m.Spec.Scores[j], m.Spec.Scores[i] })
			}
			for i := range 10 {
				time.Sleep(time.Hour)
				again, err := r.runner.Plan(t.Context(), pick(w, in, shuffled))
				if err != nil || again.ID != plan.ID {
					t.Fatalf("seed %d: plan %d is another: %v\n%s\n%s", seed, i, err, decisions(plan), decisions(again))
				}
			}
			if m := rec.Mutations(); len(m) > 0 || books != fmt.Sprint(r.store.Entries()) {
				t.Fatalf("seed %d: planning called %v, or changed the books", seed, m)
			}

			st, err := r.runner.Apply(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			changed := map[string]bool{}
			for _, m := range st.Manifests {
				for _, s := range m.Scores {
					changed[key(m.Name, s.ID)] = s.Outcome == interpret.Changed
				}
			}
			touched := map[string]bool{}
			for _, c := range rec.Mutations() {
				touched[string(c.Resource)] = true
			}
			planned := map[string]bool{}
			for _, a := range plan.Actions {
				planned[key(a.Manifest, a.Score)] = true
				for _, id := range a.Restarts {
					planned[key(a.Manifest, id)] = true
				}
				waits := slices.ContainsFunc(st.Manifests, func(m interpret.ManifestStatus) bool {
					return m.Name == a.Manifest && slices.ContainsFunc(m.Scores, func(s interpret.ScoreStatus) bool { return s.ID == a.Score && s.Outcome == interpret.Waiting })
				})
				left := slices.ContainsFunc(st.Orphans, func(o interpret.Orphan) bool { return slices.Contains(a.Resources, o.Resource) })
				switch {
				case a.Decision != interpret.DecideApply && (a.Action != interpret.ActionRemove && changed[key(a.Manifest, a.Score)] || touched[string(a.Resources[0])]):
					t.Errorf("seed %d: %s of %s/%s was to be %s (%s), and was done", seed, a.Action, a.Manifest, a.Score, a.Decision, a.Code)
				case a.Decision != interpret.DecideApply, waits:
				case a.Action == interpret.ActionRemove:
					if left {
						t.Errorf("seed %d: the removal of %s/%s was to be applied, and it is left, state %s", seed, a.Manifest, a.Score, st.State)
					}
				case !changed[key(a.Manifest, a.Score)]:
					t.Errorf("seed %d: %s of %s/%s was to be applied, and was not: %s", seed, a.Action, a.Manifest, a.Score, outcomes(st))
				}
			}
			for k, did := range changed {
				if did && !planned[k] {
					t.Errorf("seed %d: %s was done, and the plan says nothing of it: %s", seed, k, decisions(plan))
				}
			}

			r.confirm(in)
			st = r.confirm(in) // what waited for another one
			rest, err := r.runner.Plan(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range rest.Actions {
				i := slices.IndexFunc(st.Manifests, func(m interpret.ManifestStatus) bool { return m.Name == a.Manifest })
				if i < 0 || a.Action == interpret.ActionRemove {
					continue
				}
				s, _ := scoreOf(st, a.Manifest, a.Score)
				if (a.Decision == interpret.DecideApply || a.Code == interpret.CodeConfirm) && s.Outcome != interpret.Waiting {
					t.Errorf("seed %d: confirmed, and still to be: %s; %s", seed, decisions(rest), outcomes(st))
				}
			}
		})
	}
}
