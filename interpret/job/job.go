// Package job interprets score.Job.
//
// What was run is remembered by a digest: of what is run, and not of how long it may take,
// how often it may fail and what counts as success, so that these can be changed without
// running it again. A secret is in it by its name: a rotation runs nothing again.
package job

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer.
type Needs interface{ topology.HasJobs }

// reader and writer know secrets, too.
type (
	reader interface {
		topology.JobReader
		topology.Secrets
	}
	writer interface {
		topology.JobWriter
		topology.Secrets
	}
)

// Kind binds the interpreter to t.
func Kind[T Needs](t T) interpret.Binding {
	jobs := t.Jobs()
	both := struct {
		topology.JobWriter
		topology.Secrets
	}{jobs, topology.NoSecrets{}}
	if s, ok := any(t).(topology.HasSecrets); ok {
		both.Secrets = s.Secrets()
	}
	return interpret.Of[score.Job, Observed, reader, writer](interpreter{}, both, both)
}

// Observed is what became of a job.
type Observed struct {
	// Phase is never, running, ended, or interrupted: the device went down, or somebody stopped it.
	Phase topology.JobPhase `json:"phase"`
	// Digest of what was run.
	Digest string `json:"digest,omitempty"`
	// Tries of that, interruptions not counted.
	Tries int `json:"tries,omitzero"`
	// Interrupted is how often it was interrupted.
	Interrupted int `json:"interrupted,omitzero"`
	// Began is when the last run began.
	Began time.Time `json:"began,omitzero"`
	// Ended is when it ended.
	Ended time.Time `json:"ended,omitzero"`
	// Exited is set if it ended by itself.
	Exited *Exited `json:"exited,omitempty"`
	// TimedOut is set if it was killed when its time was over.
	TimedOut *TimedOut `json:"timedOut,omitempty"`
	// Killed is set if a signal ended it.
	Killed *Killed `json:"killed,omitempty"`
	// Output is the end of what it wrote, 4 KiB at most, without the values of its secrets.
	Output string `json:"output,omitempty"`
	// Truncated: it wrote more before that.
	Truncated bool `json:"truncated,omitzero"`

	mark topology.Mark
	well bool // it ended as the score wants it
}

// Exited is the end of a job that ended by itself.
type Exited struct {
	// Code that it ended with.
	Code int `json:"code"`
}

// TimedOut is the end of a job whose time was over.
type TimedOut struct {
	// Waited is how long it ran.
	Waited score.Duration `json:"waited"`
}

// Killed is the end of a job by a signal.
type Killed struct {
	// Signal without SIG, such as SEGV.
	Signal string `json:"signal"`
}

// Exists reports whether it was ever run.
func (o Observed) Exists() bool { return o.Phase != topology.JobNever }

// OwnedBy is whose job was run.
func (o Observed) OwnedBy() topology.Mark { return o.mark }

// Conditions: a job is in force when it has ended as it should.
func (o Observed) Conditions() interpret.Conditions {
	return interpret.Conditions{Effective: new(o.well)}
}

// how says how the last run ended.
func (o Observed) how() string {
	switch {
	case o.Exited != nil:
		return fmt.Sprintf("exited %d", o.Exited.Code)
	case o.TimedOut != nil:
		return fmt.Sprintf("timed out after %s", o.TimedOut.Waited)
	case o.Killed != nil:
		return "killed by " + o.Killed.Signal
	}
	return string(o.Phase)
}

const fieldRun = "run"

// maxInterrupted is how often a job is begun again that was interrupted: one that takes the
// device down would do so for ever.
const maxInterrupted = 3

type interpreter struct{}

func (interpreter) FieldOf(c topology.Code) string {
	switch c {
	case topology.CodeImage, topology.CodeImageStore, topology.CodeImageCheck:
		return "container"
	case topology.CodeTimeout:
		return "timeout"
	}
	return "name"
}

func (interpreter) Observe(ctx context.Context, r reader, s score.Job) (Observed, error) {
	st, err := r.Job(ctx, s.Name)
	if err != nil {
		return Observed{}, err
	}
	o := Observed{
		Phase: st.Phase, Digest: st.Digest, Tries: st.Tries, Interrupted: st.Interrupted, Began: st.Began, Ended: st.Ended,
		Output: withoutSecrets(ctx, r, s, st.Output, st.Truncated), Truncated: st.Truncated, mark: st.Mark,
	}
	switch {
	case st.Phase != topology.JobEnded:
	case st.Result == topology.JobExited:
		o.Exited = &Exited{st.ExitCode}
		o.well = config(s).Succeeds(st.ExitCode)
	case st.Result == topology.JobTimedOut:
		o.TimedOut = &TimedOut{score.Duration(max(st.Ended.Sub(st.Began), 0).Round(time.Second))}
	case st.Result == topology.JobKilled:
		o.Killed = &Killed{st.Signal}
	}
	o.well = o.well && st.Digest == digest(s)
	return o, nil
}

func (interpreter) Diff(s score.Job, o Observed) []interpret.Change {
	run := func(have string, e interpret.Effect) []interpret.Change {
		return []interpret.Change{{Field: fieldRun, Have: have, Want: "ended well", Effect: e}}
	}
	switch {
	case o.Phase == topology.JobNever:
		return run("never", interpret.Create)
	case o.Digest != digest(s):
		return run("another one, "+o.how(), interpret.Disrupt)
	case o.Phase == topology.JobRunning, o.well:
		return nil
	}
	return run(fmt.Sprintf("%s (run %d of %d)", o.how(), o.Tries, 1+s.Retries), interpret.Disrupt)
}

// Apply runs it, unless it has been run as often as it may be.
func (i interpreter) Apply(ctx context.Context, w writer, s score.Job, t interpret.Task) error {
	o, err := i.Observe(ctx, w, s)
	if err != nil {
		return err
	}
	if o.Digest == digest(s) {
		switch {
		case o.Phase == topology.JobInterrupted && o.Interrupted > maxInterrupted:
			return topology.Faultf(topology.CodeJobFailed, "the job %s was interrupted %d times, and is not begun again until it is another one", s.Name, o.Interrupted)
		case o.Phase == topology.JobEnded && o.Tries > s.Retries:
			code := topology.CodeExited
			if o.TimedOut != nil {
				code = topology.CodeTimeout
			}
			return topology.Faultf(code, "the job %s %s; it was run %d times, which is all that it may be, and is not run again until it is another one, or retries is higher", s.Name, o.how(), o.Tries)
		}
	}
	c := config(s)
	c.Mark = t.Mark
	if err := secrets(ctx, w, s, &c); err != nil {
		return err
	}
	if err := w.PrepareJob(ctx, c); err != nil { // it may have been collected since it was fetched
		return err
	}
	return w.RunJob(ctx, c)
}

// RemovalEffect is none: see Remove.
func (interpreter) RemovalEffect(score.Job) interpret.Effect { return interpret.Nothing }

// Remove leaves what was done: nobody can undo it. That it was done stays known, so that a
// manifest which comes back does not do it again.
func (interpreter) Remove(context.Context, writer, score.Job) error { return nil }

// Prefetch brings the image.
func (interpreter) Prefetch(ctx context.Context, w writer, s score.Job) error {
	if s.Container == nil {
		return nil
	}
	st, err := w.Job(ctx, s.Name)
	if err == nil && st.Digest == digest(s) && st.Phase == topology.JobEnded {
		return nil // it was run, and needs it no more
	}
	return w.PrepareJob(ctx, config(s))
}

// config is s for the device, without the values of secrets.
func config(s score.Job) topology.JobConfig {
	c := topology.JobConfig{
		Name: s.Name, Timeout: time.Duration(cmp.Or(s.Timeout, score.DefaultJobTimeout)), Success: s.Success, Digest: digest(s),
	}
	if len(c.Success) == 0 {
		c.Success = []int{0}
	}
	if u := s.Unit; u != nil {
		c.Exec, c.User, c.WorkingDir = u.Exec, u.User, u.WorkingDir
		for _, k := range slices.Sorted(maps.Keys(u.Env)) {
			c.Env = append(c.Env, k+"="+u.Env[k])
		}
	}
	if k := s.Container; k != nil {
		c.Container = topology.ContainerConfig{Image: k.Image, Entrypoint: k.Entrypoint, Command: k.Command, User: k.User, WorkingDir: k.WorkingDir}
		if k.Network != "bridge" {
			c.Container.Network = k.Network
		}
		for _, name := range slices.Sorted(maps.Keys(k.Env)) {
			if v := k.Env[name]; v.Secret == "" {
				c.Container.Env = append(c.Container.Env, name+"="+v.Text)
			}
		}
		for _, v := range k.Volumes {
			c.Container.Volumes = append(c.Container.Volumes, v.String())
		}
		slices.Sort(c.Container.Volumes)
	}
	return c
}

// secrets fills in the values of secrets, to be used at once.
func secrets(ctx context.Context, r topology.Secrets, s score.Job, c *topology.JobConfig) error {
	if s.Container == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Container.Env)) {
		v := s.Container.Env[name]
		if v.Secret == "" {
			continue
		}
		value, err := r.Secret(ctx, v.Secret)
		if err != nil {
			return err
		}
		c.Container.Secrets = append(c.Container.Secrets, topology.ContainerSecret{Name: v.Secret, Env: name, Fingerprint: r.Fingerprint(value), Value: value})
	}
	slices.SortFunc(c.Container.Secrets, func(a, b topology.ContainerSecret) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Env, b.Env))
	})
	return nil
}

// digest is that of what is run.
func digest(s score.Job) string {
	b, err := score.Encode(score.Job{Name: s.Name, Unit: s.Unit, Container: s.Container})
	if err != nil {
		panic(fmt.Sprintf("job: a score is not data: %v", err))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
