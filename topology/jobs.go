package topology

import (
	"context"
	"time"
)

// A JobConfig is something to be run to its end: a program of the device, or a container.
type JobConfig struct {
	Name       string   // of the job, of its unit and of its container
	Exec       []string // the program with its arguments; empty: it is a container
	User       string   // of the program; empty: root
	WorkingDir string   // of the program; empty: /
	Env        []string // NAME=value, sorted, of the program

	// Container that is run, if Exec is empty: of it count Image, Entrypoint, Command, User, WorkingDir, Env, Secrets,
	// Volumes and Network.
	Container ContainerConfig

	Timeout time.Duration // after which it is killed
	Success []int         // exit codes that mean that it went well
	Digest  string        // under which its runs are remembered
	Mark    Mark
}

// Succeeds reports whether an exit code means that the job went well.
func (c JobConfig) Succeeds(code int) bool {
	for _, s := range c.Success {
		if s == code {
			return true
		}
	}
	return false
}

// A JobPhase is how far a job is.
type JobPhase string

// Phases of jobs.
const (
	JobNever       JobPhase = "never"       // it was not run
	JobRunning     JobPhase = "running"     // it runs
	JobEnded       JobPhase = "ended"       // it came to its end
	JobInterrupted JobPhase = "interrupted" // it ran, and was stopped by somebody, or the device went down
)

// A JobResult is how a job ended.
type JobResult string

// Results of jobs.
const (
	JobExited   JobResult = "exited"   // by itself, with a code
	JobTimedOut JobResult = "timedOut" // it was killed when its time was over
	JobKilled   JobResult = "killed"   // by a signal
)

// A JobState is what is known of the last run of a job. It is known as long as the device
// lives, whatever becomes of the program that asked for it.
type JobState struct {
	Phase       JobPhase
	Digest      string // of what was run
	Mark        Mark
	Tries       int // of that digest, this one included; those that were interrupted do not count
	Interrupted int // how often that digest was interrupted
	Began       time.Time
	Ended       time.Time
	Result      JobResult // if it ended
	ExitCode    int       // if it exited
	Signal      string    // that killed it, without SIG
	Output      string    // the end of what it wrote: as Log of a service returns it
	Truncated   bool      // it wrote more before that
}

// A JobReader tells what became of jobs.
type JobReader interface {
	// Job returns what is known of the last run of a job. One that was never run is a state. A
	// record that cannot be read is a fault: whether the job was run is not known then.
	Job(ctx context.Context, name string) (JobState, error)
}

// A JobWriter runs jobs.
type JobWriter interface {
	JobReader

	// PrepareJob brings the image of a job, if it needs one that is not here. It runs nothing.
	PrepareJob(ctx context.Context, c JobConfig) error

	// RunJob runs a job, whatever became of it before. That it begins is durably known before
	// it does, and how it ended when it has, also if nobody waits for that. A run of the
	// same digest that is under way is joined, one of another digest is stopped first, and
	// what a crash left of it is removed. It returns when the job has ended, with a fault if
	// that was not with one of Success (CodeExited, CodeTimeout), and without one after some
	// seconds while the job goes on. A unit or container of the name that somebody
	// else made is CodeForeign, and stays.
	RunJob(ctx context.Context, c JobConfig) error
}

// Jobs run things to their end.
type Jobs interface{ JobWriter }

// HasJobs is implemented by topologies that run things to their end.
type HasJobs interface{ Jobs() Jobs }

// Fault is nil if the job went well, by what the config says, and else says how it ended.
func (s JobState) Fault(c JobConfig) error {
	switch {
	case s.Phase != JobEnded:
		return nil
	case s.Result == JobTimedOut:
		return Faultf(CodeTimeout, "the job %s did not end within %v and was killed; journalctl -u %[1]s has its words", c.Name, c.Timeout)
	case s.Result == JobKilled:
		return Faultf(CodeExited, "the job %s was killed by signal %s; journalctl -u %[1]s has its words", c.Name, s.Signal)
	case c.Succeeds(s.ExitCode):
		return nil
	}
	return Faultf(CodeExited, "the job %s ended with exit code %d; journalctl -u %[1]s has its words", c.Name, s.ExitCode)
}
