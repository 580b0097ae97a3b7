package authority

import (
	"cmp"
	"math"

	"github.com/continuo-fleet/continuo/score"
)

// Effective returns the policy in force for a score, with every field filled in: of each
// field the strictest word of the device's own ceiling, the manifest and the score. A
// ceiling or score policy that is nil, and a field that has neither a word nor a preset,
// restricts nothing.
//
// onFailure has no order: the nearest counts, that of the score before that of the
// manifest; but a device whose ceiling gives one, or the preset reviewed, holds: nobody
// makes it roll back by itself from outside. Deadline and minReady are the manifest's: they
// are about its whole generation.
//
// Window is the nearest one, for people to read. All of them count: see Windows.
func Effective(ceiling *score.Policy, manifest score.Policy, of *score.Policy) score.Policy {
	p := manifest.Filled()
	p.OnFailure = cmp.Or(failure(of), failure(&manifest), score.FailureHold)
	if failure(ceiling) != "" {
		p.OnFailure = score.FailureHold
	}
	p.Brake = fill(p.Brake)
	for _, q := range []*score.Policy{ceiling, of} {
		if q != nil {
			p = restrict(p, *q)
		}
	}
	if windows := Windows(ceiling, manifest, of); len(windows) > 0 {
		p.Window = &windows[0]
	}
	return p
}

// restrict returns p as far as q allows it.
func restrict(p, q score.Policy) score.Policy {
	brake := q.Brake
	if q.Preset != "" {
		q = q.Filled()
	}
	p.Preset = score.Stricter(p.Preset, q.Preset)
	p.OnIntent = score.Stricter(p.OnIntent, q.OnIntent)
	p.OnDrift = score.Stricter(p.OnDrift, q.OnDrift)
	p.OnAbsent = score.Stricter(p.OnAbsent, q.OnAbsent)
	p.OnDestroy = score.Stricter(p.OnDestroy, q.OnDestroy)
	if brake != nil {
		p.Brake = &score.Brake{MaxRemovals: lower(p.Brake.MaxRemovals, brake.MaxRemovals), MaxFraction: lower(p.Brake.MaxFraction, brake.MaxFraction)}
	}
	return p
}

// failure is the word of one policy, if it has one. Reviewed does nothing by itself,
// unless it says otherwise; a word that is not known does nothing either.
func failure(p *score.Policy) score.OnFailure {
	switch {
	case p == nil:
		return ""
	case p.OnFailure == score.FailureRollBack, p.OnFailure == score.FailureRollForward:
		return p.OnFailure
	case p.OnFailure != "", p.Preset != "" && p.Preset != score.Converge && p.Preset != score.Guarded:
		return score.FailureHold
	}
	return ""
}

// What a device removes by itself in one pass, if its manifest does not say.
const (
	defaultRemovals = 5
	defaultFraction = 0.2
)

func fill(b *score.Brake) *score.Brake {
	full := score.Brake{MaxRemovals: new(defaultRemovals), MaxFraction: new(defaultFraction)}
	if b != nil {
		full = score.Brake{MaxRemovals: cmp.Or(b.MaxRemovals, full.MaxRemovals), MaxFraction: cmp.Or(b.MaxFraction, full.MaxFraction)}
	}
	return &full
}

// lower returns the lower bound; no bound restricts nothing.
func lower[N int | float64](a, b *N) *N {
	if b == nil || a != nil && *a <= *b {
		return a
	}
	return b
}

// Brake returns how many scores may be removed at once under p by a device that owns so
// many. More trips the brake.
func Brake(p score.Policy, owned int) int {
	b := fill(p.Brake)
	part := *b.MaxFraction
	if !(part >= 0) { // NaN as well
		part = 0
	}
	// 0.29 * 100 is 28.999…; the addend is less than any part that somebody means
	share := math.Floor(min(part, 1)*float64(max(owned, 0)) + 1e-9)
	return max(*b.MaxRemovals, int(share), 0)
}
