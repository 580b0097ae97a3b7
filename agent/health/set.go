package health

import (
	"reflect"
	"time"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Set replaces the set of scores. What is known of a probe that is as it was before is
// kept; a probe that is new or another begins anew. Scores without probes are left out.
func (w *Watch) Set(scores map[topology.Mark]score.Health) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.scores
	w.scores = make(map[topology.Mark]*watched, len(scores))
	now := time.Now()
	for mark, h := range scores {
		if h.Readiness == nil && h.Liveness == nil {
			continue
		}
		s := old[mark]
		if s == nil {
			s = &watched{mark: mark}
		}
		ready, alive := s.readiness.is(h.Readiness), s.liveness.is(h.Liveness)
		if !ready {
			s.readiness.end()
			s.readiness = w.anew(s, h.Readiness, false, now)
		}
		if !alive {
			s.liveness.end()
			s.liveness = w.anew(s, h.Liveness, true, now)
			s.budget, s.restart = Budget{}, time.Time{}
		}
		if !ready || !alive {
			s.well, s.since = s.state().Healthy(), now
		}
		w.scores[mark] = s
		delete(old, mark)
	}
	for _, s := range old {
		s.readiness.end()
		s.liveness.end()
	}
	w.wake()
}

// is reports whether p is a probe like q.
func (p *probed) is(q *score.Probe) bool {
	if p == nil || q == nil {
		return p == nil && q == nil
	}
	return reflect.DeepEqual(p.probe, *q)
}

// end breaks off the look at what nobody asks about any more, so that it keeps no other
// one waiting.
func (p *probed) end() {
	if p != nil && p.cancel != nil {
		p.cancel()
	}
}

// anew returns a probe of which nothing is known.
func (w *Watch) anew(s *watched, p *score.Probe, hangs bool, now time.Time) *probed {
	if p == nil {
		return nil
	}
	j := NewJudge(*p, now)
	return &probed{looker: looker{eyes: w.eyes, probe: *p, hangs: hangs}, score: s, judge: j, next: j.Next()}
}

// Reset forgets what is known of a score, its restarts included: it was made, changed or
// started for another reason than its liveness. A look that is under way counts no more.
func (w *Watch) Reset(mark topology.Mark) {
	w.restart(mark, func(b *Budget) { *b = Budget{} })
}

// Restarted tells that a score was restarted, or that it was tried, because its liveness
// failed. What was known of it begins anew; the next restart is put off for longer.
func (w *Watch) Restarted(mark topology.Mark) { w.restart(mark, (*Budget).Restarted) }

func (w *Watch) restart(mark topology.Mark, budget func(*Budget)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.scores[mark]
	if s == nil {
		return
	}
	now := time.Now()
	s.readiness.end()
	s.liveness.end()
	if s.readiness != nil {
		s.readiness = w.anew(s, &s.readiness.probe, false, now)
	}
	if s.liveness != nil {
		s.liveness = w.anew(s, &s.liveness.probe, true, now)
	}
	budget(&s.budget)
	s.restart = time.Time{}
	s.well, s.since = s.state().Healthy(), now
	w.wake()
}

func (w *Watch) wake() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}
