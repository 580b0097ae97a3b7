package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
)

// A fetcher gets what the scores of a plan need from elsewhere, such as images, in the
// background: that may take hours, and what is there already is kept true meanwhile. It
// fetches nothing twice at the same time.
type fetcher struct {
	*Runner
	wake  func() // something has ended
	slots chan struct{}
	wg    sync.WaitGroup

	mu   sync.Mutex
	jobs map[string]*job
}

// A job is what one score needs, as long as somebody wants it and it is not applied.
type job struct {
	cancel   context.CancelFunc
	since    time.Time
	late     bool          // a pass went on without it
	unwanted bool          // and going to end
	over     chan struct{} // closed when st holds
	st       interpret.ScoreStatus
	progress topology.Progress
	told     time.Time // when somebody was woken for it
}

func (j *job) ended() bool {
	select {
	case <-j.over:
		return true
	default:
		return false
	}
}

// key is what is fetched for it: the same in each plan that holds the same score.
func (it *item) key() string { return string(it.mark()) + " " + it.digest }

func newFetcher(r *Runner, wake func()) *fetcher {
	return &fetcher{Runner: r, wake: wake, slots: make(chan struct{}, r.parallel()), jobs: map[string]*job{}}
}

// want begins to fetch what pl needs, ends all else, and returns what it has begun.
func (f *fetcher) want(ctx context.Context, pl *plan) (begun []*job) {
	needed := f.only(pl)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, it := range needed {
		if f.jobs[it.key()] == nil {
			begun = append(begun, f.begin(ctx, it))
		}
	}
	return begun
}

// begin is called with the lock held.
func (f *fetcher) begin(ctx context.Context, it *item) *job {
	ctx, cancel := context.WithCancel(ctx)
	j := &job{cancel: cancel, since: now(), over: make(chan struct{})}
	f.jobs[it.key()] = j
	f.wg.Go(func() {
		defer cancel()
		var st interpret.ScoreStatus
		select {
		case f.slots <- struct{}{}:
			st = f.fetch(topology.WithProgress(ctx, func(p topology.Progress) { f.progressed(j, p) }), it)
			<-f.slots
		case <-ctx.Done():
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		j.st = st
		close(j.over)
		if j.unwanted {
			delete(f.jobs, it.key())
		}
		if j.late {
			f.wake()
		}
	})
	return j
}

// only ends what pl does not need, and returns what it needs and its pace does not hold
// back. No plan needs nothing.
func (f *fetcher) only(pl *plan) (needed []*item) {
	keys := map[string]bool{}
	if pl != nil {
		p := &pass{Runner: f.Runner, plan: pl}
		for _, it := range p.fresh(pl.items()) {
			if _, early := f.pace.holds(it.mark(), p.gate(it).wish()); !early {
				needed = append(needed, it)
				keys[it.key()] = true
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, j := range f.jobs {
		switch {
		case keys[key]:
		case j.ended():
			delete(f.jobs, key)
		default: // until it has ended, the same is not begun again
			j.unwanted = true
			j.cancel()
		}
	}
	return needed
}

// await waits for jobs that were just begun, but not for long. Those that take longer
// wake when they end.
func (f *fetcher) await(ctx context.Context, begun []*job, long time.Duration) {
	if len(begun) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	for _, j := range begun {
		select {
		case <-j.over:
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, j := range begun {
		j.late = !j.ended()
	}
}

// wait returns when nothing is being fetched any more; the context of want ends it.
func (f *fetcher) wait() { f.wg.Wait() }

// settled reports whether nothing is being fetched for pl any more, well or not.
func (f *fetcher) settled(pl *plan) bool { return len(f.underway(pl)) == 0 }

// A fetch is what is said of a score while it is under way.
type fetch struct {
	manifest *plannedManifest
	interpret.ScoreStatus
}

// underway is what is being fetched for pl.
func (f *fetcher) underway(pl *plan) (out []fetch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.jobs) == 0 {
		return nil
	}
	for _, it := range pl.items() {
		if j := f.jobs[it.key()]; j != nil && !j.ended() {
			st := fetchingStatus(j)
			st.ID, st.Kind, st.SpecDigest, st.Since = it.score.ID, it.score.Spec.Kind(), it.digest, j.since
			out = append(out, fetch{it.manifest, st})
		}
	}
	return out
}

// tellEvery is how often a reader hears how far a fetch is.
const tellEvery = time.Minute

// progressed takes in how far j is.
func (f *fetcher) progressed(j *job, p topology.Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j.progress = p
	if time.Since(j.told) >= tellEvery {
		j.told = time.Now()
		f.wake()
	}
}

// fetchingStatus is what is said while j is under way; it may be nil.
func fetchingStatus(j *job) interpret.ScoreStatus {
	st := interpret.ScoreStatus{Outcome: interpret.Pending, Code: CodePrefetch, Message: "its image is being fetched"}
	if j != nil && j.progress.Total > 0 {
		st.Message = fmt.Sprintf("its image is being fetched: %d of %d MiB", j.progress.Done>>20, (j.progress.Total+1<<20-1)>>20)
	}
	return st
}

// result says what p is to report of a fresh item instead of playing it; the outcome is
// empty if what it needs is here. A failure is told once, and then fetched again.
func (f *fetcher) result(p *pass, it *item, wish string) (interpret.ScoreStatus, effort) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.jobs[it.key()]
	switch {
	case j != nil && j.ended() && j.st.Outcome == "":
		return j.st, looked
	case p.superseded && (j == nil || j.ended()): // it is not for this plan that it was fetched
		return interpret.ScoreStatus{Outcome: interpret.Waiting, Message: "a newer intent came first"}, fetching
	case j != nil && j.ended():
		delete(f.jobs, it.key())
		return j.st, tried
	}
	if j == nil { // its pause has just ended
		f.wake()
	}
	if last, again := f.pace.failure(it.mark(), wish); again {
		last.Message += "; it is being fetched again"
		return last, fetching
	}
	return fetchingStatus(j), fetching
}
