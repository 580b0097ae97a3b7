package agent_test

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/agent"
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

	linger time.Duration                      // after a fetch was given up
	also   func(context.Context, memory.Call) // of all else
}

// slowRegistry lets every image hang until answers are given. All else takes a moment, as
// on every real device: so the watch of a new plan, which begins beside its pass, is there
// before anything is changed, whichever of the two goroutines runs first.
func (r *rig) slowRegistry() *registry {
	g := &registry{asked: map[topology.Resource]int{}, now: map[topology.Resource]int{}, answer: map[topology.Resource]chan error{}}
	r.dev.Before(func(ctx context.Context, c memory.Call) error {
		if c.Op != memory.OpEnsureImage || !c.Mutates { // or it is here
			time.Sleep(time.Microsecond)
			if g.also != nil {
				g.also(ctx, c)
			}
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
			time.Sleep(g.linger)
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
