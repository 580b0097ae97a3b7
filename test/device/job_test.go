//go:build device && linux

package device

import (
	"fmt"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	ijob "github.com/continuo-fleet/continuo/interpret/job"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
	"github.com/continuo-fleet/continuo/topology"
)

// counter is a program that says in /srv/count that it began, takes its time, and ends with a code.
const counter = "#!/bin/sh\necho $1 >>/srv/count; sync\nsleep $2\necho $1 is over\nexit $3\n"

// counted is a job that runs the counter, after it was written.
func counted(name, seconds, code string, change ...func(*score.Job)) score.Score {
	j := score.Job{Name: name, Unit: &score.JobUnit{Exec: []string{"/usr/local/bin/count", name, seconds, code}}}
	for _, c := range change {
		c(&j)
	}
	return score.Score{ID: score.ID(name), After: []score.ID{"count"}, Spec: j}
}

func countFile() score.Score {
	return score.Score{ID: "count", Spec: score.File{Path: "/usr/local/bin/count", Content: counter, Mode: 0o755}}
}

func (s *site) begun(name string) int {
	s.t.Helper()
	n := 0
	for line := range strings.Lines(s.sh("cat /srv/count 2>/dev/null || true")) {
		if strings.TrimSpace(line) == name {
			n++
		}
	}
	return n
}

// TestJobs: once, typed, with retries, and whatever happens to the agent and the device meanwhile (X34).
func TestJobs(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	g := s.publish(countFile(), counted("well", "0", "0"), counted("bad", "0", "3", func(j *score.Job) { j.Retries = 1 }),
		counted("slow", "3600", "0", func(j *score.Job) { j.Timeout = score.Duration(3e9) }), counted("long", "25", "0"))
	is := func(id score.ID, want func(ijob.Observed) bool) {
		t.Helper()
		s.until(string(id), func(st fleet.DeviceState) error {
			sc, ok := st.Score(manifestName, id)
			if !ok || len(sc.Observed) == 0 {
				return fmt.Errorf("nothing is known of it")
			}
			if o := read[ijob.Observed](t, st, id); !want(o) {
				return fmt.Errorf("it is %s %s: %s", sc.Outcome, sc.Code, sc.Observed)
			}
			return nil
		})
	}
	is("well", func(o ijob.Observed) bool { return o.Exited != nil && o.Exited.Code == 0 && o.Output == "well is over" })
	s.outcome(g, "bad", interpret.Failed, "exited")
	is("bad", func(o ijob.Observed) bool { return o.Exited != nil && o.Exited.Code == 3 && o.Tries == 2 })
	is("slow", func(o ijob.Observed) bool { return o.TimedOut != nil && o.TimedOut.Waited >= score.Duration(3e9) })

	// The agent is killed while a job runs; the job is not, and is not begun again.
	is("long", func(o ijob.Observed) bool { return o.Phase == topology.JobRunning })
	s.sh("systemctl kill -s KILL continuo-agent")
	is("long", func(o ijob.Observed) bool { return o.Exited != nil && o.Exited.Code == 0 })
	s.outcome(g, "long", interpret.Unchanged, "")

	// A boot runs nothing again that has ended.
	s.Reboot()
	s.until("it is back", func(st fleet.DeviceState) error {
		if sc, ok := st.Score(manifestName, "long"); !ok || sc.Outcome != interpret.Unchanged || st.Liveness != fleet.Live {
			return fmt.Errorf("it is %s", sc.Outcome)
		}
		return nil
	})
	for name, want := range map[string]int{"well": 1, "bad": 2, "slow": 1, "long": 1} {
		if n := s.begun(name); n != want {
			t.Errorf("%s was run %d times, want %d", name, n, want)
		}
	}

	// A power cut in the middle: it is begun again.
	g = s.publish(countFile(), counted("cut", "20", "0"))
	is("cut", func(o ijob.Observed) bool { return o.Phase == topology.JobRunning })
	s.Crash()
	s.Up()
	is("cut", func(o ijob.Observed) bool { return o.Exited != nil && o.Interrupted == 1 && o.Tries == 1 })
	s.converged(g)
	if n := s.begun("cut"); n != 2 {
		t.Errorf("it was begun %d times, want 2", n)
	}
}
