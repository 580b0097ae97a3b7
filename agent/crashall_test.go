package agent_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// The agent is killed after every single step of a whole story, a step being a write of its books or a change of its device,
// with and without what was not synced, and every other time once more soon after it started again. Whenever it was, all
// ends as if it had never been: the device, the books, the reports; every operation is answered, and none is done twice
// (H57, X56, X77).
func TestKillAtEveryStepOfAStory(t *testing.T) {
	want, steps := undisturbed(t)
	var kills atomic.Int64
	t.Run("kills", func(t *testing.T) {
		for n := range steps {
			for loss := range store.LoseToZeros + 1 {
				if n%[]int{1, 2, 8, 8}[loss] != 0 { // agent/store proves the others of every write
					continue
				}
				at := []int{n}
				if n%2 == 1 || loss == store.LoseNothing && n%4 == 0 {
					at = append(at, n/2%11)
				}
				t.Run(fmt.Sprint(loss, " ", at), func(t *testing.T) {
					t.Parallel()
					bubble(t, func(t *testing.T) {
						w := newWorld(t, loss, at...)
						if got := w.story(); got != want {
							t.Errorf("%s", diff(want, got))
						}
						kills.Add(int64(len(at) - len(w.kills)))
					})
				})
			}
		}
	})
	t.Logf("a story of %d steps, %d kills", steps, kills.Load())
	if kills.Load() < 500 {
		t.Errorf("%d kills only", kills.Load())
	}
}

// Interrupted again and again, an action keeps the authority that it was begun under, and the books do not grow with it.
func TestInterruptedAgainAndAgain(t *testing.T) {
	in := intent(2, manifest("m", file("a", "/etc/a", "2")))
	for _, op := range []memory.Op{memory.OpWriteFile, memory.OpRemoveFile} {
		r := newRig(t)
		r.apply(intent(1, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"))))
		for range 5 {
			r.dev.Before(func(_ context.Context, c memory.Call) error {
				if c.Op != op {
					return nil
				}
				r.disk = r.disk.Crash(store.LoseAll)
				return errKilled
			})
			_, _ = r.runner.Apply(t.Context(), in)
			r.start()
		}
		open := r.store.OpenActions()
		if len(open) != 1 || open[0].Entry.Authority != "begun:standing:converge" {
			t.Errorf("after %s was interrupted five times: %+v", op, open)
		}
	}
}
