package agent

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// gatherFor bounds how long an item waits for others before what is done once for all: one that starts
// slowly, or pulls something, holds up nobody.
const gatherFor = 2 * time.Second

// lanes play the items of a pass in their order, so many at once as there are lanes. An item that
// waits, for another one, for a group, or to gather, gives its lane up meanwhile, so that all that can be
// done before a reload of the service manager is done before it. An item that needs another one is played when
// that is up: a chain of new containers costs one reload for each link of it.
//
// lanes are the topology.Batch of the pass.
type lanes struct {
	halt <-chan struct{}

	mu      sync.Mutex
	free    int
	queue   []chan struct{} // of those that wait for a lane
	busy    int             // items that wait for nothing but a lane, and one for all that have not begun
	awaited map[*item]int   // how many wait for an item
	gather  []chan struct{} // of those that gather
	over    bool            // all were played
	last    []func(context.Context) error
	keys    map[any]bool // of last
}

func newLanes(n int, halt <-chan struct{}) *lanes {
	return &lanes{halt: halt, free: n, awaited: map[*item]int{}, keys: map[any]bool{}}
}

// each plays items, and returns when all were. An item that waits for another is always behind it.
func (l *lanes) each(items []*item, play func(*item)) {
	l.mu.Lock()
	l.busy, l.over = 1, false
	l.mu.Unlock()
	var wg sync.WaitGroup
	var begun atomic.Int64
	for range items {
		l.mu.Lock()
		l.busy++
		l.mu.Unlock()
		l.enter()
		wg.Go(func() {
			play(items[begun.Add(1)-1]) // in their order, whichever goroutine comes first
			l.mu.Lock()
			defer l.mu.Unlock()
			l.leave()
		})
	}
	l.mu.Lock()
	l.busy--
	l.move()
	l.mu.Unlock()
	wg.Wait()
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
}

// enter takes a lane, in turn.
func (l *lanes) enter() {
	l.mu.Lock()
	if l.free > 0 {
		l.free--
		l.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	l.queue = append(l.queue, turn)
	l.mu.Unlock()
	<-turn
}

// leave gives a lane up, to who waits for one. The lock is held.
func (l *lanes) leave() {
	l.busy--
	if len(l.queue) > 0 {
		close(l.queue[0])
		l.queue = l.queue[1:]
	} else {
		l.free++
	}
	l.move()
}

// move lets all that gather go on if nobody else moves. The lock is held.
func (l *lanes) move() {
	if l.busy == 0 {
		l.release()
	}
}

// release lets all that gather go on. The lock is held.
func (l *lanes) release() {
	for _, g := range l.gather {
		close(g)
	}
	l.busy += len(l.gather)
	l.gather = nil
}

// played says that an item was played: who waits for it goes on.
func (l *lanes) played(it *item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy += l.awaited[it]
	delete(l.awaited, it)
	close(it.done)
}

// await waits until an item was played.
func (l *lanes) await(it *item) {
	l.mu.Lock()
	select {
	case <-it.done:
		l.mu.Unlock()
		return
	default:
	}
	l.awaited[it]++
	l.leave()
	l.mu.Unlock()
	<-it.done
	l.enter()
}

// idle calls wait, which waits for something that another item ends, without a lane.
func (l *lanes) idle(wait func()) {
	l.mu.Lock()
	l.leave()
	l.mu.Unlock()
	wait()
	l.mu.Lock()
	l.busy++
	l.mu.Unlock()
	l.enter()
}

// Gather waits until all items that have begun wait as well, or for what gathers, and none is left that
// could begin. What collects has nobody to wait for.
func (l *lanes) Gather(ctx context.Context) error {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return ctx.Err()
	}
	on := make(chan struct{})
	l.gather = append(l.gather, on)
	l.leave()
	l.mu.Unlock()
	late := time.NewTimer(gatherFor)
	defer late.Stop()
	select {
	case <-on:
	case <-late.C:
		l.goOn()
	case <-l.halt:
		l.goOn()
	case <-ctx.Done():
		l.goOn()
	}
	<-on
	l.enter()
	return ctx.Err()
}

// goOn lets all that gather go on: what is done now is done for them, too.
func (l *lanes) goOn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release()
}

// Finally keeps do for the end of the pass.
func (l *lanes) Finally(key any, do func(context.Context) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.keys[key] {
		l.keys[key] = true
		l.last = append(l.last, do)
	}
}

// finish does what was kept for the end of the pass.
func (l *lanes) finish(ctx context.Context) (errs []error) {
	l.mu.Lock()
	last := l.last
	l.last, l.keys = nil, map[any]bool{}
	l.mu.Unlock()
	for _, do := range last {
		if err := do(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
