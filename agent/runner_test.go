package agent_test

import (
	"fmt"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// A manifest of all kinds converges, and a second run changes nothing (H08, H09, cases 47, 161).
func TestConvergeThenUnchanged(t *testing.T) {
	r := newRig(t)
	in := intent(1, manifest("kiosk", file("conf", "/etc/kiosk.conf", "a=1\n"), service("kiosk", "kiosk.service", "conf"),
		container("web", "web"), score.Score{ID: "name", Spec: score.Hostname{Name: "kiosk-7"}}))
	st := r.apply(in)
	r.want(st, "kiosk/conf=changed kiosk/kiosk=changed kiosk/name=changed kiosk/web=changed")
	if st.State != interpret.StateConverged {
		t.Errorf("state is %s", st.State)
	}
	for range 10 {
		rec := r.dev.Record()
		written := r.disk.Stats()
		r.want(r.apply(in), "kiosk/conf=unchanged kiosk/kiosk=unchanged kiosk/name=unchanged kiosk/web=unchanged")
		if m := rec.Mutations(); len(m) > 0 {
			t.Fatalf("a run over a converged device called %v", m)
		}
		if r.disk.Stats() != written {
			t.Fatalf("a run over a converged device wrote books: %+v, before %+v", r.disk.Stats(), written)
		}
	}
}

// One score that fails does not stop the others, except those that need it (H69, H13).
func TestOneFailureAmongMany(t *testing.T) {
	r := newRig(t)
	r.dev.Fail(memory.OpWriteFile, "file:/etc/b", topology.Faultf(topology.CodeNoSpace, "no space left"))
	st := r.apply(intent(1, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"), file("c", "/etc/c", "1", "b"), file("d", "/etc/d", "1", "a"))))
	r.want(st, "m/a=changed m/b=failed/no_space m/c=waiting/dependency m/d=changed")
	if st.State != interpret.StatePartial {
		t.Errorf("state is %s, want partial", st.State)
	}
}

// Only what changed is played again (H70).
func TestGenerationTouchesOnlyWhatChanged(t *testing.T) {
	r := newRig(t)
	m := manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"))
	m.Metadata.Generation = 7
	r.apply(intent(7, m))
	m = manifest("m", file("a", "/etc/a", "2"), file("b", "/etc/b", "1"))
	m.Metadata.Generation = 8
	st := r.apply(intent(8, m))
	r.want(st, "m/a=changed m/b=unchanged")
	a, b := st.Manifests[0].Scores[0], st.Manifests[0].Scores[1]
	if a.LastChangedGeneration != 8 || b.LastChangedGeneration != 7 || b.ObservedGeneration != 8 || a.Cause != interpret.CauseIntent {
		t.Errorf("got a %d %s, b %d observed %d", a.LastChangedGeneration, a.Cause, b.LastChangedGeneration, b.ObservedGeneration)
	}
}

// Unreadable and unsupported scores are named, the rest goes on (H37, S30, X29, cases 22).
func TestUnsupported(t *testing.T) {
	r := newRig(t)
	r.dev.Unavailable(memory.Containers, "podman is missing")
	st := r.apply(intent(1, manifest("m", file("a", "/etc/a", "1"), container("web", "web"),
		score.Score{ID: "new", Spec: score.Opaque{Of: "hologram", Raw: []byte(`{}`)}},
		score.Score{ID: "later", Spec: score.Opaque{Of: "file", Raw: []byte(`{"acl":1}`), Why: `unknown field "acl"`, Path: "/acl"}})))
	r.want(st, "m/a=changed m/later=unsupported/unreadable_spec m/new=unsupported/unknown_kind m/web=unsupported/unavailable")
	if st.State != interpret.StateUnsupported {
		t.Errorf("state is %s", st.State)
	}
}

// The order of scores in a document means nothing (H26).
func TestOrderMeansNothing(t *testing.T) {
	scores := []score.Score{file("a", "/etc/a", "1", "b"), file("b", "/etc/b", "1", "c"), file("c", "/etc/c", "1"), service("s", "s.service", "a")}
	var want string
	for i, perm := range permutations(scores) {
		r := newRig(t)
		r.runner.Parallel = 1
		rec := r.dev.Record()
		st := r.apply(intent(1, manifest("m", perm...)))
		got := outcomes(st)
		for _, c := range rec.Mutations() {
			got += string(c.Op) + " " + string(c.Resource) + "\n"
		}
		if i == 0 {
			want = got
		} else if got != want {
			t.Fatalf("permutation %d:\n%s\nwant\n%s", i, got, want)
		}
	}
}

func permutations(s []score.Score) [][]score.Score {
	if len(s) <= 1 {
		return [][]score.Score{append([]score.Score(nil), s...)}
	}
	var out [][]score.Score
	for i := range s {
		rest := append(append([]score.Score(nil), s[:i]...), s[i+1:]...)
		for _, p := range permutations(rest) {
			out = append(out, append([]score.Score{s[i]}, p...))
		}
	}
	return out
}

// A broken unit that hit its start limit is left alone until the wish changes (cases 54).
func TestStartLimitWaitsForANewWish(t *testing.T) {
	r := newRig(t)
	r.dev.Fail(memory.OpStart, "unit:s.service", topology.Faultf(topology.CodeStartLimit, "start limit hit"))
	in := intent(1, manifest("m", service("s", "s.service")))
	r.want(r.apply(in), "m/s=failed/start_limit")
	rec := r.dev.Record()
	r.want(r.apply(in), "m/s=failed/start_limit") // held back by its pace
	if m := rec.Mutations(); len(m) > 0 {
		t.Errorf("tried again at once: %v", m)
	}
	r.dev.Heal()
	s := service("s", "s.service")
	spec := s.Spec.(score.Service)
	spec.UnitFile += "# mended\n"
	s.Spec = spec
	r.want(r.apply(intent(2, manifest("m", s))), "m/s=changed")
}

// A thing that ended by itself, and that its supervisor has up again, is not restarted
// once more for that: what runs is what is described (H58).
func TestWhatEndedByItselfIsNotRestarted(t *testing.T) {
	r := newRig(t)
	in := intent(1, manifest("m", service("s", "s.service")))
	r.apply(in)
	r.dev.StopUnit("s.service")
	r.dev.FailOnce(memory.OpStart, "unit:s.service", topology.Faultf(topology.CodeExited, "started and ended at once"))
	r.want(r.apply(in), "m/s=failed/exited")
	r.dev.StartUnit("s.service") // the supervisor's own restart
	rec := r.dev.Record()
	r.want(r.apply(in), "m/s=unchanged")
	if m := rec.Mutations(); len(m) > 0 {
		t.Errorf("called %v", m)
	}
}

// Of 200 scores one cannot be made true: 199 are, and the device is partial, not failed (H69).
func TestOneOfTwoHundredFails(t *testing.T) {
	r := newRig(t)
	var scores []score.Score
	for i := range 200 {
		scores = append(scores, file(score.ID(fmt.Sprintf("f%d", i)), fmt.Sprintf("/srv/f%d", i), "x"))
	}
	r.dev.Fail(memory.OpWriteFile, "file:/srv/f77", topology.Faultf(topology.CodeNoSpace, "no space left"))
	st := r.apply(intent(1, manifest("m", scores...)))
	n := map[interpret.Outcome]int{}
	for _, sc := range st.Manifests[0].Scores {
		n[sc.Outcome]++
		if (sc.ID == "f77") != (sc.Outcome == interpret.Failed) {
			t.Errorf("%s is %s", sc.ID, sc.Outcome)
		}
	}
	if n[interpret.Changed] != 199 || n[interpret.Failed] != 1 || st.State != interpret.StatePartial || st.Manifests[0].State != interpret.StatePartial {
		t.Errorf("outcomes %v, state %s", n, st.State)
	}
}

// A score of a later version of its kind is unsupported by name, and its siblings are played (S30, H37).
func TestLaterVersionOfAKind(t *testing.T) {
	r := newRig(t)
	m := manifest("m", file("a", "/etc/a", "1"), score.Score{ID: "b", Spec: score.Opaque{Of: "file/v2", Raw: []byte(`{"path":"/etc/b"}`)}}, service("s", "s.service"))
	st := r.apply(intent(1, m))
	r.want(st, "m/a=changed m/b=unsupported/unknown_kind m/s=changed")
	if b := st.Manifests[0].Scores[1]; b.Kind != "file/v2" || st.ConvergedAt(1) {
		t.Errorf("got %+v, state %s", b, st.State)
	}
}
