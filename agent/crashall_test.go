package agent_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/continuo-fleet/continuo/agent/store"
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
