package health

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// Eyes are what probes look through. The device may lack any of them; a probe that needs
// one that is nil finds out nothing, and says so.
type Eyes struct {
	Probes     topology.Prober
	Services   topology.ServiceReader
	Containers topology.ContainerReader
}

// parallel is how many looks are under way at most.
const parallel = 4

// A Watch looks at a set of scores, each as often as its probes say. Its methods may be
// called from any goroutine, also before and after Run, and do not wait for looks.
type Watch struct {
	eyes    Eyes
	changed func(topology.Mark)
	poke    chan struct{} // something may be due earlier than thought

	mu     sync.Mutex
	scores map[topology.Mark]*watched
}

// watched is one score.
type watched struct {
	mark      topology.Mark
	readiness *probed // nil: none
	liveness  *probed
	well      bool
	since     time.Time // of well
	budget    Budget
	restart   time.Time // when one falls due; zero: none does
	told      bool      // that it fell due
}

// probed is one probe, from the time when nothing was known of it. There is another one
// when it begins anew; what is found out for this one counts no more then.
type probed struct {
	looker
	score   *watched
	judge   Judge
	next    time.Time
	looking bool
	cancel  func() // breaks off the look that is under way
}

// New returns a Watch. It calls changed, from one goroutine at a time and holding no
// lock, when a verdict about a score has changed and when a restart has fallen due. No
// look is begun meanwhile, so changed should only wake somebody.
func New(eyes Eyes, changed func(topology.Mark)) *Watch {
	return &Watch{eyes: eyes, changed: changed, poke: make(chan struct{}, 1), scores: map[topology.Mark]*watched{}}
}

// seen is how a look ended.
type seen struct {
	probe  *probed
	at     time.Time // when it began
	result Result
	detail string
}

// Run looks until ctx ends. None of its goroutines is left when it returns.
func (w *Watch) Run(ctx context.Context) {
	results := make(chan seen, parallel)
	timer := time.NewTimer(0)
	defer timer.Stop()
	running := 0
	end := func(s seen) {
		running--
		if w.record(s) {
			w.changed(s.probe.score.mark)
		}
	}
	for ctx.Err() == nil {
		begin, restarts, next := w.due(time.Now(), parallel-running)
		for _, p := range begin {
			running++
			look := w.begin(ctx, p)
			go func() { results <- look() }()
		}
		for _, mark := range restarts {
			w.changed(mark)
		}
		timer.Stop()
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-w.poke:
		case s := <-results:
			end(s)
		}
	}
	for running > 0 {
		end(<-results)
	}
}

// begin returns a look for p, which takes no longer than the probe says.
func (w *Watch) begin(ctx context.Context, p *probed) (look func() seen) {
	ctx, cancel := context.WithTimeout(ctx, p.judge.timeout())
	w.mu.Lock()
	defer w.mu.Unlock()
	p.cancel = cancel
	if !w.present(p) {
		cancel()
	}
	return func() seen {
		defer cancel()
		s := seen{probe: p, at: time.Now()}
		s.result, s.detail = p.look(ctx)
		return s
	}
}

// present reports whether p is still asked about, as it was begun.
func (w *Watch) present(p *probed) bool {
	s := p.score
	return w.scores[s.mark] == s && (p == s.readiness || p == s.liveness)
}

// due returns up to free probes to look for now, those that have waited longest first,
// the scores whose restart has fallen due, and when to ask again; zero is never.
func (w *Watch) due(now time.Time, free int) (begin []*probed, restarts []topology.Mark, next time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	earlier := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for _, s := range w.scores {
		for _, p := range []*probed{s.readiness, s.liveness} {
			switch {
			case p == nil || p.looking:
			case p.next.After(now):
				earlier(p.next)
			default:
				begin = append(begin, p)
			}
		}
		switch {
		case s.restart.IsZero() || s.told:
		case s.restart.After(now):
			earlier(s.restart)
		default:
			s.told = true
			restarts = append(restarts, s.mark)
		}
	}
	slices.SortFunc(begin, func(a, b *probed) int { return a.next.Compare(b.next) })
	begin = begin[:min(len(begin), free)] // the end of a look asks for the others
	for _, p := range begin {
		p.looking = true
	}
	slices.Sort(restarts)
	return begin, restarts, next
}

// record takes how a look ended and reports whether the verdict is another one.
func (w *Watch) record(r seen) (changed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, s := r.probe, r.probe.score
	p.looking = false
	if !w.present(p) {
		return false
	}
	changed = p.judge.Record(r.at, r.result, r.detail)
	// Looks that began at once do not stay together for ever.
	p.next = p.judge.Next().Add(time.Duration((rand.Float64() - 0.5) / 10 * float64(p.judge.period())))
	if p == s.liveness {
		if r.result == Succeeded {
			s.budget.Alive(r.at)
		}
		if changed {
			s.restart, s.told = time.Time{}, false
			if verdict, at := p.judge.Verdict(); verdict == Unhealthy {
				s.restart = at.Add(s.budget.Hangs())
			}
		}
	}
	if well := s.state().Healthy(); well != s.well {
		s.well, s.since = well, r.at
	}
	return changed
}

// Due lists, in order, the scores whose liveness fails and whose restart is due.
func (w *Watch) Due(now time.Time) []topology.Mark {
	w.mu.Lock()
	defer w.mu.Unlock()
	var due []topology.Mark
	for mark, s := range w.scores {
		if !s.restart.IsZero() && !s.restart.After(now) {
			due = append(due, mark)
		}
	}
	slices.Sort(due)
	return due
}
