package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// A drill is items whose play a test writes, on some lanes.
type drill struct {
	*lanes
	items []*item

	mu   sync.Mutex
	said []string
}

func newDrill(n, lanes int, halt <-chan struct{}) *drill {
	d := &drill{lanes: newLanes(lanes, halt)}
	for i := range n {
		d.items = append(d.items, &item{done: make(chan struct{}), score: score.Score{ID: score.ID(fmt.Sprint(i))}})
	}
	return d
}

func (d *drill) say(what string, it *item) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said = append(d.said, what+string(it.score.ID))
}

func (d *drill) run(play func(it *item)) {
	d.each(d.items, func(it *item) {
		defer d.played(it)
		for _, need := range it.needs {
			d.await(need)
		}
		play(it)
	})
}

// All that can be written is written before the first of many reloads for all, and then no more than the lanes are at work.
func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDrill(20, 4, nil)
		written, atWork, most := 0, 0, 0
		begun := time.Now()
		d.run(func(it *item) {
			time.Sleep(time.Millisecond)
			d.mu.Lock()
			written++
			d.mu.Unlock()
			if err := d.Gather(t.Context()); err != nil {
				t.Error(err)
			}
			d.mu.Lock()
			if atWork++; written != 20 {
				t.Errorf("%d of 20 are written before the reload", written)
			}
			most = max(most, atWork)
			d.mu.Unlock()
			time.Sleep(time.Millisecond)
			d.mu.Lock()
			atWork--
			d.mu.Unlock()
		})
		if most != 4 {
			t.Errorf("%d were at work at once on 4 lanes", most)
		}
		if took := time.Since(begun); took != 10*time.Millisecond {
			t.Errorf("it took %s", took)
		}
	})
}

// Who waits for another one is not waited for, and goes on before others gather to their end.
func TestGatherWithNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDrill(6, 2, nil)
		for i := 1; i < 4; i++ { // a chain of four, and two alone
			d.items[i].needs = d.items[i-1 : i]
		}
		gathers := map[time.Duration]int{}
		begun := time.Now()
		d.run(func(it *item) {
			time.Sleep(time.Millisecond)
			_ = d.Gather(t.Context())
			d.mu.Lock()
			gathers[time.Since(begun)]++
			d.mu.Unlock()
		})
		if len(gathers) > 4 || gathers[2*time.Millisecond] != 3 {
			t.Errorf("gathered at %v: the first of the chain with the two, and each of the others by itself", gathers)
		}
	})
}

// An item that gathers holds its group; those that wait for it hold no lane, and nobody waits for ever.
func TestGatherInGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDrill(12, 2, nil)
		for i, it := range d.items {
			it.score.Engine = &score.Engine{Group: fmt.Sprint("g", i%2)}
		}
		var g groups
		begun := time.Now()
		d.run(func(it *item) {
			unlock := g.lock(t.Context(), it, d.lanes)
			defer unlock()
			d.say("begins ", it)
			time.Sleep(time.Millisecond)
			_ = d.Gather(t.Context())
			d.say("ends ", it)
		})
		if len(d.said) != 24 {
			t.Errorf("%q", d.said)
		}
		if took := time.Since(begun); took > 100*time.Millisecond {
			t.Errorf("it took %s: somebody was waited for to no end", took)
		}
	})
}

// One that takes long holds up the others for a moment only, and those that gather go on together.
func TestGatherIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDrill(3, 2, nil)
		begun := time.Now()
		var at []time.Duration
		d.run(func(it *item) {
			switch it {
			case d.items[0]:
				time.Sleep(time.Hour)
				return
			case d.items[2]:
				time.Sleep(time.Second)
			}
			_ = d.Gather(t.Context())
			d.mu.Lock()
			at = append(at, time.Since(begun))
			d.mu.Unlock()
		})
		if !slices.Equal(at, []time.Duration{gatherFor, gatherFor}) {
			t.Errorf("they went on after %v", at)
		}
	})
}

// A stop and the end of a context end the wait.
func TestGatherEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, name := range []string{"halt", "context"} {
			halt := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			d := newDrill(2, 2, halt)
			begun := time.Now()
			d.run(func(it *item) {
				if it == d.items[0] {
					time.Sleep(time.Second)
					if name == "halt" {
						close(halt)
					} else {
						cancel()
					}
					time.Sleep(time.Hour)
					return
				}
				err := d.Gather(ctx)
				if took := time.Since(begun); took != time.Second || errors.Is(err, context.Canceled) != (name == "context") {
					t.Errorf("%s: it ended after %s with %v", name, took, err)
				}
			})
		}
	})
}

// What is kept for the end is done once for each key, and who gathers when all was played has nobody to wait for.
func TestFinally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDrill(4, 2, nil)
		done := 0
		keep := func() {
			d.Finally("reload", func(context.Context) error { done++; return errors.New("it fails") })
		}
		d.run(func(*item) { keep() })
		keep()
		begun := time.Now()
		if err := d.Gather(t.Context()); err != nil || time.Since(begun) > 0 {
			t.Errorf("it waited %s: %v", time.Since(begun), err)
		}
		if done > 0 {
			t.Error("it was done before the end")
		}
		if errs := d.finish(t.Context()); done != 1 || len(errs) != 1 {
			t.Errorf("done %d times, %v", done, errs)
		}
		if errs := d.finish(t.Context()); done != 1 || len(errs) != 0 {
			t.Error("it was done again")
		}
		keep()
		d.finish(t.Context())
		if done != 2 {
			t.Error("it is not done once more")
		}
	})
}

// Whatever waits for what, all is played, and no more at once than there are lanes.
func TestLanesDoNotDeadlock(t *testing.T) {
	for seed := range 50 {
		synctest.Test(t, func(t *testing.T) {
			d := newDrill(30, 1+seed%4, nil)
			for i, it := range d.items {
				it.score.Engine = &score.Engine{}
				if (i*seed)%3 == 1 {
					it.score.Engine.Group = fmt.Sprint((i + seed) % 4)
				}
				for _, back := range []int{seed%7 + 1, seed%5 + 3} {
					if i >= back && (i+seed)%2 == 0 {
						it.needs = append(it.needs, d.items[i-back])
					}
				}
			}
			var g groups
			n, atWork := 0, 0
			work := func(by int) {
				d.mu.Lock()
				defer d.mu.Unlock()
				if atWork += by; atWork > 1+seed%4 {
					t.Errorf("%d are at work", atWork)
				}
			}
			d.run(func(it *item) {
				defer g.lock(t.Context(), it, d.lanes)()
				for range seed % 3 {
					work(1)
					time.Sleep(time.Duration(len(it.needs)+1) * time.Millisecond)
					work(-1)
					_ = d.Gather(t.Context())
				}
				d.mu.Lock()
				n++
				d.mu.Unlock()
			})
			if n != 30 || d.busy != 0 || d.free != 1+seed%4 || len(d.queue)+len(d.gather)+len(d.awaited) > 0 {
				t.Errorf("seed %d: %d played; then busy %d, free %d", seed, n, d.busy, d.free)
			}
		})
	}
}
