package authority

import (
	"cmp"

	"github.com/continuo-fleet/continuo/score"
)

// Effective returns the policy in force for a score: the most restrictive of the
// device's own ceiling, the policy of the manifest and that of the score, with every
// field filled in. A ceiling or score policy that is nil restricts nothing.
func Effective(ceiling *score.Policy, manifest score.Policy, of *score.Policy) score.Policy {
	p := fill(manifest)
	for _, q := range []*score.Policy{ceiling, of} {
		if q == nil {
			continue
		}
		p = restrict(p, *q)
	}
	return p
}

// fill fills in from the preset what is left out.
func fill(p score.Policy) score.Policy {
	p.Preset = cmp.Or(p.Preset, score.Guarded)
	d := score.Policy{OnIntent: score.IntentConfirm, OnDrift: score.DriftReport, OnAbsent: score.AbsentReport}
	switch p.Preset {
	case score.Converge:
		d = score.Policy{OnIntent: score.IntentApply, OnDrift: score.DriftCorrect, OnAbsent: score.AbsentCollect}
	case score.Guarded:
		d = score.Policy{OnIntent: score.IntentApply, OnDrift: score.DriftCorrect, OnAbsent: score.AbsentReport}
	}
	p.OnIntent = cmp.Or(p.OnIntent, d.OnIntent)
	p.OnDrift = cmp.Or(p.OnDrift, d.OnDrift)
	p.OnAbsent = cmp.Or(p.OnAbsent, d.OnAbsent)
	p.OnDestroy = cmp.Or(p.OnDestroy, score.DestroySignature)
	p.OnFailure = cmp.Or(p.OnFailure, score.FailureHold)
	return p
}

// restrict returns p as far as q allows it. What q leaves out, and has no preset to
// fill in, restricts nothing.
func restrict(p, q score.Policy) score.Policy {
	if q.Preset != "" {
		q = fill(q)
	}
	p.Preset = stricter(p.Preset, q.Preset, score.Converge, score.Guarded, score.Reviewed)
	p.OnIntent = stricter(p.OnIntent, q.OnIntent, score.IntentApply, score.IntentConfirm)
	p.OnDrift = stricter(p.OnDrift, q.OnDrift, score.DriftCorrect, score.DriftReport, score.DriftIgnore)
	p.OnAbsent = stricter(p.OnAbsent, q.OnAbsent, score.AbsentRestore, score.AbsentCollect, score.AbsentRelease, score.AbsentReport)
	p.OnDestroy = stricter(p.OnDestroy, q.OnDestroy, score.DestroySignature, score.DestroyNever)
	return p
}

// stricter returns the later of a and b in order. A word that is not in order is the
// strictest of all.
func stricter[T ~string](a, b T, order ...T) T {
	rank := func(w T) int {
		if w == "" {
			return -1
		}
		for i, o := range order {
			if o == w {
				return i
			}
		}
		return len(order)
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}
