package agent

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// groups are the locks that scores name: of one group, one at a time is played. What could cut the
// device off is a group of its own, because a proof would otherwise say something about several
// changes, and take back those that are not to blame.
type groups struct {
	mu    sync.Mutex
	locks map[string]chan struct{}
}

// cutsOff is the group of what could cut the device off. No score can name it.
const cutsOff = "\x00"

// lock waits in l until no other score of the groups of it is being played, and returns how to let
// the next one go; nil if ctx or the halt of l ended first.
func (g *groups) lock(ctx context.Context, it *item, l *lanes) func() {
	unlock := func() {}
	if name := it.engine().Group; name != "" {
		if unlock = g.one(ctx, name, l); unlock == nil {
			return nil
		}
	}
	if _, confirming := it.score.Spec.(score.Confirming); !confirming {
		return unlock
	}
	alone := g.one(ctx, cutsOff, l) // always the last, so that no two wait for each other
	if alone == nil {
		unlock()
		return nil
	}
	return func() { alone(); unlock() }
}

// one waits for one group.
func (g *groups) one(ctx context.Context, name string, in *lanes) (unlock func()) {
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
	unlock = func() { <-l }
	select {
	case l <- struct{}{}:
		return unlock
	default:
	}
	locked := false
	in.idle(func() {
		select {
		case l <- struct{}{}:
			locked = true
		case <-in.halt:
		case <-ctx.Done():
		}
	})
	if !locked {
		return nil
	}
	return unlock
}

// timeout bounds one try.
func (it *item) timeout() time.Duration {
	return cmp.Or(time.Duration(it.engine().Timeout), scoreTimeout)
}

// engine is how a score is to be played; the zero value if it says nothing.
func (it *item) engine() (e score.Engine) {
	if it.score.Engine != nil {
		e = *it.score.Engine
	}
	return e
}

// tempo is how long a score is left alone when it fails.
func (it *item) tempo() tempo {
	e := it.engine()
	t := tempo{failed: time.Duration(e.Delay), retries: e.Retries}
	if _, cuts := it.score.Spec.(score.Confirming); cuts {
		t.failed = cmp.Or(t.failed, cuttingRetry)
		t.drifted, t.longest = cuttingRetry, lastCuttingRetry
	}
	return t
}
