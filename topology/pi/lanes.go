package pi

import (
	"context"
	"sync"
)

// lanes lets one at a time do something about a name, and different names at once.
type lanes struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // closed when it is free
}

// enter waits until nobody else is at it.
func (l *lanes) enter(ctx context.Context, name string) (leave func(), err error) {
	for {
		l.mu.Lock()
		wait := l.busy[name]
		if wait == nil {
			mine := make(chan struct{})
			if l.busy == nil {
				l.busy = map[string]chan struct{}{}
			}
			l.busy[name] = mine
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.busy, name)
				close(mine)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
