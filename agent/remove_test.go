package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// removals are the files that were removed, in order.
func removals(rec *memory.Recorder) (out []string) {
	for _, c := range rec.Mutations() {
		if c.Op == memory.OpRemoveFile {
			out = append(out, strings.TrimPrefix(string(c.Resource), "file:"))
		}
	}
	return out
}

// What needs another thing goes before it, whatever was made first; and while it cannot go, the other one waits and says
// for whom (X98).
func TestDependantsGoFirst(t *testing.T) {
	r := newRig(t)
	r.apply(intent(1, manifest("m", file("b", "/etc/b", "1"), file("z", "/etc/z", "1"))))
	r.apply(intent(2, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1", "a"), file("z", "/etc/z", "1"))))
	rec := r.dev.Record()
	r.dev.Fail(memory.OpRemoveFile, "file:/etc/b", topology.Faultf(topology.CodeReadOnly, "read-only"))
	st := r.apply(intent(3, manifest("m", file("z", "/etc/z", "1"))))
	i := slices.IndexFunc(st.Orphans, func(o interpret.Orphan) bool { return o.Score == "a" })
	if got := removals(rec); i < 0 || st.Orphans[i].Code != interpret.CodeDependency || !strings.Contains(st.Orphans[i].Message, `"b"`) || slices.Contains(got, "/etc/a") {
		t.Errorf("b cannot go: %+v, removed %v", st.Orphans, got)
	}
	r.dev.Heal()
	rec.Reset()
	r.apply(intent(3, manifest("m", file("z", "/etc/z", "1"))))
	if got := removals(rec); !slices.Equal(got, []string{"/etc/b", "/etc/a"}) {
		t.Errorf("removed %v", got)
	}
}

// What is only reported, and stays for ever, does not trip the brake of others.
func TestBrakeCountsWhatWouldGo(t *testing.T) {
	r := newRig(t)
	var many []score.Score
	for i := range 9 {
		many = append(many, file(score.ID(fmt.Sprintf("f%d", i)), fmt.Sprintf("/etc/f%d", i), "x"))
	}
	c := manifest("c", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"))
	r.apply(intent(1, preset(score.Guarded, manifest("g", many...)), c))
	st := r.apply(intent(2, preset(score.Guarded, manifest("g", many[0])), manifest("c", file("a", "/etc/a", "1"))))
	if _, there := r.dev.Read("/etc/b"); there || len(st.Orphans) != 8 {
		t.Errorf("b is there: %v; left: %+v", there, st.Orphans)
	}
}

// onAbsent, word by word, for a score that is dropped, for a whole manifest that is gone, and with the word of the score
// itself; also if the policy changes in the very generation that drops it. What was there before, and was overwritten
// with consent, is only removed if it comes back (X104, X101, K2).
func TestOnAbsent(t *testing.T) {
	with := func(on score.OnAbsent) score.Policy { return score.Policy{Preset: score.Converge, OnAbsent: on} }
	keep, x := manifest("keep", file("k", "/etc/k", "1")), file("x", "/etc/x", "1")
	for _, tt := range []struct {
		on              score.OnAbsent
		foreign         bool
		want            string
		code            interpret.Code
		owned, released bool
	}{
		{"", false, "", "", false, false},
		{score.AbsentCollect, false, "", "", false, false},
		{score.AbsentRestore, false, "", "", false, false},
		{score.AbsentRelease, false, "ours", "", false, true},
		{score.AbsentReport, false, "ours", interpret.CodeOrphaned, true, false},
		{"", true, "ours", interpret.CodeNotOwned, true, false},
		{score.AbsentCollect, true, "ours", interpret.CodeNotOwned, true, false},
		{score.AbsentRestore, true, "theirs", "", false, true},
		{score.AbsentRelease, true, "ours", "", false, true},
		{score.AbsentReport, true, "ours", interpret.CodeNotOwned, true, false},
	} {
		for name, steps := range map[string]func(score.Score) (first, second []score.Manifest){
			"dropped": func(s score.Score) (first, second []score.Manifest) {
				return []score.Manifest{under(with(tt.on), manifest("m", x, s))}, []score.Manifest{under(with(tt.on), manifest("m", x))}
			},
			"gone": func(s score.Score) (first, second []score.Manifest) {
				return []score.Manifest{under(with(tt.on), manifest("m", s))}, nil
			},
			"of the score": func(s score.Score) (first, second []score.Manifest) {
				s.Policy = &score.Policy{OnAbsent: tt.on}
				return []score.Manifest{manifest("m", x, s)}, []score.Manifest{manifest("m", x)}
			},
			"changed with it": func(s score.Score) (first, second []score.Manifest) {
				return []score.Manifest{manifest("m", x, s)}, []score.Manifest{under(with(tt.on), manifest("m", x))}
			},
		} {
			what := fmt.Sprintf("%s %q foreign %v", name, tt.on, tt.foreign)
			r := newRig(t)
			if tt.foreign {
				r.dev.Put("/etc/motd", "theirs")
			}
			first, second := steps(file("motd", "/etc/motd", "ours"))
			if st := r.confirm(intent(1, append(first, keep)...)); !st.ConvergedAt(1) {
				t.Fatalf("%s: %s", what, outcomes(st))
			}
			r.restart()
			st := r.apply(intent(2, append(second, keep)...))
			if got, _ := r.dev.Read("/etc/motd"); got != tt.want {
				t.Errorf("%s: %q is there, want %q", what, got, tt.want)
			}
			if len(st.Orphans) > 0 != (tt.code != "") || len(st.Orphans) > 0 && st.Orphans[0].Code != tt.code {
				t.Errorf("%s: left %+v", what, st.Orphans)
			}
			if _, owned := r.store.Owner("file:/etc/motd"); owned != tt.owned {
				t.Errorf("%s: owned: %v", what, owned)
			}
			st = r.apply(intent(3, keep, manifest("m2", file("motd", "/etc/motd", "new"))))
			if conflict := st.Manifests[1].Scores[0].Outcome == interpret.Conflict; conflict != tt.released {
				t.Errorf("%s: claimed again: %s", what, outcomes(st))
			}
		}
	}
}

// What is given up is not told as removed, and is told.
func TestReleasedIsNotRemoved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		pol := score.Policy{Preset: score.Converge, OnAbsent: score.AbsentRelease}
		offer(t, h, intent(1, under(pol, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1")))))
		later(time.Second)
		for len(f.receipts) > 0 {
			<-f.receipts
		}
		offer(t, h, intent(2, under(pol, manifest("m", file("a", "/etc/a", "1")))))
		later(time.Second)
		r.content("/etc/b", "1")
		if len(f.receipts) != 1 {
			t.Fatalf("%d receipts", len(f.receipts))
		}
		rc := <-f.receipts
		if len(rc.Actions) != 1 || rc.Actions[0].Action == interpret.ActionRemove || rc.Actions[0].Outcome != interpret.Unchanged || rc.Actions[0].Score != "b" {
			t.Errorf("receipt: %+v", rc.Actions)
		}
	})
}

// The power fails between the removal and the return of what was there before: it comes back all the same (S13, X101).
func TestRestoreSurvivesACrash(t *testing.T) {
	pol := score.Policy{Preset: score.Converge, OnAbsent: score.AbsentRestore}
	first := intent(1, under(pol, manifest("m", file("a", "/etc/a", "1"), file("motd", "/etc/motd", "ours"))))
	second := intent(2, under(pol, manifest("m", file("a", "/etc/a", "1"))))
	r := newRig(t)
	r.dev.Put("/etc/motd", "theirs")
	r.confirm(first)
	r.dev.FailOnce(memory.OpWriteFile, "file:/etc/motd", topology.Faultf(topology.CodeIO, "the power fails"))
	r.apply(second)
	if _, there := r.dev.Read("/etc/motd"); there {
		t.Fatal("it was not removed")
	}
	r.restart()
	r.apply(second)
	r.content("/etc/motd", "theirs")
	if _, owned := r.store.Owner("file:/etc/motd"); owned {
		t.Error("it is owned still")
	}
	st, err := r.dev.Files().File(t.Context(), "/etc/motd")
	if err != nil || st.Mark != "" {
		t.Errorf("what came back carries the mark %q, %v", st.Mark, err)
	}
}
