package agent_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// Cold start does nothing and says so; an offered intent is applied and reported (S23, S22, H09).
func TestColdStartThenIntent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		rec := r.dev.Record()
		_, f, h, _ := r.running()
		time.Sleep(time.Hour)
		synctest.Wait()
		if st := f.last(); st.State != interpret.StateNoIntent || len(rec.Mutations()) > 0 {
			t.Fatalf("state %s after %v", st.State, rec.Mutations())
		}
		if err := h.Offer(intent(1, manifest("m", file("a", "/etc/a", "1")))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		st := f.last()
		if !st.ConvergedAt(1) || st.Device != "pi-1" || st.Started.IsZero() || st.Finished.Before(st.Started) {
			t.Fatalf("got %+v", st)
		}
	})
}

// Older, tampered and incomplete intents are refused, said once, and change nothing (H36, S34, cases 132, 142).
func TestRefusedIntentsKeepTheLastKnown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		a, f, h, _ := r.running()
		if err := h.Offer(intent(7, manifest("m", file("a", "/etc/a", "7")))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		short := intent(9, manifest("m", file("a", "/etc/a", "9")))
		short.Assignment.Spec.Scores = 2
		for _, tt := range []struct {
			in   agent.Intent
			code interpret.Code
		}{
			{intent(6, manifest("m", file("a", "/etc/a", "6"))), agent.CodeRegressed},
			{intent(7, manifest("m", file("a", "/etc/a", "other"))), agent.CodeEquivocation},
			{short, agent.CodeNotWhole},
		} {
			for range 3 {
				var ref *agent.Refusal
				if err := h.Offer(tt.in); !errors.As(err, &ref) || ref.Code != tt.code {
					t.Errorf("got %v, want %s", err, tt.code)
				}
			}
			time.Sleep(time.Second)
			synctest.Wait()
			n := 0
			for _, p := range f.last().Problems {
				if p.Code == tt.code {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s was reported %d times", tt.code, n)
			}
		}
		if c, _ := r.dev.Read("/etc/a"); c != "7" || a.Pulse().Generation != 7 {
			t.Errorf("content %q, generation %d", c, a.Pulse().Generation)
		}
	})
}

// A restarted agent converges from disk before it connects (S01, H35).
func TestStartFromDisk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, _, h, stop := r.running()
		if err := h.Offer(intent(3, manifest("m", file("a", "/etc/a", "3")))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		stop()
		r.dev.Put("/etc/a", "changed while the agent was off")
		r.restart()
		connected := ""
		a, _, _, _ := r.running(func(c *agent.Config) {
			c.Link.(*fleetSide).onConnect = func() { connected, _ = r.dev.Read("/etc/a") }
		})
		if connected != "3" || a.Pulse().Generation != 3 {
			t.Errorf("connected with %q at generation %d", connected, a.Pulse().Generation)
		}
	})
}

// Drift that an event tells of is corrected at once; drift that no event tells of, on the next full pass (H25, H62).
func TestEventsHurryAndRelistIsTheTruth(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, _, h, _ := r.running()
		if err := h.Offer(intent(1, manifest("m", file("a", "/etc/a", "1"), service("s", "s.service"), container("web", "web")))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		for _, tt := range []struct {
			name  string
			drift func()
			good  func() bool
		}{
			{"file", func() { r.dev.Put("/etc/a", "x") }, func() bool { c, _ := r.dev.Read("/etc/a"); return c == "1" }},
			{"unit", func() { r.dev.StopUnit("s.service") }, func() bool { return r.active(t, "s.service") }},
			{"container", func() { r.dev.StopUnit("web.service") }, func() bool { return r.active(t, "web.service") }},
		} {
			tt.drift()
			if tt.good() {
				t.Fatalf("%s: no drift", tt.name)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if !tt.good() {
				t.Errorf("%s: not corrected in 2 s", tt.name)
			}
			time.Sleep(10 * time.Minute)
		}
	})
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, _, h, _ := r.running(func(c *agent.Config) { c.Events = nil })
		if err := h.Offer(intent(1, manifest("m", file("a", "/etc/a", "1")))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		r.dev.Put("/etc/a", "x")
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		if c, _ := r.dev.Read("/etc/a"); c != "1" {
			t.Error("not corrected by the full pass")
		}
	})
}

func (r *rig) active(t *testing.T, unit string) bool {
	st, err := r.dev.Services().Service(context.Background(), unit)
	if err != nil {
		t.Fatal(err)
	}
	return st.Active == "active"
}

// What fails is tried again with growing pauses and without anybody's help (H10).
func TestRetryWithBackoff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		for range 2 {
			r.dev.FailOnce(memory.OpWriteFile, "file:/etc/a", topology.Faultf(topology.CodeIO, "io"))
		}
		_, f, h, _ := r.running()
		if err := h.Offer(intent(1, manifest("m", file("a", "/etc/a", "1")))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if st := f.last(); st.State != interpret.StateFailed {
			t.Fatalf("state %s", st.State)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if st := f.last(); !st.ConvergedAt(1) {
			t.Errorf("got %s", outcomes(st))
		}
	})
}

// An idle agent reports nothing, writes nothing and changes nothing (X17).
func TestIdle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		if err := h.Offer(intent(1, manifest("m", file("a", "/etc/a", "1"), service("s", "s.service"), container("web", "web")))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		f.last()
		rec, disk := r.dev.Record(), r.disk.Stats()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if n := len(f.reported); n > 0 || len(rec.Mutations()) > 0 || r.disk.Stats() != disk {
			t.Errorf("a quiet day: %d reports, calls %v, disk %+v, before %+v", n, rec.Mutations(), r.disk.Stats(), disk)
		}
	})
}

// A long pass is seen as running with the new generation, and the supervisor hears of it (H42, H39).
func TestLongPass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.dev.Before(func(ctx context.Context, c memory.Call) error {
			if c.Op == memory.OpStart {
				select {
				case <-time.After(5 * time.Minute):
				case <-ctx.Done():
				}
			}
			return ctx.Err()
		})
		sup := &supervisor{}
		_, f, h, _ := r.running(func(c *agent.Config) { c.Supervisor, c.Beat = sup, 20*time.Second })
		if err := h.Offer(intent(4, manifest("m", service("s", "s.service")))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		st := f.last()
		if st.Phase != interpret.PhaseRunning || st.Generation != 4 || st.ConvergedAt(4) {
			t.Errorf("while it runs: phase %s, generation %d", st.Phase, st.Generation)
		}
		if sup.alive.Load() < 2 || sup.ready.Load() != 1 {
			t.Errorf("the supervisor heard ready %d times and alive %d times", sup.ready.Load(), sup.alive.Load())
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if st := f.last(); !st.ConvergedAt(4) {
			t.Errorf("after it: %s %s", st.Phase, outcomes(st))
		}
	})
}

type supervisor struct{ ready, alive atomic.Int32 }

func (s *supervisor) Ready() { s.ready.Add(1) }

func (s *supervisor) Alive() { s.alive.Add(1) }

func (s *supervisor) Stopping() {}

// A newer intent ends a pass over an older one early (cases 139).
func TestNewerIntentSupersedes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.runner.Parallel = 1
		r.dev.Before(func(ctx context.Context, c memory.Call) error {
			if c.Op == memory.OpWriteFile && strings.HasPrefix(string(c.Resource), "file:/slow") {
				time.Sleep(time.Minute)
			}
			return nil
		})
		_, f, h, _ := r.running()
		if err := h.Offer(intent(1, manifest("m", file("a", "/slow/a", "1"), file("b", "/slow/b", "1"), file("c", "/slow/c", "1")))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := h.Offer(intent(2, manifest("m", file("x", "/etc/x", "2")))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if _, ok := r.dev.Read("/slow/c"); ok {
			t.Error("the old intent was played to its end")
		}
		if st := f.last(); st.Generation != 2 || st.State != interpret.StateConverged {
			t.Errorf("generation %d is %s", st.Generation, st.State)
		}
	})
}

// A blocked device observes and reports, and changes nothing; unblocked it goes on (S25).
func TestBlocked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		if err := h.Offer(intent(1, manifest("m", file("a", "/etc/a", "1")))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		h.Control(agent.Control{Blocked: true})
		time.Sleep(time.Second)
		rec := r.dev.Record()
		r.dev.Put("/etc/a", "x")
		time.Sleep(time.Hour)
		synctest.Wait()
		if st := f.last(); outcomes(st) != "m/a=drifted/blocked " || len(rec.Mutations()) > 0 {
			t.Errorf("blocked: %s, calls %v", outcomes(st), rec.Mutations())
		}
		h.Control(agent.Control{})
		time.Sleep(time.Second)
		synctest.Wait()
		if c, _ := r.dev.Read("/etc/a"); c != "1" {
			t.Error("not corrected after it was unblocked")
		}
	})
}

func holdsIntent(t *testing.T, m *store.Mem, generation uint64) bool {
	s, rec, err := store.Open(m, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return len(rec.Intents) == 1 && rec.Intents[0].Generation == generation
}

// The state directory removed while the agent runs: it is made again, said, and nothing is collected (cases 122).
func TestStateDirectoryRemoved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		if err := h.Offer(intent(1, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1")))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		r.disk.RemoveAll()
		time.Sleep(10 * time.Minute) // the next full pass notices
		synctest.Wait()
		if m := r.disk.Crash(store.LoseAll); !holdsIntent(t, m, 1) {
			t.Error("the intent is not in the books that were made again")
		}
		r.disk.RemoveAll()
		if err := h.Offer(intent(2, manifest("m", file("a", "/etc/a", "1")))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		spared, found := false, false
		for len(f.reported) > 0 {
			st := <-f.reported
			for _, p := range st.Problems {
				found = found || p.Code == agent.CodeRecovered
			}
			spared = spared || st.Generation == 2 && len(st.Orphans) == 1 // the pass that noticed collected nothing
		}
		if !spared || !found {
			t.Errorf("b was spared: %v, reported: %v", spared, found)
		}
		r.restart()
		if len(r.lost.Intents) != 1 || r.lost.Intents[0].Generation != 2 {
			t.Errorf("the new directory holds %+v", r.lost.Intents)
		}
	})
}
