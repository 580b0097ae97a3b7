package agent_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// How a score is played beyond its kind, one parameter after the other (X100).

func played(s score.Score, e score.Engine) score.Score {
	s.Engine = &e
	return s
}

// calls are the times of the calls of one operation about one thing.
type calls struct {
	mu sync.Mutex
	at []time.Time
}

// timed notes when an operation is called, and lets it go on, or fail.
func (r *rig) timed(op memory.Op, with error) *calls {
	c := &calls{}
	r.dev.Before(func(_ context.Context, call memory.Call) error {
		if call.Op == op {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.at = append(c.at, time.Now())
			return with
		}
		return nil
	})
	return c
}

// gaps are the pauses between calls, in seconds.
func (c *calls) gaps() (out []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.at[1:] {
		out = append(out, int(c.at[i+1].Sub(c.at[i]).Round(time.Second)/time.Second))
	}
	return out
}

func (c *calls) number() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.at)
}

func TestNoop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		rec := r.dev.Record()
		offer(t, h, intent(1, manifest("m", played(file("a", "/etc/a", "1"), score.Engine{Noop: true}), file("b", "/etc/b", "1"))))
		later(time.Hour)
		r.want(f.last(), "m/a=drifted/noop m/b=unchanged")
		for _, c := range rec.Mutations() {
			if c.Resource == "file:/etc/a" {
				t.Errorf("called %v", c)
			}
		}
	})
}

func TestRetriesAndDelay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		tries := r.timed(memory.OpWriteFile, topology.Faultf(topology.CodeNoSpace, "no space left"))
		s := played(file("a", "/etc/a", "1"), score.Engine{Retries: new(2), Delay: score.Duration(30 * time.Second)})
		offer(t, h, intent(1, manifest("m", s)))
		later(time.Hour)
		if got := tries.gaps(); len(got) != 2 || got[0] != 30 || got[1] != 60 {
			t.Errorf("tried with pauses of %v", got)
		}
		r.want(f.last(), "m/a=failed/gave_up")
		looks := r.timed(memory.OpFile, nil)
		later(time.Hour)
		if n := looks.number(); n > 60 { // full passes go on
			t.Errorf("what is left alone was looked at %d times in an hour", n)
		}
		m := manifest("m", played(file("a", "/etc/a", "2"), score.Engine{Retries: new(2)}))
		m.Metadata.Generation = 2
		offer(t, h, intent(2, m))
		later(time.Second)
		r.content("/etc/a", "2") // a new wish is tried at once
	})
}

func TestTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		r.dev.Before(func(ctx context.Context, c memory.Call) error {
			if c.Op == memory.OpWriteFile {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		offer(t, h, intent(1, manifest("m", played(file("a", "/etc/a", "1"), score.Engine{Timeout: score.Duration(3 * time.Second), Retries: new(0)}))))
		later(3500 * time.Millisecond)
		if st := f.last(); st.Manifests[0].Scores[0].Outcome != interpret.Failed {
			t.Errorf("after its time: %s", outcomes(st))
		}
		r.dev.Before(nil)
	})
}

func TestPoll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, _, h, _ := r.running(func(c *agent.Config) { c.Relist, c.Events = 24*time.Hour, nil })
		offer(t, h, intent(1, manifest("m", played(file("a", "/etc/a", "1"), score.Engine{Poll: score.Duration(10 * time.Second)}), file("b", "/etc/b", "1"))))
		later(time.Minute)
		looks := r.timed(memory.OpFile, nil)
		later(100 * time.Second)
		if n := looks.number(); n != 10 {
			t.Errorf("looked %d times in 100 s", n)
		}
		r.dev.Put("/etc/a", "drift")
		later(11 * time.Second)
		r.content("/etc/a", "1")
	})
}

func TestLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		writes := r.timed(memory.OpWriteFile, nil)
		offer(t, h, intent(1, manifest("m", played(file("a", "/etc/a", "1"), score.Engine{Limit: &score.Limit{Changes: 2, Per: score.Duration(10 * time.Minute)}}))))
		later(time.Second)
		r.dev.Put("/etc/a", "drift")
		later(time.Minute)
		r.dev.Put("/etc/a", "more")
		later(time.Minute)
		r.want(f.last(), "m/a=drifted/limit")
		if n := writes.number(); n != 2 {
			t.Errorf("%d changes", n)
		}
		f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: f.plan(t, h).ID})
		r.content("/etc/a", "1") // whoever asks for it does not wait
		r.dev.Put("/etc/a", "drift")
		later(8 * time.Minute)
		r.content("/etc/a", "1")
		looks := r.timed(memory.OpFile, nil)
		later(time.Hour)
		if n := looks.number(); n > 60 {
			t.Errorf("looked %d times in an hour of quiet", n)
		}
	})
}

func TestGroup(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		var mu sync.Mutex
		now, most := map[bool]int{}, map[bool]int{}
		r.dev.Before(func(_ context.Context, c memory.Call) error {
			if c.Op != memory.OpWriteFile {
				return nil
			}
			grouped := c.Resource != "file:/etc/x" && c.Resource != "file:/etc/y"
			mu.Lock()
			now[grouped]++
			most[grouped] = max(most[grouped], now[grouped])
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now[grouped]--
			mu.Unlock()
			return nil
		})
		e := score.Engine{Group: "display"}
		offer(t, h, intent(1, manifest("m", played(file("a", "/etc/a", "1"), e), file("x", "/etc/x", "1"), file("y", "/etc/y", "1")),
			manifest("n", played(file("a", "/etc/b", "1"), e), played(file("c", "/etc/c", "1", "a"), e))))
		later(time.Minute)
		synctest.Wait()
		if st := f.last(); !st.ConvergedAt(1) {
			t.Errorf("%s", outcomes(st))
		}
		if most[true] != 1 || most[false] != 2 {
			t.Errorf("at once: %d of the group, %d of the others", most[true], most[false])
		}
		r.dev.Before(nil)
	})
}
