package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

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
		got := strings.Replace(outcomes(st), "m/a=changed", "m/a=unchanged", 1) // its own change may have been looked at already
		if got != "m/a=unchanged m/b=waiting/dependency m/web=failed/image_unavailable " || st.Phase != interpret.PhaseIdle || r.image("web") != "web:1" {
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

// What fails fast makes few reports and passes: for each try one that names the next, and one with what is there (X17).
func TestFailingFetchIsCheap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.dev.Fail(memory.OpEnsureImage, "", topology.Faultf(topology.CodeImage, "no such image"))
		_, f, h, _ := r.running()
		rec := r.dev.Record()
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"), runs("web", "web:1"))))
		later(time.Hour)
		if n := len(f.reported); n > 40 { // of 19 tries
			t.Errorf("%d reports in an hour", n)
		}
		if n := count(rec, memory.OpFile, "file:/etc/a"); n > 60 {
			t.Errorf("looked %d times in an hour", n)
		}
	})
}

// What only the generation in force has is watched and kept until the new one comes; what
// it still waited for itself is given up.
func TestGenerationInForceIsKeptWhole(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		g := r.slowRegistry()
		_, f, h, _ := r.running()
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"), runs("web", "web:1"))))
		later(time.Minute)
		offer(t, h, second(2, file("b", "/etc/b", "2"), runs("new", "new:1")))
		later(time.Minute)
		r.dev.Put("/etc/a", "by hand")
		later(time.Second)
		r.content("/etc/a", "1")
		if _, now := g.count("web:1"); outcomes(f.last()) != "m/a=unchanged m/new=pending/prefetch m/web=waiting " || now != 0 {
			t.Errorf("web:1 is fetched %d times", now)
		}
		g.serve("new:1", nil)
		later(time.Second)
		if st := f.last(); !st.ConvergedAt(2) {
			t.Errorf("generation %d: %s", st.Generation, outcomes(st))
		}
		r.content("/etc/a", "")
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
		_, _, h, stop = r.running()
		offer(t, h, intent(2, manifest("m", web("new"))))
		later(time.Minute)
		stop()
		r.restart()
		_, f, _, _ := r.running() // the new generation is in force at once
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
