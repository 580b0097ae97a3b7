package agent_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// undisturbed is how the story ends if nothing happens.
func undisturbed(t *testing.T) (ending string, steps int) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		w := newWorld(t, store.LoseAll)
		ending = w.story()
		steps = w.steps
	})
	return ending, steps
}

// Every single change of the device fails once, with and without effect, and the agent goes on by itself or is killed right
// then: all ends as if nothing had been (H57).
func TestEveryChangeFails(t *testing.T) {
	want, _ := undisturbed(t)
	var cases atomic.Int64
	t.Run("changes", func(t *testing.T) {
		for _, late := range []bool{false, true} {
			for _, killed := range []bool{false, true} {
				everyChange(t, late, killed, want, &cases)
			}
		}
	})
	t.Logf("%d failures of the device", cases.Load())
	if cases.Load() < 150 {
		t.Errorf("%d failures only", cases.Load())
	}
}

func everyChange(t *testing.T, late, killed bool, want string, cases *atomic.Int64) {
	for bad, hit := 1, true; hit; bad++ {
		hit = false
		t.Run(fmt.Sprint(bad, " ", late, " ", killed), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, store.LoseAll)
				n := 0
				w.call = func(c memory.Call, after bool) error {
					if after != late || hit {
						return nil
					}
					if n++; n != bad {
						return nil
					}
					hit = true
					if killed {
						w.kill()
					}
					return topology.Faultf(topology.CodeTimeout, "no luck with %s of %s", c.Op, c.Resource)
				}
				if got := w.story(); got != want {
					t.Errorf("%s", diff(want, got))
				}
			})
		})
		if hit {
			cases.Add(1)
		}
	}
}

// Every single write of the books fails, once or for a while, with each of the errors of a dying or full card: nothing of
// the device is touched that is not in the books, it is said, and when it is over all ends as if nothing had been (H13, cases 43, 44).
func TestEveryWriteOfTheBooksFails(t *testing.T) {
	want, steps := undisturbed(t)
	var cases atomic.Int64
	t.Run("writes", func(t *testing.T) {
		for bad := 1; bad <= steps; bad++ { // each with one of the errors, all errors once and for a while
			errno := []syscall.Errno{syscall.ENOSPC, syscall.EROFS, syscall.EIO}[bad%3]
			lasts := time.Duration(bad/3%2) * 3 * time.Second
			t.Run(fmt.Sprint(bad, " ", errno, " ", lasts), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					if got := failingBooks(t, errno, bad, lasts); got != want {
						t.Errorf("%s", diff(want, got))
					}
					cases.Add(1)
				})
			})
		}
	})
	t.Logf("%d failures of the books", cases.Load())
	if cases.Load() < 200 {
		t.Errorf("%d failures only", cases.Load())
	}
}

func failingBooks(t *testing.T, errno syscall.Errno, bad int, lasts time.Duration) string {
	w := newWorld(t, store.LoseAll)
	w.pace = 6 * time.Second // so that what failed is tried again before the story goes on
	n, refused := 0, []string{}
	var since time.Time
	w.disk = func(s store.Step) error {
		if s.Op == "read" {
			return nil
		}
		if n++; n == bad {
			since = time.Now()
		}
		if n == bad || !since.IsZero() && time.Since(since) < lasts {
			refused = append(refused, s.Op+" "+s.Name)
			return errno
		}
		return nil
	}
	said := false
	w.seen = func(st interpret.DeviceStatus) {
		said = said || slices.ContainsFunc(st.Problems, func(p interpret.Problem) bool { return p.Code == agent.CodeStore })
	}
	got := w.story()
	if len(refused) > 0 && !said && !w.refused {
		t.Errorf("%v failed, and nothing of it was said", refused)
	}
	return got
}
