package interpret

import (
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// StatusKind is the kind of a DeviceStatus document.
const StatusKind = "Status"

// A DeviceStatus is the actual state of one device: what is reported.
type DeviceStatus struct {
	// Version of the document: continuo/v1.
	APIVersion string `json:"apiVersion"`
	// Kind of document: Status.
	Kind string `json:"kind"`
	// Device that reports.
	Device string `json:"device,omitempty"`
	// Phase of the device: running while a pass is under way.
	Phase Phase `json:"phase"`
	// Generation of the assignment that was accepted last.
	Generation uint64 `json:"generation,omitzero"`
	// Digest of that assignment.
	Digest string `json:"digest,omitempty"`
	// State is the fold over all manifests.
	State State `json:"state"`
	// Manifests of the device.
	Manifests []ManifestStatus `json:"manifests,omitempty"`
	// Orphans are resources that the device made and that no manifest names any more.
	Orphans []Orphan `json:"orphans,omitempty"`
	// Unmanaged is what was found on the device, was made by others, and no manifest names: containers, sorted, at most fifty. It is left alone.
	Unmanaged []score.Resource `json:"unmanaged,omitempty"`
	// UnmanagedMore counts those that were found beyond the fifty.
	UnmanagedMore uint64 `json:"unmanagedMore,omitzero"`
	// Problems of the agent itself: what it refused, what it lost, what it cannot reach.
	Problems []Problem `json:"problems,omitempty"`
	// Agent that reports.
	Agent Agent `json:"agent,omitzero"`
	// Started is when the pass that is reported began, on the device's clock.
	Started time.Time `json:"started,omitzero"`
	// Finished is when it ended; left out while it is under way.
	Finished time.Time `json:"finished,omitzero"`
	// Time of the report, on the device's clock.
	Time time.Time `json:"time,omitzero"`
}

// An Agent identifies the program that reports.
type Agent struct {
	// Version of the agent.
	Version string `json:"version"`
	// BootID changes when the device boots.
	BootID string `json:"bootId,omitempty"`
	// Instance changes when the agent starts.
	Instance string `json:"instance,omitempty"`
	// Sequence counts the reports of this instance.
	Sequence uint64 `json:"sequence,omitzero"`
}

// A Phase says what a device does just now.
type Phase string

// Phases.
const (
	PhaseRunning Phase = "running" // a pass is under way
	PhaseIdle    Phase = "idle"    // the last pass is complete
)

// A State is the fold over scores.
type State string

// States, from the best to the worst.
const (
	StateNoIntent    State = "no_intent"   // no verified assignment was ever seen
	StateConverged   State = "converged"   // every score holds, is in force and healthy
	StateConverging  State = "converging"  // some score waits for another, or is not up yet
	StatePending     State = "pending"     // some score waits for a person
	StateDrifted     State = "drifted"     // some score is not true and was left so
	StatePartial     State = "partial"     // some scores hold, some failed
	StateUnsupported State = "unsupported" // the device cannot do some score
	StateRolledBack  State = "rolled_back" // a generation failed, and the last good one is in force
	StateFailed      State = "failed"      // no score holds
)

// A ManifestStatus is the actual state of one manifest on a device.
type ManifestStatus struct {
	// Name of the manifest.
	Name string `json:"name"`
	// Generation that was played.
	Generation uint64 `json:"generation"`
	// State is the fold over its scores.
	State State `json:"state"`
	// Policy in force for its scores: with what its preset, and the ceiling of the device, fill in.
	Policy *score.Policy `json:"policy,omitempty"`
	// RolledBack is set while an earlier version is in force because this one failed.
	RolledBack *Rollback `json:"rolledBack,omitempty"`
	// GoodAt is when this generation counts as good, if nothing fails before: until then it may be rolled back.
	GoodAt time.Time `json:"goodAt,omitzero"`
	// Scores, sorted by id.
	Scores []ScoreStatus `json:"scores"`
}

// A Rollback says why a version of a manifest is not in force.
type Rollback struct {
	// Generation that failed.
	Generation uint64 `json:"generation"`
	// To is the generation that is in force instead.
	To uint64 `json:"to"`
	// Digest of the version that failed: it is not tried again until the manifest has another one.
	Digest string `json:"digest"`
	// Score that failed.
	Score score.ID `json:"score,omitempty"`
	// Code is the machine-readable reason.
	Code Code `json:"code,omitempty"`
	// Message says the same for people.
	Message string `json:"message,omitempty"`
	// Since is when it was found, on the device's clock.
	Since time.Time `json:"since,omitzero"`
}

// An Orphan is something the device made that no manifest names any more.
type Orphan struct {
	// Resource that is left.
	Resource score.Resource `json:"resource"`
	// Manifest that it was made for.
	Manifest string `json:"manifest"`
	// Score that it was made for.
	Score score.ID `json:"score"`
	// Why it is still there.
	Code Code `json:"code,omitempty"`
	// Message says the same for people.
	Message string `json:"message,omitempty"`
}

// A Problem is something that the agent has to say about itself.
type Problem struct {
	// Code is the machine-readable reason, such as untrusted or store_recovered.
	Code Code `json:"code"`
	// Message says the same for people, and what to do.
	Message string `json:"message"`
	// Since is when it was first seen.
	Since time.Time `json:"since,omitzero"`
}

// Fold returns the state of a set of scores. A set without scores is converged.
func Fold(scores []ScoreStatus) State {
	n := map[State]int{}
	count(n, scores)
	return fold(n, len(scores))
}

func count(n map[State]int, scores []ScoreStatus) {
	for i := range scores {
		n[scores[i].state()]++
	}
}

func fold(n map[State]int, total int) State {
	switch {
	case n[StateConverged] == total:
		return StateConverged
	case n[StateFailed] == total:
		return StateFailed
	case n[StateFailed] > 0:
		return StatePartial
	}
	for _, s := range []State{StateRolledBack, StateUnsupported, StateDrifted, StatePending, StateConverging} {
		if n[s] > 0 {
			return s
		}
	}
	return StateConverged
}

func (st *ScoreStatus) state() State {
	switch st.Outcome {
	case Unchanged, Changed:
		if st.Conditions.Good() {
			return StateConverged
		}
		return StateConverging
	case Waiting:
		return StateConverging
	case Pending:
		return StatePending
	case Drifted:
		return StateDrifted
	case Unsupported:
		return StateUnsupported
	case RolledBack:
		return StateRolledBack
	default:
		return StateFailed
	}
}

// FoldDevice fills in the states of d from the outcomes of its scores. Where all is well with
// them, and something that is left over waits for a person or for its time, so does the device.
func (d *DeviceStatus) FoldDevice() {
	all, total := map[State]int{}, 0
	for i := range d.Manifests {
		d.Manifests[i].State = Fold(d.Manifests[i].Scores)
		count(all, d.Manifests[i].Scores)
		total += len(d.Manifests[i].Scores)
	}
	switch {
	case d.Generation == 0 && len(d.Manifests) == 0:
		d.State = StateNoIntent
	default:
		d.State = fold(all, total)
	}
	if d.State == StateConverged && slices.ContainsFunc(d.Orphans, Orphan.Pending) {
		d.State = StatePending
	}
}

// Pending reports whether it would be removed, and that waits for a person or for its time.
func (o Orphan) Pending() bool {
	switch o.Code {
	case CodeBrake, CodeSignature, CodeConfirm, CodeWindow:
		return true
	}
	return false
}

// Composite returns the fold over the members of a composite of a manifest: the
// scores below id.
func (m ManifestStatus) Composite(id score.ID) (State, bool) {
	var members []ScoreStatus
	for _, s := range m.Scores {
		if strings.HasPrefix(string(s.ID), string(id)+"/") {
			members = append(members, s)
		}
	}
	return Fold(members), len(members) > 0
}

// ConvergedAt reports whether the device holds generation: the assignment is that one
// or a later one, the last pass is complete, and every score of it has converged.
func (d DeviceStatus) ConvergedAt(generation uint64) bool {
	return d.Generation >= generation && d.Phase == PhaseIdle && d.State == StateConverged
}
