package agent_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// dieAfter ends a running agent before its n-th step from now: a call of the device or a step of its books. died is closed
// then, and left gives what is left of the disk once the agent is stopped; nil if it did not come to that.
func (r *rig) dieAfter(n int, loss store.Loss) (died chan struct{}, left func() *store.Mem) {
	died = make(chan struct{})
	var mu sync.Mutex
	var disk *store.Mem
	steps, dead := 0, false
	step := func(books bool) bool {
		mu.Lock()
		defer mu.Unlock()
		if steps++; steps <= n {
			return false
		}
		if !dead {
			dead = true
			close(died)
		}
		if disk == nil && !books { // a write that is under way leaves a part
			disk = r.disk.Crash(loss)
		}
		return true
	}
	r.disk.Fault = func(store.Step) error {
		if step(true) {
			return errKilled
		}
		return nil
	}
	r.dev.Before(func(ctx context.Context, _ memory.Call) error {
		if step(false) {
			<-ctx.Done() // nothing that it does afterwards has any effect
			return errKilled
		}
		return nil
	})
	return died, func() *store.Mem {
		if dead && disk == nil {
			disk = r.disk.Crash(loss)
		}
		return disk
	}
}

// Killed before any step of what an approval lets happen, the device has done it once or not at all: then the request is
// open still, and another approval lets it happen. The same approval does nothing any more, and no request is left: X81, X83.
func TestApprovedRequestOverCrashes(t *testing.T) {
	kills := 0
	for _, loss := range []store.Loss{store.LoseAll, store.LoseNothing} {
		for n, over := 0, false; !over; n++ {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				_, f, h, stop := r.running()
				offer(t, h, intent(1, guardedFiles(1, "1", false)))
				later(time.Minute)
				offer(t, h, intent(2, guardedFiles(2, "1", true)))
				later(time.Minute)
				doc, _ := f.open()
				op := answering(interpret.VerbApprove, doc.Requests[0])
				op.Expires = time.Now().Add(time.Hour)

				died, left := r.dieAfter(n, loss)
				_ = h.Operation(op, "d") // a killed agent has nothing to say
				select {
				case <-died:
				case <-time.After(time.Second):
				}
				stop()
				r.dev.Before(nil)
				disk := left()
				if over = disk == nil; over {
					disk = r.disk.Crash(loss)
				} else {
					kills++
				}
				r.disk = disk
				r.start()
				_, f, h, _ = r.running()
				later(10 * time.Minute) // books that were torn are made sure of by a full pass first
				doc, _ = f.open()
				if _, there := r.dev.Read("/etc/b"); there {
					if len(doc.Requests) != 1 {
						t.Fatalf("killed before step %d: it is there, and asked for is %+v; %s", n+1, doc, outcomes(f.last()))
					}
					_ = h.Operation(op, "d")
					later(time.Minute)
					if _, there := r.dev.Read("/etc/b"); there { // the id was burnt, or not
						again := answering(interpret.VerbApprove, doc.Requests[0])
						if got := f.ask(t, h, again); got.Result != interpret.ResultDone {
							t.Fatalf("killed before step %d: approved again: %+v", n+1, got)
						}
					}
					r.gone("/etc/b")
				}
				r.dev.Put("/etc/b", "somebody else's")
				_ = h.Operation(op, "d")
				later(time.Hour)
				r.content("/etc/b", "somebody else's")
				if doc, said := f.open(); said > 0 && len(doc.Requests) > 0 {
					t.Errorf("killed before step %d: asked for is %+v", n+1, doc)
				}
				if notes := r.store.Notes("ask/"); len(notes) > 0 {
					t.Errorf("killed before step %d: %v", n+1, notes)
				}
			})
		}
	}
	if kills < 10 {
		t.Errorf("killed %d times only", kills)
	}
}
