package agent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// remember carries over what a pass without a change does not say: since when, and why
// the last change was made.
func (r *Runner) remember(it *item, st *interpret.ScoreStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := it.mark()
	was, known := r.previous[key]
	st.Since = now()
	if known && was.Outcome == st.Outcome && was.Code == st.Code {
		st.Since = was.Since
	}
	if known && st.Outcome == interpret.Unchanged {
		st.Cause, st.Authority, st.Backup = was.Cause, was.Authority, was.Backup
	}
	if r.previous == nil {
		r.previous = map[topology.Mark]interpret.ScoreStatus{}
	}
	r.previous[key] = *st
}

// now is the time by the device's clock, as statuses carry it.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// keep forgets what is no longer in pl.
func (r *Runner) keep(pl *plan) {
	r.pace.keep(pl.marks)
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.previous, func(m topology.Mark, _ interpret.ScoreStatus) bool { return !pl.marks[m] })
}

// status puts together what the items say.
func (p *pass) status() interpret.DeviceStatus {
	st := interpret.DeviceStatus{
		APIVersion: score.APIVersion, Kind: interpret.StatusKind, Phase: interpret.PhaseIdle,
		Generation: p.plan.intent.Generation, Digest: p.plan.intent.Digest, Time: now(),
	}
	if p.only != nil && len(p.plan.back) == 0 && !p.plan.ineffective {
		st.Manifests = p.replaced(p.last.Manifests, p.only)
		return st
	}
	p.plan.ineffective = false
	for _, m := range p.plan.manifests {
		pol := authority.Effective(p.Ceiling.Policy, m.policy, nil)
		ms := interpret.ManifestStatus{Name: m.name, Generation: m.generation, Policy: &pol, Scores: make([]interpret.ScoreStatus, 0, len(m.items))}
		waited := map[*item]bool{} // changed, and not in force: what reads it was not restarted since
		for _, it := range m.items {
			for _, t := range it.unread {
				waited[t] = true
			}
		}
		for _, it := range m.items {
			st := p.told(it)
			if waited[it] && st.Outcome.Converged() {
				p.plan.ineffective, st.Conditions.Effective = true, new(false)
			}
			ms.Scores = append(ms.Scores, st)
		}
		if b, back := p.plan.back[m.name]; back {
			ms.RolledBack = &b.Rollback
			ms.Scores = undone(ms.Scores, b.Rollback)
		}
		slices.SortFunc(ms.Scores, func(a, b interpret.ScoreStatus) int { return cmp.Compare(a.ID, b.ID) })
		st.Manifests = append(st.Manifests, ms)
	}
	return st
}

// replaced is was with what a pass over a part says. What was points to stays as it is.
func (p *pass) replaced(was []interpret.ManifestStatus, played []*item) []interpret.ManifestStatus {
	out, of := slices.Clone(was), map[*plannedManifest]*interpret.ManifestStatus{}
	for _, it := range played {
		ms := of[it.manifest]
		if ms == nil {
			i := slices.IndexFunc(out, func(m interpret.ManifestStatus) bool { return m.Name == it.manifest.name })
			ms = &out[i]
			ms.Scores, of[it.manifest] = slices.Clone(ms.Scores), ms
		}
		if i, found := scoreAt(ms.Scores, it.score.ID); found {
			ms.Scores[i] = p.told(it)
		}
	}
	return out
}

// scoreAt finds a score in what is sorted by id.
func scoreAt(scores []interpret.ScoreStatus, id score.ID) (int, bool) {
	return slices.BinarySearchFunc(scores, id, func(s interpret.ScoreStatus, id score.ID) int { return cmp.Compare(s.ID, id) })
}

// undone says of the score that failed that it was undone, as soon as all is as it was before.
func undone(scores []interpret.ScoreStatus, b interpret.Rollback) []interpret.ScoreStatus {
	for _, s := range scores {
		if !s.Converged() {
			return scores // it says itself why it is not there yet
		}
	}
	i := slices.IndexFunc(scores, func(s interpret.ScoreStatus) bool { return s.ID == b.Score })
	if i < 0 {
		scores, i = append(scores, interpret.ScoreStatus{ID: b.Score, ObservedGeneration: b.Generation, Since: b.Since}), len(scores)
	}
	scores[i].Outcome, scores[i].Code = interpret.RolledBack, b.Code
	scores[i].Message = interpret.Brief(fmt.Sprintf("generation %d is undone, and generation %d is in force: the content of %[1]d failed, and is not tried again unchanged: %[3]s",
		b.Generation, b.To, b.Message)) // since when is in b
	return scores
}

func manifestOf(st interpret.DeviceStatus, name string) interpret.ManifestStatus {
	for _, m := range st.Manifests {
		if m.Name == name {
			return m
		}
	}
	return interpret.ManifestStatus{}
}
