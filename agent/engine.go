package agent

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// groups are the locks that scores name: of one group, one at a time is played.
type groups struct {
	mu    sync.Mutex
	locks map[string]chan struct{}
}

// lock waits until no other score of the group of it is being played, and returns how to let
// the next one go; nil if ctx or halt ended first.
func (g *groups) lock(ctx context.Context, it *item, halt <-chan struct{}) (unlock func()) {
	name := it.engine().Group
	if name == "" {
		return func() {}
	}
	g.mu.Lock()
	if g.locks == nil {
		g.locks = map[string]chan struct{}{}
	}
	l := g.locks[name]
	if l == nil {
		l = make(chan struct{}, 1)
		g.locks[name] = l
	}
	g.mu.Unlock()
	select {
	case l <- struct{}{}:
		return func() { <-l }
	case <-halt:
	case <-ctx.Done():
	}
	return nil
}

// timeout bounds one try.
func (it *item) timeout() time.Duration {
	return cmp.Or(time.Duration(it.engine().Timeout), scoreTimeout)
}

// engine is how a score is to be played; the zero value if it says nothing.
func (it *item) engine() score.Engine {
	if it.score.Engine == nil {
		return score.Engine{}
	}
	return *it.score.Engine
}
