package agent

import (
	"context"
	"slices"
	"time"

	"github.com/continuo-fleet/continuo/agent/health"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// probed are the scores of a plan that have probes.
func (p *plan) probed() map[topology.Mark]score.Health {
	out := map[topology.Mark]score.Health{}
	for _, it := range p.items() {
		if it.score.Health != nil && it.problem == "" && !it.score.Decommission {
			out[it.mark()] = *it.score.Health
		}
	}
	return out
}

// unwell is what a watch of health calls: something about a score must be looked at.
func (a *Agent) unwell(mark topology.Mark) {
	a.mu.Lock()
	pl := a.played
	a.mu.Unlock()
	if pl == nil {
		return
	}
	for _, it := range pl.items() {
		if it.mark() == mark && len(it.claims) > 0 {
			a.heard(topology.Resource(it.claims[0]))
		}
	}
}

// hangs reports whether a score is to be restarted because its liveness fails.
func (r *Runner) hangs(it *item) bool {
	return r.health != nil && it.score.Health != nil && slices.Contains(r.health.Due(time.Now()), it.mark())
}

// wellness adds to what came of a score what its probes say. What was changed begins anew:
// nothing is known of it until it was looked at.
func (p *pass) wellness(ctx context.Context, it *item, st *interpret.ScoreStatus) {
	if p.dry || p.health == nil || it.score.Health == nil || !st.Outcome.Converged() {
		return
	}
	if st.Outcome == interpret.Changed {
		if st.Cause == interpret.CauseLiveness {
			p.health.Restarted(it.mark())
		} else {
			p.health.Reset(it.mark())
		}
	}
	s, watched := p.health.State(it.mark())
	if p.await {
		s, watched = p.settledHealth(ctx, it)
	}
	if !watched {
		return
	}
	good := s.Healthy() && (st.Conditions.Healthy == nil || *st.Conditions.Healthy)
	st.Conditions.Healthy = &good
	switch {
	case s.Healthy():
	case s.Readiness == health.Unhealthy || !s.Alive():
		st.Code, st.Message = interpret.CodeUnhealthy, interpret.Brief(s.Message)
	default:
		st.Code, st.Message = interpret.CodeNotReady, interpret.Brief(s.Message)
	}
}

// settledHealth waits until the probes of a score have said yes or no, for whoever plays an
// intent once and does not come back.
func (p *pass) settledHealth(ctx context.Context, it *item) (health.State, bool) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		s, ok := p.health.State(it.mark())
		if !ok || s.Healthy() || s.Readiness == health.Unhealthy || !s.Alive() {
			return s, ok
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return s, ok
		case <-p.halt:
			return s, ok
		}
	}
}

// watching looks at what the plan probes while f runs.
func (r *Runner) watching(ctx context.Context, pl *plan, f func(ctx context.Context)) {
	if r.Eyes == nil {
		f(ctx)
		return
	}
	scores := pl.probed()
	if len(scores) == 0 {
		f(ctx)
		return
	}
	w := health.New(*r.Eyes, func(topology.Mark) {})
	w.Set(scores)
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() { defer close(over); w.Run(ctx) }()
	was := r.health
	r.health = w
	f(ctx)
	r.health = was
	cancel()
	<-over
}
