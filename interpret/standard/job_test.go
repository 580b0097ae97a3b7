package standard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/job"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

var migrate = score.Job{Name: "migrate", Unit: &score.JobUnit{Exec: []string{"/usr/local/bin/migrate"}}}

// runs checks how often the job was run.
func (r rig) runs(want int) {
	r.Helper()
	if n := r.JobRuns("migrate"); n != want {
		r.Fatalf("it was run %d times, want %d", n, want)
	}
}

// TestJobOnce: a job that ended well is not run again until it is another one (X34).
func TestJobOnce(t *testing.T) {
	r := newRig(t)
	st := r.play(migrate)
	r.want(st, interpret.Changed, "")
	if o := read[job.Observed](t, st); o.Exited == nil || o.Exited.Code != 0 || o.Tries != 1 || !st.Converged() {
		t.Errorf("got %+v", o)
	}
	for range 5 {
		r.settled(migrate)
	}
	same := migrate
	same.Timeout, same.Retries, same.Success = score.Duration(time.Hour), 5, []int{0, 3}
	r.settled(same)
	r.runs(1)
	other := migrate
	other.Unit = &score.JobUnit{Exec: []string{"/usr/local/bin/migrate", "--again"}}
	r.want(r.play(other), interpret.Changed, "")
	r.settled(other)
	r.runs(2)
}

// TestJobFails: a job that failed is run again as often as it may be, and stays failed (X34).
func TestJobFails(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  memory.JobEnd
		code topology.Code
		ok   func(job.Observed) bool
	}{
		{"exit 3", memory.JobEnd{ExitCode: 3, Output: "cannot connect"}, topology.CodeExited, func(o job.Observed) bool {
			return o.Exited != nil && o.Exited.Code == 3 && o.Output == "cannot connect" && !o.Truncated
		}},
		{"much output", memory.JobEnd{ExitCode: 1, Output: strings.Repeat("line\n", 1e5) + "last"}, topology.CodeExited, func(o job.Observed) bool { // H43
			return o.Exited.Code == 1 && len(o.Output) <= topology.LogBytes && strings.HasSuffix(o.Output, "last") && o.Truncated
		}},
		{"timeout", memory.JobEnd{Result: topology.JobTimedOut}, topology.CodeTimeout, func(o job.Observed) bool { return o.TimedOut != nil && o.Exited == nil }},
		{"signal", memory.JobEnd{Result: topology.JobKilled, Signal: "SEGV"}, topology.CodeExited, func(o job.Observed) bool { return o.Killed != nil && o.Killed.Signal == "SEGV" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.JobEnds("migrate", tt.end)
			s := migrate
			s.Retries = 2
			for i := range 6 {
				st := r.retry(s)
				r.want(st, interpret.Failed, tt.code)
				if o := read[job.Observed](t, st); !tt.ok(o) || st.Converged() {
					t.Errorf("got %+v", o)
				}
				r.runs(min(i+1, 3))
			}
			s.Retries = 3 // one more may be tried
			r.JobEnds("migrate", memory.JobEnd{})
			r.want(r.retry(s), interpret.Changed, "")
			r.settled(s)
			r.runs(4)
		})
	}
}

// TestJobRunsOn: a job that takes its time holds up nothing, and what needs it waits.
func TestJobRunsOn(t *testing.T) {
	r := newRig(t)
	r.JobEnds("migrate", memory.JobEnd{Runs: true})
	st := r.play(migrate)
	r.want(st, interpret.Changed, "")
	if st.Converged() {
		t.Error("it has not ended, and counts as done")
	}
	st = r.play(migrate)
	r.want(st, interpret.Unchanged, "")
	if o := read[job.Observed](t, st); o.Phase != topology.JobRunning || st.Converged() {
		t.Errorf("got %+v", o)
	}
	r.EndJob("migrate", memory.JobEnd{ExitCode: 3})
	r.want(r.retry(migrate), interpret.Failed, topology.CodeExited)
	r.runs(1)
	s := migrate
	s.Success = []int{3}
	r.settled(s)
}

// TestJobInterrupted: a power cut, or who stops it, is no failure: it is begun again, and not for ever.
func TestJobInterrupted(t *testing.T) {
	r := newRig(t)
	r.JobEnds("migrate", memory.JobEnd{Runs: true})
	for i := range 4 {
		r.want(r.retry(migrate), interpret.Changed, "")
		r.runs(i + 1)
		r.InterruptJob("migrate")
	}
	st := r.retry(migrate)
	r.want(st, interpret.Failed, topology.CodeJobFailed)
	r.runs(4)
	if o := read[job.Observed](t, st); o.Tries != 1 || o.Interrupted != 4 {
		t.Errorf("got %+v", o)
	}
}

// TestJobStaysDone: a job that leaves the manifest is not undone, and not run again when it comes back.
func TestJobStaysDone(t *testing.T) {
	r := newRig(t)
	r.want(r.play(migrate), interpret.Changed, "")
	g := &open{}
	st, err := r.table.Remove(t.Context(), score.Score{ID: "x", Spec: migrate}, interpret.CauseAbsent, g)
	if err != nil {
		t.Fatal(err)
	}
	r.want(st, interpret.Changed, "")
	if g.actions[0].Effect != interpret.Nothing {
		t.Errorf("its removal is %s", g.actions[0].Effect)
	}
	r.settled(migrate)
	r.runs(1)
}

// TestJobSecret: the value of a secret reaches the container, and what is remembered holds its name alone.
func TestJobSecret(t *testing.T) {
	r := newRig(t)
	s := score.Job{Name: "migrate", Container: &score.JobContainer{Image: "a.b/c:1", Env: map[string]score.Value{"PASSWORD": score.FromSecret("db")}}}
	r.want(r.play(s), interpret.Failed, topology.CodeSecret)
	r.SetSecret("db", "hunter2")
	r.want(r.play(s), interpret.Changed, "")
	r.SetSecret("db", "another")
	r.settled(s) // a rotation runs nothing again
	r.runs(1)
}

// TestJobOutputHoldsNoSecret: a program that writes what it was started with does not tell the fleet its secrets (G58).
func TestJobOutputHoldsNoSecret(t *testing.T) {
	const secret = "canary-52be-and-more"
	for name, output := range map[string]string{
		"somewhere":        "cannot connect to postgres://app:" + secret + "@192.0.2.1\n" + secret + "\n",
		"cut in its midst": strings.Repeat("x", 100) + secret + strings.Repeat("y", topology.LogBytes-10),
	} {
		r := newRig(t)
		r.SetSecret("db-password", secret)
		r.SetSecret("short", "x")
		r.JobEnds("dump", memory.JobEnd{ExitCode: 2, Output: output})
		dump := score.Job{Name: "dump", Container: &score.JobContainer{Image: "localhost/app:1", Env: map[string]score.Value{
			"PASSWORD": score.FromSecret("db-password"), "SHORT": score.FromSecret("short")}}}
		st := r.play(dump)
		r.want(st, interpret.Failed, topology.CodeExited)
		o := read[job.Observed](t, st)
		if strings.Contains(o.Output, "and-more") || !strings.Contains(o.Output, "(the secret db-password)") {
			t.Errorf("%s: told is %.200q", name, o.Output)
		}
	}
}
