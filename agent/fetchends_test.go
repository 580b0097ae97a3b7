package agent_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

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

// What is given up and wanted again is not fetched twice at the same time.
func TestFetchIsGivenUpSlowly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		g, f, h, _ := r.withWeb()
		g.linger = 10 * time.Second
		for gen := uint64(2); gen <= 6; gen++ { // wanted by 2, 4 and 6
			image := "web:1"
			if gen%2 == 0 {
				image = "web:2"
			}
			offer(t, h, second(gen, file("a", "/etc/a", "1"), runs("web", image)))
			later(time.Second)
		}
		if st := f.last(); outcomes(st) != "m/a=unchanged m/web=pending/prefetch " || st.Generation != 6 {
			t.Errorf("generation %d: %s", st.Generation, outcomes(st))
		}
		later(time.Minute)
		if asked, now := g.count("web:2"); asked != 2 || now != 1 || g.most != 1 {
			t.Errorf("asked %d times, %d under way, %d at once", asked, now, g.most)
		}
		g.serve("web:2", nil)
		later(time.Second)
		if st := f.last(); !st.ConvergedAt(6) {
			t.Errorf("generation %d: %s", st.Generation, outcomes(st))
		}
	})
}

// A pass that hangs holds up neither the end of a fetch that is not wanted any more, nor
// what a reader sees (H42).
func TestFetchEndsWhileAPassHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		g, f, h, _ := r.withWeb()
		g.also = func(ctx context.Context, c memory.Call) {
			if c.Op == memory.OpFile {
				<-ctx.Done()
			}
		}
		offer(t, h, second(2, file("a", "/etc/a", "2"), runs("web", "web:2"), runs("new", "new:1")))
		later(time.Second)
		if st := f.last(); outcomes(st) != "m/a=unchanged m/new=pending/prefetch m/web=pending/prefetch " {
			t.Errorf("got %s", outcomes(st))
		}
		offer(t, h, second(3, file("a", "/etc/a", "2"), runs("web", "web:2")))
		later(time.Second)
		_, web := g.count("web:2")
		if _, n := g.count("new:1"); n != 0 || web != 1 {
			t.Errorf("after a newer intent: new:1 is fetched %d times, web:2 %d times", n, web)
		}
		h.Control(agent.Control{Blocked: true})
		later(time.Second)
		if _, n := g.count("web:2"); n != 0 {
			t.Error("a blocked device fetches")
		}
	})
}

// A pass over the generation before ends early when the new one has what it needs.
func TestFetchedGenerationComesFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.runner.Parallel = 1
		g, f, h, _ := r.withWeb()
		files := func(content string) (out []score.Score) {
			for _, id := range []score.ID{"a", "b", "c"} {
				out = append(out, file(id, "/etc/"+string(id), content))
			}
			return append(out, runs("web", "web:"+content))
		}
		offer(t, h, second(2, append(files("2")[:3], runs("web", "web:1"))...))
		later(time.Second)
		offer(t, h, second(3, files("3")...))
		later(time.Second)
		rec := r.dev.Record()
		g.also = func(_ context.Context, c memory.Call) {
			if c.Op == memory.OpWriteFile {
				time.Sleep(time.Minute)
			}
		}
		for _, p := range []string{"/etc/a", "/etc/b", "/etc/c"} {
			r.dev.Put(p, "by hand")
		}
		later(30 * time.Second)
		g.serve("web:3", nil)
		later(10 * time.Minute)
		if st := f.last(); !st.ConvergedAt(3) {
			t.Errorf("generation %d: %s", st.Generation, outcomes(st))
		}
		if n := len(slices.DeleteFunc(rec.Calls(), func(c memory.Call) bool { return c.Op != memory.OpWriteFile })); n != 4 {
			t.Errorf("%d files were written, one as it was and three as they are to be", n)
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

// No more than a few are fetched at once; a crash fails its own score only, and a stop
// leaves nothing behind (a bubble fails if it does) (H24, X87).
func TestFetchesAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		var mu sync.Mutex
		now, most := 0, 0
		r.dev.Before(func(ctx context.Context, c memory.Call) error {
			if c.Resource == "image:localhost/wrong:1" {
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
		scores := []score.Score{runs("wrong", "wrong:1"), runs("con", "con:1")}
		offer(t, h, intent(1, manifest("m", scores...)))
		later(time.Minute)
		if st := f.last(); outcomes(st) != "m/con=pending/prefetch m/wrong=failed/panic " {
			t.Errorf("got %s", outcomes(st))
		}
		for _, n := range strings.Fields("dx ex fx gx hx ix jx") {
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
