package score

import (
	"cmp"
	"slices"
)

// A Word is a word of a policy whose set is ordered: each forbids more than the one before it.
type Word interface {
	~string
	words() []string // from the loosest to the strictest
}

func (Preset) words() []string { return []string{string(Converge), string(Guarded), string(Reviewed)} }

func (OnIntent) words() []string { return []string{string(IntentApply), string(IntentConfirm)} }

func (OnDrift) words() []string {
	return []string{string(DriftCorrect), string(DriftReport), string(DriftIgnore)}
}

func (OnAbsent) words() []string {
	return []string{string(AbsentCollect), string(AbsentRestore), string(AbsentRelease), string(AbsentReport)}
}

func (OnDestroy) words() []string { return []string{string(DestroySignature), string(DestroyNever)} }

// The words of OnFailure have no order: of two, the nearer one counts.
func (OnFailure) words() []string {
	return []string{string(FailureHold), string(FailureRollForward), string(FailureRollBack)}
}

// Stricter returns the stricter of a and b. No word restricts nothing; one that is not known is the
// strictest of all.
func Stricter[T Word](a, b T) T {
	if strictness(b) > strictness(a) {
		return b
	}
	return a
}

func strictness[T Word](w T) int {
	if w == "" {
		return -1
	}
	words := w.words()
	if i := slices.Index(words, string(w)); i >= 0 {
		return i
	}
	return len(words)
}

// Filled returns p with the words that are left out filled in from its preset, which is guarded if p has none, and with
// the deadline and the time to be ready.
func (p Policy) Filled() Policy {
	p.Preset = cmp.Or(p.Preset, Guarded)
	d := Policy{OnIntent: IntentConfirm, OnDrift: DriftReport, OnAbsent: AbsentReport}
	switch p.Preset {
	case Converge:
		d = Policy{OnIntent: IntentApply, OnDrift: DriftCorrect, OnAbsent: AbsentCollect}
	case Guarded:
		d = Policy{OnIntent: IntentApply, OnDrift: DriftCorrect, OnAbsent: AbsentReport}
	}
	p.OnIntent = cmp.Or(p.OnIntent, d.OnIntent)
	p.OnDrift = cmp.Or(p.OnDrift, d.OnDrift)
	p.OnAbsent = cmp.Or(p.OnAbsent, d.OnAbsent)
	p.OnDestroy = cmp.Or(p.OnDestroy, DestroySignature)
	p.OnFailure = cmp.Or(p.OnFailure, FailureHold)
	p.Deadline = cmp.Or(p.Deadline, defaultDeadline)
	p.MinReady = cmp.Or(p.MinReady, defaultMinReady)
	return p
}

func checkWord[T Word](r *Report, field string, w T) {
	if words := w.words(); w != "" && !slices.Contains(words, string(w)) {
		r.Errorf("unknown %s %q%s", field, w, didYouMean(string(w), words))
	}
}

// checkRestricts warns of what the policy of a score says in vain, because that of its manifest is stricter.
func (p Policy) checkRestricts(r *Report, manifest Policy) {
	m := manifest.Filled()
	warnLooser(r.At("onIntent"), "onIntent", p.OnIntent, m.OnIntent)
	warnLooser(r.At("onDrift"), "onDrift", p.OnDrift, m.OnDrift)
	warnLooser(r.At("onAbsent"), "onAbsent", p.OnAbsent, m.OnAbsent)
	warnLooser(r.At("onDestroy"), "onDestroy", p.OnDestroy, m.OnDestroy)
	if p.Preset == "" || !slices.Contains(p.Preset.words(), string(p.Preset)) {
		return
	}
	q := Policy{Preset: p.Preset}.Filled()
	if stricter(q.OnIntent, m.OnIntent) || stricter(q.OnDrift, m.OnDrift) || stricter(q.OnAbsent, m.OnAbsent) {
		return // it has an effect
	}
	warnLooser(r.At("preset"), "preset", p.Preset, m.Preset)
}

func stricter[T Word](a, b T) bool { return strictness(a) > strictness(b) }

func warnLooser[T Word](r *Report, field string, score, manifest T) {
	if score != "" && stricter(manifest, score) {
		r.Warnf("%s: %s has no effect: the policy of the manifest is stricter, %s", field, score, manifest)
	}
}
