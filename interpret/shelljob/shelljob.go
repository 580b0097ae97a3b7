//go:build shelljob

package shelljob

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer.
type Needs interface{ topology.HasJobs }

// Kind binds the interpreter to t.
func Kind[T Needs](t T) interpret.Binding {
	j := t.Jobs()
	return interpret.Of[score.ShellJob, Observed, topology.JobReader, topology.JobWriter](interpreter{}, j, j)
}

// Observed is what became of a command.
type Observed struct {
	// Done is true if its check said so, after a run or before it.
	Done bool `json:"done"`
	// Run is never, running, ended or interrupted: the last run of the command.
	Run topology.JobPhase `json:"run"`
	// Digest of what was run.
	Digest string `json:"digest,omitempty"`
	// ExitCode of that run.
	ExitCode int `json:"exitCode,omitzero"`
	// Output is the end of what it wrote, 4 KiB at most.
	Output string `json:"output,omitempty"`
	// CheckOutput is the end of what its check wrote, 4 KiB at most.
	CheckOutput string `json:"checkOutput,omitempty"`

	mark topology.Mark
}

// Exists reports whether it was ever run or checked.
func (o Observed) Exists() bool { return o.Done || o.Run != topology.JobNever }

// OwnedBy is whose command was run.
func (o Observed) OwnedBy() topology.Mark { return o.mark }

// Conditions: a command is in force when its check says so.
func (o Observed) Conditions() interpret.Conditions {
	return interpret.Conditions{Effective: new(o.Done)}
}

type interpreter struct{}

func (interpreter) FieldOf(topology.Code) string { return "exec" }

func (interpreter) Observe(ctx context.Context, r topology.JobReader, s score.ShellJob) (Observed, error) {
	run, err := r.Job(ctx, s.Name)
	if err != nil {
		return Observed{}, err
	}
	check, err := r.Job(ctx, s.CheckName())
	if err != nil {
		return Observed{}, err
	}
	return Observed{
		Done: check.Phase == topology.JobEnded && check.Digest == digest(s) && check.Result == topology.JobExited && check.ExitCode == 0,
		Run:  run.Phase, Digest: run.Digest, ExitCode: run.ExitCode, Output: run.Output, CheckOutput: check.Output,
		mark: cmp.Or(check.Mark, run.Mark),
	}, nil
}

func (interpreter) Diff(s score.ShellJob, o Observed) []interpret.Change {
	if o.Done {
		return nil
	}
	have := string(o.Run)
	if o.Run == topology.JobEnded {
		have = fmt.Sprintf("ended with exit code %d, and its check does not say that it is done", o.ExitCode)
	}
	// No policy covers it: each run waits for its own signature.
	return []interpret.Change{{Field: "run", Have: have, Want: "done", Effect: interpret.Destroy}}
}

// Apply asks the check, runs the command if that says no, and asks it again.
func (interpreter) Apply(ctx context.Context, w topology.JobWriter, s score.ShellJob, t interpret.Task) error {
	check := topology.JobConfig{Name: s.CheckName(), Exec: s.Verify, Timeout: 8 * time.Second, Success: []int{0}, Digest: digest(s), Mark: t.Mark}
	err := w.RunJob(ctx, check)
	if err == nil || topology.FaultOf(err).Code != topology.CodeExited {
		return err
	}
	was, err := w.Job(ctx, s.Name)
	if err != nil {
		return err
	}
	if was.Phase == topology.JobEnded && was.Digest == digest(s) {
		return topology.Faultf(topology.CodeExited, "the command was run for this score, once, and its check says that it is not done; change the score to have it run again")
	}
	run := topology.JobConfig{
		Name: s.Name, Exec: s.Exec, Timeout: time.Duration(cmp.Or(s.Timeout, score.DefaultShellJobTimeout)), Success: []int{0}, Digest: digest(s), Mark: t.Mark,
	}
	for {
		if err := w.RunJob(ctx, run); err != nil {
			return err
		}
		st, err := w.Job(ctx, s.Name)
		if err != nil {
			return err
		}
		if st.Phase == topology.JobEnded {
			break
		}
		if err := ctx.Err(); err != nil {
			return topology.FaultOf(err)
		}
	}
	if err := w.RunJob(ctx, check); err != nil {
		return topology.Faultf(topology.FaultOf(err).Code, "the command was run, and its check does not say that it is done: %v", err)
	}
	return nil
}

// RemovalEffect is none: nobody can undo it.
func (interpreter) RemovalEffect(score.ShellJob) interpret.Effect { return interpret.Nothing }

// Remove leaves what was done.
func (interpreter) Remove(context.Context, topology.JobWriter, score.ShellJob) error { return nil }

// digest is that of the command and its check.
func digest(s score.ShellJob) string {
	s.Timeout = 0
	b, err := score.Encode(s)
	if err != nil {
		panic(fmt.Sprintf("shelljob: a score is not data: %v", err))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
