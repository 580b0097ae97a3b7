package agent

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
)

const (
	// followEvery is about how often it is asked again what a score follows, such as the
	// image of a tag; where nobody answers, it is asked after firstAsk, twice that, …
	followEvery = time.Hour
	firstAsk    = time.Minute
	// followSoon is how long after its start an agent waits at most with what it follows: who
	// is switched off every evening hears of news all the same.
	followSoon = 10 * time.Minute
)

// A follower asks now and then, in the background, whether what scores follow has become
// another, and has it fetched then. To switch is for the next pass, with all that stands in
// front of any change. Where nobody answers nothing is changed, and the score says so.
type follower struct {
	*Runner
	wake func() // there is an answer
	wg   sync.WaitGroup
	one  chan struct{} // asks

	mu   sync.Mutex
	tags map[string]*followed // by key of the item; nil: the agent has just started
}

type followed struct {
	cancel context.CancelFunc // nil: nobody asks now
	next   time.Time
	failed int                   // times in a row
	fault  interpret.ScoreStatus // of the last of them
}

func newFollower(r *Runner, wake func()) *follower {
	return &follower{Runner: r, wake: wake, one: make(chan struct{}, 1)}
}

// jittered is d, a fifth more or less: not all devices of a fleet ask at the same time.
func jittered(d time.Duration) time.Duration { return d - d/5 + rand.N(2*d/5+1) }

// ask begins to ask for what is due, and ends what pl does not follow. What is new to the
// books was asked for when it was fetched. No plan follows nothing.
func (f *follower) ask(ctx context.Context, pl *plan) {
	wanted := map[string]*item{}
	if pl != nil {
		p := &pass{Runner: f.Runner, plan: pl}
		for _, it := range pl.items() {
			if it.problem != "" || it.engine().Noop || it.score.Decommission || !f.Table.Follows(it.score) {
				continue
			}
			if _, _, refused := f.Ceiling.Refuses(it.score); refused {
				continue // its ceiling became stricter
			}
			if e, owned := p.gate(it).primary(); owned && e.SpecDigest == it.digest {
				wanted[it.key()] = it
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, t := range f.tags {
		if wanted[key] == nil {
			if t.cancel != nil {
				t.cancel()
			}
			delete(f.tags, key)
		}
	}
	started := f.tags == nil
	if started {
		f.tags = map[string]*followed{}
	}
	for key, it := range wanted {
		t := f.tags[key]
		if t == nil {
			t = &followed{next: time.Now().Add(jittered(followEvery))}
			if started {
				t.next = time.Now().Add(rand.N(followSoon))
			}
			f.tags[key] = t
		}
		if t.cancel == nil && !time.Now().Before(t.next) {
			var one context.Context
			one, t.cancel = context.WithTimeout(ctx, fetchTimeout)
			f.wg.Go(func() { f.once(one, it, t) })
		}
	}
}

func (f *follower) once(ctx context.Context, it *item, t *followed) {
	var st interpret.ScoreStatus
	select {
	case f.one <- struct{}{}:
		st = f.Table.Prefetch(ctx, it.score)
		<-f.one
	case <-ctx.Done():
	}
	unwanted := ctx.Err() != nil
	f.mu.Lock()
	defer f.mu.Unlock()
	t.cancel()
	t.cancel = nil
	if unwanted {
		return
	}
	if st.Outcome == "" {
		t.failed, t.fault, t.next = 0, st, time.Now().Add(jittered(followEvery))
	} else {
		if t.failed == 0 {
			st.Since = now()
		} else {
			st.Since = t.fault.Since
		}
		t.failed++
		t.fault, t.next = st, time.Now().Add(jittered(min(firstAsk<<min(t.failed-1, 16), followEvery)))
	}
	f.wake()
}

// next is when it is to be asked again; zero if nothing is followed.
func (f *follower) next() (at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.tags {
		if t.cancel == nil && (at.IsZero() || t.next.Before(at)) {
			at = t.next
		}
	}
	return at
}

// told is what is said of it: that nobody could be asked, if it is true otherwise. It is not
// what others that come after it see: what runs goes on, and so do they.
func (p *pass) told(it *item) interpret.ScoreStatus {
	st := it.status
	if p.follower == nil || st.Outcome != interpret.Unchanged {
		return st
	}
	p.follower.mu.Lock()
	defer p.follower.mu.Unlock()
	if t := p.follower.tags[it.key()]; t != nil && t.failed > 0 {
		st.Outcome, st.Code, st.Message, st.Path = t.fault.Outcome, t.fault.Code, t.fault.Message, t.fault.Path
		st.Since, st.NextTry = t.fault.Since, t.next.UTC().Truncate(time.Second)
	}
	return st
}
