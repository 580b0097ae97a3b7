package agent

import (
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// groups are the locks that scores name: of one group, one at a time is played.
type groups struct {
	mu    sync.Mutex
	locks map[string]*sync.Mutex
}

// lock waits until no other score of the group of it is being played, and returns how to let
// the next one go.
func (g *groups) lock(it *item) (unlock func()) {
	if it.score.Engine == nil || it.score.Engine.Group == "" {
		return func() {}
	}
	g.mu.Lock()
	if g.locks == nil {
		g.locks = map[string]*sync.Mutex{}
	}
	l := g.locks[it.score.Engine.Group]
	if l == nil {
		l = &sync.Mutex{}
		g.locks[it.score.Engine.Group] = l
	}
	g.mu.Unlock()
	l.Lock()
	return l.Unlock
}

// timeout bounds one try.
func (it *item) timeout() time.Duration {
	if e := it.score.Engine; e != nil && e.Timeout > 0 {
		return time.Duration(e.Timeout)
	}
	return scoreTimeout
}

// engine is how a score is to be played; the zero value if it says nothing.
func (it *item) engine() score.Engine {
	if it.score.Engine == nil {
		return score.Engine{}
	}
	return *it.score.Engine
}
