package conform

import (
	"context"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// A JobBench is a device that runs jobs to their end.
type JobBench struct {
	Jobs topology.Jobs
	// Name of a job that was never run.
	Name string
	// Well ends with 0, Fails with 3, and Long does not end by itself; each is the program of the job Name.
	Well, Fails, Long []string
	// Foreign makes a unit of that name as somebody else, and takes it away again.
	Foreign func(name string) (remove func() error, err error)
	// Stop stops the job as an administrator does.
	Stop func(name string) error
	// Hurry makes RunJob wait for a second only; nil: it does not wait for what goes on.
	Hurry func()
}

func (b JobBench) config(exec []string, digest string) topology.JobConfig {
	return topology.JobConfig{Name: b.Name, Exec: exec, Timeout: time.Minute, Success: []int{0}, Digest: digest, Mark: "m/job"}
}

// Jobs is the suite of a device that runs jobs.
func Jobs(t *testing.T, bench func(*testing.T) JobBench) { suite(t, bench, jobTests) }

func (b JobBench) hurry() {
	if b.Hurry != nil {
		b.Hurry()
	}
}

func (b JobBench) state(t *testing.T) topology.JobState {
	t.Helper()
	st, err := b.Jobs.Job(t.Context(), b.Name)
	ok(t, err)
	return st
}

// ended checks how a job ended, without its times and its output.
func (b JobBench) ended(t *testing.T, want topology.JobState) {
	t.Helper()
	st := b.state(t)
	if st.Began.IsZero() || st.Ended.Before(st.Began) {
		t.Errorf("it ran from %v to %v", st.Began, st.Ended)
	}
	st.Began, st.Ended, st.Output = time.Time{}, time.Time{}, ""
	want.Phase, want.Mark = topology.JobEnded, "m/job"
	equal(t, "state", st, want)
}

var jobTests = []test[JobBench]{
	{"never run", func(t *testing.T, b JobBench) {
		equal(t, "state", b.state(t), topology.JobState{Phase: topology.JobNever})
	}},
	{"ends well", func(t *testing.T, b JobBench) { // X34: exit 0
		ok(t, b.Jobs.PrepareJob(t.Context(), b.config(b.Well, "one")))
		ok(t, b.Jobs.RunJob(t.Context(), b.config(b.Well, "one")))
		b.ended(t, topology.JobState{Digest: "one", Tries: 1, Result: topology.JobExited})
	}},
	{"fails", func(t *testing.T, b JobBench) { // X34: exit 3
		for try := range 2 {
			fails(t, b.Jobs.RunJob(t.Context(), b.config(b.Fails, "one")), topology.CodeExited)
			b.ended(t, topology.JobState{Digest: "one", Tries: try + 1, Result: topology.JobExited, ExitCode: 3})
		}
		c := b.config(b.Fails, "two")
		c.Success = []int{0, 3}
		ok(t, b.Jobs.RunJob(t.Context(), c))
		b.ended(t, topology.JobState{Digest: "two", Tries: 1, Result: topology.JobExited, ExitCode: 3})
	}},
	{"is joined, and replaced", func(t *testing.T, b JobBench) {
		after(t, func(context.Context) { _ = b.Stop(b.Name) })
		b.hurry()
		ok(t, b.Jobs.RunJob(t.Context(), b.config(b.Long, "one"))) // it returns while the job goes on
		first := b.state(t)
		equal(t, "phase", first.Phase, topology.JobRunning)
		ok(t, b.Jobs.RunJob(t.Context(), b.config(b.Long, "one")))
		equal(t, "state", b.state(t), first)
		ok(t, b.Jobs.RunJob(t.Context(), b.config(b.Long, "two")))
		second := b.state(t)
		if second.Phase != topology.JobRunning || second.Digest != "two" || second.Tries != 1 {
			t.Errorf("got %+v", second)
		}
	}},
	{"is interrupted", func(t *testing.T, b JobBench) {
		b.hurry()
		ok(t, b.Jobs.RunJob(t.Context(), b.config(b.Long, "one")))
		hands(t, b.Stop(b.Name))
		st := eventually(t, "the interruption", func(ctx context.Context) (topology.JobState, error) { return b.Jobs.Job(ctx, b.Name) },
			func(st topology.JobState) bool { return st.Phase != topology.JobRunning })
		if st.Phase != topology.JobInterrupted || st.Digest != "one" || st.Interrupted != 1 {
			t.Errorf("got %+v", st)
		}
		ok(t, b.Jobs.RunJob(t.Context(), b.config(b.Long, "one")))
		if st := b.state(t); st.Phase != topology.JobRunning || st.Tries != 1 || st.Interrupted != 1 {
			t.Errorf("got %+v", st)
		}
		hands(t, b.Stop(b.Name))
	}},
	{"name of somebody else", func(t *testing.T, b JobBench) {
		remove, err := b.Foreign(b.Name)
		hands(t, err)
		after(t, func(context.Context) {
			if err := remove(); err != nil {
				t.Error(err)
			}
		})
		fails(t, b.Jobs.RunJob(t.Context(), b.config(b.Well, "one")), topology.CodeForeign)
		equal(t, "phase", b.state(t).Phase, topology.JobNever)
	}},
	{"what is no job", func(t *testing.T, b JobBench) {
		for _, change := range []func(*topology.JobConfig){
			func(c *topology.JobConfig) { c.Mark = "" },
			func(c *topology.JobConfig) { c.Digest = "" },
			func(c *topology.JobConfig) { c.Exec = nil },
		} {
			c := b.config(b.Well, "one")
			change(&c)
			fails(t, b.Jobs.RunJob(t.Context(), c), topology.CodeInvalid)
		}
		equal(t, "phase", b.state(t).Phase, topology.JobNever)
	}},
	{"canceled", func(t *testing.T, b JobBench) {
		_, err := b.Jobs.Job(canceled(t), b.Name)
		fails(t, err, topology.CodeCanceled)
		fails(t, b.Jobs.RunJob(canceled(t), b.config(b.Well, "one")), topology.CodeCanceled)
		equal(t, "phase", b.state(t).Phase, topology.JobNever)
	}},
}
