package score

import "time"

// A Policy is what the signature of a manifest lets a device do by itself. The preset fills in every field that is
// left out. A score may have a policy of its own, and a device a ceiling: the most restrictive of the three counts.
type Policy struct {
	// Preset is a named policy. converge: the device makes the scores true, corrects drift, and collects what it made
	// and the manifest no longer names. guarded, which counts if none is given: the same, but nothing is removed; what
	// is no longer named is reported. reviewed: nothing is changed without a confirmed plan.
	Preset Preset `json:"preset,omitempty" jsonschema:"enum=converge,enum=guarded,enum=reviewed"`
	// OnIntent says what to do about a score that is new: apply it, or wait until a plan is confirmed.
	OnIntent OnIntent `json:"onIntent,omitempty" jsonschema:"enum=apply,enum=confirm"`
	// OnDrift says what to do when the device was changed by somebody else: correct it, report it, or report it without
	// counting it as a difference.
	OnDrift OnDrift `json:"onDrift,omitempty" jsonschema:"enum=correct,enum=report,enum=ignore"`
	// OnAbsent says what to do about what the device made and the manifest no longer names: collect it (remove it),
	// restore (remove it, and put back what was there before), release it (it stays, and is the device's own from then
	// on), or report it.
	OnAbsent OnAbsent `json:"onAbsent,omitempty" jsonschema:"enum=collect,enum=restore,enum=release,enum=report"`
	// OnDestroy says whether a signed approval may let data be destroyed that cannot be made again.
	OnDestroy OnDestroy `json:"onDestroy,omitempty" jsonschema:"enum=signature,enum=never"`
	// OnFailure says what to do when a generation does not become ready: hold what was reached, rollForward (the same,
	// trying again for ever), or rollBack to the last generation that was good.
	OnFailure OnFailure `json:"onFailure,omitempty" jsonschema:"enum=hold,enum=rollForward,enum=rollBack"`
	// Deadline is how long a generation may take to become ready under rollBack. If it is left out, 10 minutes. That of
	// the manifest counts.
	Deadline Duration `json:"deadline,omitzero"`
	// MinReady is how long a generation must be ready without a break before it counts as good under rollBack; what fails
	// before takes it back. If it is left out, 30 seconds. That of the manifest counts.
	MinReady Duration `json:"minReady,omitzero"`
	// Brake bounds what a device removes by itself. Only a manifest has one.
	Brake *Brake `json:"brake,omitempty"`
	// Window is when changes may be made. Outside of it they wait.
	Window *Window `json:"window,omitempty"`
}

// A Preset is a named policy.
type Preset string

// Presets.
const (
	Converge Preset = "converge"
	Guarded  Preset = "guarded"
	Reviewed Preset = "reviewed"
)

// OnIntent says what to do about a score that is new.
type OnIntent string

// Values of OnIntent.
const (
	IntentApply   OnIntent = "apply"
	IntentConfirm OnIntent = "confirm"
)

// OnDrift says what to do about drift.
type OnDrift string

// Values of OnDrift.
const (
	DriftCorrect OnDrift = "correct"
	DriftReport  OnDrift = "report"
	DriftIgnore  OnDrift = "ignore"
)

// OnAbsent says what to do about what is no longer named.
type OnAbsent string

// Values of OnAbsent.
const (
	AbsentCollect OnAbsent = "collect"
	AbsentRestore OnAbsent = "restore"
	AbsentRelease OnAbsent = "release"
	AbsentReport  OnAbsent = "report"
)

// OnDestroy says whether data may be destroyed.
type OnDestroy string

// Values of OnDestroy.
const (
	DestroySignature OnDestroy = "signature"
	DestroyNever     OnDestroy = "never"
)

// OnFailure says what to do when a generation does not become ready.
type OnFailure string

// Values of OnFailure.
const (
	FailureHold        OnFailure = "hold"
	FailureRollForward OnFailure = "rollForward"
	FailureRollBack    OnFailure = "rollBack"
)

// A Brake bounds what a device removes by itself in one pass. More waits for a signed approval.
type Brake struct {
	// MaxRemovals is how many scores may be removed at once. If it is left out, 5.
	MaxRemovals *int `json:"maxRemovals,omitempty" jsonschema:"minimum=0"`
	// MaxFraction is how large a part of what the device owns may be removed at once, from 0 to 1. If it is left out,
	// 0.2. The larger of the two bounds counts.
	MaxFraction *float64 `json:"maxFraction,omitempty" jsonschema:"minimum=0,maximum=1"`
}

func (p Policy) clone() Policy {
	if p.Brake != nil {
		p.Brake = &Brake{clonePointer(p.Brake.MaxRemovals), clonePointer(p.Brake.MaxFraction)}
	}
	p.Window = clonePointer(p.Window)
	return p
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

const (
	defaultDeadline = Duration(10 * time.Minute)
	defaultMinReady = Duration(30 * time.Second)
)

// A holder is whose policy it is.
type holder bool

const (
	ofScore    holder = false
	ofManifest holder = true
)

// check reports what is wrong with the policy of a manifest, or of a score.
func (p Policy) check(r *Report, of holder) {
	checkWord(r.At("preset"), "preset", p.Preset)
	checkWord(r.At("onIntent"), "onIntent", p.OnIntent)
	checkWord(r.At("onDrift"), "onDrift", p.OnDrift)
	checkWord(r.At("onAbsent"), "onAbsent", p.OnAbsent)
	checkWord(r.At("onDestroy"), "onDestroy", p.OnDestroy)
	checkWord(r.At("onFailure"), "onFailure", p.OnFailure)
	switch {
	case p.MinReady < 0:
		r.At("minReady").Errorf("minReady %s must be more than nothing", p.MinReady)
	case p.MinReady > 0 && (of == ofScore || p.OnFailure != FailureRollBack):
		r.At("minReady").Warnf("minReady has no effect here: it counts for the whole generation of a manifest with onFailure: rollBack")
	}
	switch {
	case p.Deadline < 0:
		r.At("deadline").Errorf("deadline %s must be more than nothing", p.Deadline)
	case p.Deadline > 0 && p.Deadline < Duration(time.Second):
		r.At("deadline").Errorf("deadline %s is less than a second", p.Deadline)
	case p.Deadline > 0 && of == ofScore:
		r.At("deadline").Warnf("deadline has no effect here: that of the manifest counts for its whole generation")
	case p.Deadline > 0 && p.OnFailure != FailureRollBack:
		r.At("deadline").Warnf("deadline has no effect without onFailure: rollBack")
	}
	switch {
	case p.Brake == nil:
	case of == ofScore:
		r.At("brake").Errorf("only the policy of a manifest has a brake: it counts the scores of a device")
	default:
		p.Brake.Check(r.At("brake"))
	}
	if p.Window != nil {
		p.Window.Check(r.At("window"))
	}
}

// Check reports what is wrong with b, whoever has it.
func (b Brake) Check(r *Report) {
	if b.MaxRemovals != nil && *b.MaxRemovals < 0 {
		r.At("maxRemovals").Errorf("maxRemovals %d must be 0 or more", *b.MaxRemovals)
	}
	if f := b.MaxFraction; f != nil && !(*f >= 0 && *f <= 1) { // NaN is neither
		r.At("maxFraction").Errorf("maxFraction %v must be from 0 to 1", *f)
	}
}
