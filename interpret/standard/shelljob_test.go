//go:build shelljob

package standard_test

import (
	"os"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// TestShellJobOnce: what its check says is done is not done again; what failed is not tried again by itself (H78).
func TestShellJobOnce(t *testing.T) {
	text, err := os.ReadFile("../../examples/shelljob/radio.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, problems := source.Manifest("radio.yaml", text)
	if len(problems) > 0 {
		t.Fatalf("the example: %v", problems)
	}
	s := m.Spec.Scores[0].Spec.(score.ShellJob)
	counts := func(r rig, runs, checks int) {
		t.Helper()
		if n, c := r.JobRuns(s.Name), r.JobRuns(s.CheckName()); n != runs || c != checks {
			t.Errorf("run %d times and checked %d times, want %d and %d", n, c, runs, checks)
		}
	}
	t.Run("done already", func(t *testing.T) {
		r := newRig(t)
		g := &open{}
		r.want(r.with(s, g, nil), interpret.Changed, "")
		if g.actions[0].Effect != interpret.Destroy {
			t.Errorf("its effect is %s: a policy could cover it", g.actions[0].Effect)
		}
		for range 5 {
			r.settled(s)
		}
		counts(r, 0, 1)
	})
	t.Run("in vain", func(t *testing.T) {
		r := newRig(t)
		r.JobEnds(s.CheckName(), memory.JobEnd{ExitCode: 1})
		for range 3 {
			r.want(r.play(s), interpret.Failed, topology.CodeExited)
		}
		counts(r, 1, 4)
		r.JobEnds(s.CheckName(), memory.JobEnd{})
		r.want(r.play(s), interpret.Changed, "")
		r.settled(s)
		counts(r, 1, 5)
	})
	t.Run("fails", func(t *testing.T) {
		r := newRig(t)
		r.JobEnds(s.CheckName(), memory.JobEnd{ExitCode: 1})
		r.JobEnds(s.Name, memory.JobEnd{ExitCode: 3})
		for range 3 {
			r.want(r.play(s), interpret.Failed, topology.CodeExited)
		}
		counts(r, 1, 3)
	})
}
