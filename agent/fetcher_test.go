package agent_test

import (
	"context"
	"fmt"
	"strings"
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

// A registry whose answers take until they are let through.
type registry struct {
	mu     sync.Mutex
	asked  map[topology.Resource]int // in all
	now    map[topology.Resource]int // under way
	most   int                       // of one image at the same time
	answer map[topology.Resource]chan error
}

// slowRegistry lets every image hang until answers are given.
func (r *rig) slowRegistry() *registry {
	g := &registry{asked: map[topology.Resource]int{}, now: map[topology.Resource]int{}, answer: map[topology.Resource]chan error{}}
	r.dev.Before(func(ctx context.Context, c memory.Call) error {
		if c.Op != memory.OpEnsureImage || !c.Mutates { // or it is here
			return nil
		}
		g.mu.Lock()
		g.asked[c.Resource]++
		g.now[c.Resource]++
		g.most = max(g.most, g.now[c.Resource])
		ch := g.channel(c.Resource)
		g.mu.Unlock()
		defer func() { g.mu.Lock(); g.now[c.Resource]--; g.mu.Unlock() }()
		select {
		case err := <-ch:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return g
}

func (g *registry) channel(r topology.Resource) chan error {
	if g.answer[r] == nil {
		g.answer[r] = make(chan error, 100)
	}
	return g.answer[r]
}

// serve lets the next answer for an image through: the image, or an error.
func (g *registry) serve(image string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.channel(topology.Resource("image:localhost/" + image)) <- err
}

func (g *registry) count(image string) (asked, now int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := topology.Resource("image:localhost/" + image)
	return g.asked[r], g.now[r]
}

func runs(id score.ID, image string, after ...score.ID) score.Score {
	return score.Score{ID: id, After: after, Spec: score.Container{Name: string(id), Image: "localhost/" + image, Restart: score.RestartAlways}}
}

func later(d time.Duration) { time.Sleep(d); synctest.Wait() }

func (r *rig) image(name string) string {
	st, err := r.dev.Containers().Container(r.t.Context(), name)
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimPrefix(st.Image, "localhost/")
}

func (r *rig) content(path, want string) {
	r.t.Helper()
	if c, _ := r.dev.Read(path); c != want {
		r.t.Errorf("%s is %q, want %q", path, c, want)
	}
}

// withWeb starts an agent on a device that runs generation 1: web:1 and a file.
func (r *rig) withWeb() (*registry, *fleetSide, agent.Handler, func()) {
	r.t.Helper()
	g := r.slowRegistry()
	_, f, h, stop := r.running()
	g.serve("web:1", nil)
	offer(r.t, h, intent(1, manifest("m", file("a", "/etc/a", "1"), runs("web", "web:1"))))
	later(time.Minute)
	if st := f.last(); !st.ConvergedAt(1) {
		r.t.Fatalf("generation 1: %s", outcomes(st))
	}
	return g, f, h, stop
}

func second(generation uint64, scores ...score.Score) agent.Intent {
	m := manifest("m", scores...)
	m.Metadata.Generation = generation
	return intent(generation, m)
}

// While what a new generation needs is being fetched, for hours, nothing of it is touched,
// what was applied is kept true, and a reader sees what is under way; then it comes into
// force in one step (H42).
func TestDriftIsCorrectedWhileAnImageIsFetched(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		g, f, h, _ := r.withWeb()
		offer(t, h, second(2, file("a", "/etc/a", "2"), runs("web", "web:2"), runs("new", "new:1")))
		later(time.Second)
		st := f.last()
		if outcomes(st) != "m/a=unchanged m/new=pending/prefetch m/web=pending/prefetch " || st.Generation != 2 || st.Phase != interpret.PhaseRunning || st.State != interpret.StateConverging {
			t.Errorf("under way: generation %d is %s, %s: %s", st.Generation, st.Phase, st.State, outcomes(st))
		}
		r.dev.Put("/etc/a", "by hand")
		r.dev.StopUnit("web.service")
		later(time.Second)
		r.content("/etc/a", "1")
		if !r.active(t, "web.service") || r.image("web") != "web:1" {
			t.Error("the container that was stopped is not up again as it was")
		}
		later(100 * time.Minute)
		g.serve("web:2", nil)
		later(time.Minute)
		r.content("/etc/a", "1")
		if st := f.last(); outcomes(st) != "m/a=unchanged m/new=pending/prefetch m/web=unchanged " || st.Generation != 2 || st.ConvergedAt(2) {
			t.Errorf("one of two is here: generation %d: %s", st.Generation, outcomes(st))
		}
		g.serve("new:1", nil)
		later(time.Second)
		r.content("/etc/a", "2")
		if st := f.last(); !st.ConvergedAt(2) || r.image("web") != "web:2" {
			t.Errorf("at the end: %s", outcomes(st))
		}
		if g.most > 1 {
			t.Errorf("one image was fetched %d times at once", g.most)
		}
	})
}

// An image that cannot be had fails its own score only, what ran goes on, and it is asked
// for again with growing pauses and beside the passes (H10, H69).
func TestAnImageCannotBeFetched(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		g, f, h, _ := r.withWeb()
		offer(t, h, second(2, file("a", "/etc/a", "2"), runs("web", "web:2"), file("b", "/etc/b", "2", "web")))
		later(time.Minute)
		g.serve("web:2", topology.Faultf(topology.CodeImage, "no such image"))
		later(200 * time.Millisecond)
		r.content("/etc/a", "2")
		st := f.last()
		if outcomes(st) != "m/a=unchanged m/b=waiting/dependency m/web=failed/image_unavailable " || st.Phase != interpret.PhaseIdle || r.image("web") != "web:1" {
			t.Errorf("got %s, %s", st.Phase, outcomes(st))
		}
		later(time.Minute) // the second try hangs
		r.dev.Put("/etc/a", "by hand")
		later(time.Second)
		r.content("/etc/a", "2")
		if st := fmt.Sprint(f.last().Manifests); !strings.Contains(st, "no such image; it is being fetched again") {
			t.Errorf("got %s", st)
		}
		for range 20 {
			g.serve("web:2", topology.Faultf(topology.CodeImage, "no such image"))
		}
		later(time.Hour)
		if asked, _ := g.count("web:2"); asked < 10 || asked > 25 {
			t.Errorf("asked for %d times in an hour", asked)
		}
		f.last()
		for range 20 { // the first of them are errors still
			g.serve("web:2", nil)
		}
		later(10 * time.Minute)
		if st := f.last(); !st.ConvergedAt(2) || r.image("web") != "web:2" {
			t.Errorf("at the end: %s", outcomes(st))
		}
	})
}

// What fails fast makes no more reports and passes than its tries (X17).
func TestFailingFetchIsCheap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.dev.Fail(memory.OpEnsureImage, "", topology.Faultf(topology.CodeImage, "no such image"))
		_, f, h, _ := r.running()
		rec := r.dev.Record()
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"), runs("web", "web:1"))))
		later(time.Hour)
		if n := len(f.reported); n > 25 {
			t.Errorf("%d reports in an hour", n)
		}
		if n := count(rec, memory.OpFile, "file:/etc/a"); n > 60 {
			t.Errorf("looked %d times in an hour", n)
		}
	})
}

// A newer intent ends what it does not need, and goes on with what it needs too (cases 139).
func TestNewerIntentWhileFetching(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		g, f, h, _ := r.withWeb()
		offer(t, h, second(2, file("a", "/etc/a", "2"), runs("web", "web:2"), runs("new", "new:1")))
		later(time.Minute)
		offer(t, h, second(3, file("a", "/etc/a", "3"), runs("web", "web:1"), runs("new", "new:1")))
		later(time.Second)
		r.content("/etc/a", "1")
		if asked, now := g.count("web:2"); asked != 1 || now != 0 {
			t.Errorf("what is not needed any more: asked %d times, %d under way", asked, now)
		}
		if asked, now := g.count("new:1"); asked != 1 || now != 1 {
			t.Errorf("what is still needed: asked %d times, %d under way", asked, now)
		}
		if st := f.last(); outcomes(st) != "m/a=unchanged m/new=pending/prefetch m/web=unchanged " || st.Generation != 3 {
			t.Errorf("generation %d: %s", st.Generation, outcomes(st))
		}
		offer(t, h, second(4, file("a", "/etc/a", "4"), runs("web", "web:1")))
		later(time.Second)
		if st := f.last(); !st.ConvergedAt(4) {
			t.Errorf("generation %d: %s", st.Generation, outcomes(st))
		}
	})
}

// A start without a registry plays what it can and connects; what waits for an image
// follows when it is here, also if the agent was restarted meanwhile (H35).
func TestStartWithoutRegistry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		g := r.slowRegistry()
		_, f, h, stop := r.running()
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"), runs("web", "web:1"), file("b", "/etc/b", "1", "web"))))
		later(time.Second)
		check := func(f *fleetSide) {
			t.Helper()
			r.content("/etc/a", "1")
			if st := f.last(); !strings.HasSuffix(outcomes(st), "changed m/b=waiting/dependency m/web=pending/prefetch ") ||
				st.Phase != interpret.PhaseRunning || st.State != interpret.StateConverging {
				t.Errorf("%s, %s: %s", st.Phase, st.State, outcomes(st))
			}
		}
		check(f)
		stop()
		r.restart()
		r.dev.Put("/etc/a", "by hand")
		begun := time.Now()
		_, f, _, _ = r.running() // returns when it has connected
		if d := time.Since(begun); d > time.Second {
			t.Errorf("connected after %s", d)
		}
		later(time.Second)
		check(f)
		g.serve("web:1", nil)
		later(time.Second)
		if st := f.last(); !st.ConvergedAt(1) {
			t.Errorf("at the end: %s", outcomes(st))
		}
		r.content("/etc/b", "1")
	})
}

// A restart in the middle of a fetch goes on with what was accepted last.
func TestRestartWhileFetching(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, _, h, stop := r.withWeb()
		offer(t, h, second(2, file("a", "/etc/a", "2"), runs("web", "web:2")))
		later(time.Minute)
		stop()
		r.restart()
		g := r.slowRegistry()
		_, f, _, _ := r.running()
		later(time.Second)
		if st := f.last(); outcomes(st) != "m/a=unchanged m/web=pending/prefetch " || st.Generation != 2 || r.image("web") != "web:1" {
			t.Errorf("generation %d: %s", st.Generation, outcomes(st))
		}
		g.serve("web:2", nil)
		later(time.Second)
		if st := f.last(); !st.ConvergedAt(2) || r.image("web") != "web:2" {
			t.Errorf("generation %d: %s", st.Generation, outcomes(st))
		}
	})
}

// A device that may only observe fetches nothing, and goes on when it may again (S25).
func TestBlockedWhileFetching(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		g, f, h, _ := r.withWeb()
		offer(t, h, second(2, file("a", "/etc/a", "2"), runs("web", "web:2")))
		later(time.Minute)
		h.Control(agent.Control{Blocked: true})
		later(time.Hour)
		if asked, now := g.count("web:2"); asked != 1 || now != 0 {
			t.Errorf("asked %d times, %d under way", asked, now)
		}
		if st := f.last(); outcomes(st) != "m/a=drifted/blocked m/web=drifted/blocked " || st.Generation != 2 || st.Phase != interpret.PhaseIdle {
			t.Errorf("blocked: %s, %s", st.Phase, outcomes(st))
		}
		h.Control(agent.Control{})
		later(time.Second)
		r.dev.Put("/etc/a", "by hand")
		later(time.Second)
		r.content("/etc/a", "1") // as before: what it needs is not here yet
		g.serve("web:2", nil)
		later(time.Second)
		if st := f.last(); !st.ConvergedAt(2) {
			t.Errorf("at the end: %s", outcomes(st))
		}
	})
}

// A container that gives way to another keeps its port until the other could start.
func TestPortIsKeptUntilTheImageIsHere(t *testing.T) {
	web := func(name string) score.Score {
		return score.Score{ID: score.ID(name), Spec: score.Container{Name: name, Image: "localhost/" + name + ":1", Ports: []score.Port{{Host: 80, Container: 80}}}}
	}
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, _, h, stop := r.running()
		offer(t, h, intent(1, manifest("m", web("old"))))
		later(time.Minute)
		stop()
		r.restart()
		g := r.slowRegistry()
		_, f, h, stop := r.running()
		offer(t, h, intent(2, manifest("m", web("new"))))
		later(time.Minute)
		stop()
		r.restart()
		_, f, _, _ = r.running() // the new generation is in force at once
		later(time.Minute)
		if !r.active(t, "old.service") {
			t.Error("the old one is gone, and the new one cannot start")
		}
		g.serve("new:1", nil)
		later(10 * time.Minute)
		if st := f.last(); !st.ConvergedAt(2) || r.active(t, "old.service") {
			t.Errorf("at the end: %s", outcomes(st))
		}
	})
}

// No more than a few are fetched at once; a crash fails its own score only, and a stop
// leaves nothing behind (a bubble fails if it does) (H24, X87).
func TestFetchesAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		var mu sync.Mutex
		now, most := 0, 0
		r.dev.Before(func(ctx context.Context, c memory.Call) error {
			if c.Resource == "image:localhost/bad:1" {
				panic("out of luck")
			}
			if c.Op == memory.OpEnsureImage {
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				<-ctx.Done()
				mu.Lock()
				now--
				mu.Unlock()
			}
			return ctx.Err()
		})
		_, f, h, stop := r.running()
		scores := []score.Score{runs("bad", "bad:1"), runs("c", "c:1")}
		offer(t, h, intent(1, manifest("m", scores...)))
		later(time.Minute)
		if st := f.last(); outcomes(st) != "m/bad=failed/panic m/c=pending/prefetch " {
			t.Errorf("got %s", outcomes(st))
		}
		for _, n := range strings.Fields("d e f g h i j") {
			scores = append(scores, runs(score.ID(n), n+":1"))
		}
		offer(t, h, intent(2, manifest("m", scores...)))
		later(time.Minute)
		if most != 4 {
			t.Errorf("%d are fetched at once", most)
		}
		begun := time.Now()
		stop()
		if d := time.Since(begun); d > time.Second || now > 0 {
			t.Errorf("stopping took %s, %d are under way", d, now)
		}
	})
}
