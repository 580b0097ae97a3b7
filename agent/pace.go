package agent

import (
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
)

// pace holds back scores that fail again and again with the same wish: the next try
// comes after 1 s, 2 s, 4 s, … up to 5 min. A new wish is tried at once.
type pace struct {
	mu     sync.Mutex
	failed map[string]*failing // by mark
}

type failing struct {
	digest string
	times  int
	next   time.Time
	last   interpret.ScoreStatus
}

const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// holds says how long it has still to wait, and what happened last.
func (p *pace) holds(it *item) (time.Duration, interpret.ScoreStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.failed[string(it.mark())]
	if f == nil || f.digest != it.digest {
		return 0, interpret.ScoreStatus{}
	}
	return time.Until(f.next), f.last
}

// note takes in what came of a score.
func (p *pace) note(it *item, st interpret.ScoreStatus, tried bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := string(it.mark())
	if st.Outcome != interpret.Failed {
		delete(p.failed, key)
		return
	}
	f := p.failed[key]
	if f == nil || f.digest != it.digest {
		f = &failing{digest: it.digest}
		if p.failed == nil {
			p.failed = map[string]*failing{}
		}
		p.failed[key] = f
	}
	if !tried && f.times > 0 {
		return // held back, not tried
	}
	wait := min(firstRetry<<min(f.times, 16), lastRetry)
	f.times++
	f.next, f.last = time.Now().Add(wait), st
}

// next is when the first score that failed may be tried again; zero if none did.
func (p *pace) next() (at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.failed {
		if at.IsZero() || f.next.Before(at) {
			at = f.next
		}
	}
	return at
}

// forget drops what is no longer in the plan.
func (p *pace) forget(pl *plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	keep := map[string]bool{}
	for _, m := range pl.manifests {
		for _, it := range m.items {
			keep[string(it.mark())] = true
		}
	}
	for k := range p.failed {
		if !keep[k] {
			delete(p.failed, k)
		}
	}
}
