package interpret

import (
	"fmt"
	"time"

	"github.com/continuo-fleet/continuo/score"
	"github.com/go-json-experiment/json/jsontext"
)

// A ScoreStatus is the actual state of one score. Times are the device's own clock.
type ScoreStatus struct {
	// ID of the score.
	ID score.ID `json:"id"`
	// Kind of the score.
	Kind score.Kind `json:"kind"`
	// Outcome of the last pass.
	Outcome Outcome `json:"outcome"`
	// Code is the machine-readable reason.
	Code Code `json:"code,omitempty"`
	// Message says the same for people.
	Message string `json:"message,omitempty"`
	// Path is the field of the spec that the code is about, as a JSON pointer, where it is about one: /mode.
	Path string `json:"path,omitempty"`
	// Changes that were made, or, if the score has not converged, that are left.
	Changes []Change `json:"changes,omitempty"`
	// Observed is the typed state of the kind, as found last.
	Observed jsontext.Value `json:"observed,omitempty"`
	// Conditions say how far the thing is.
	Conditions Conditions `json:"conditions,omitzero"`
	// SpecDigest is the sha256 of the spec that was played.
	SpecDigest string `json:"specDigest,omitempty"`
	// ObservedGeneration is the generation of the manifest that was played.
	ObservedGeneration uint64 `json:"observedGeneration,omitzero"`
	// LastChangedGeneration is the generation under which the device was last changed for this score.
	LastChangedGeneration uint64 `json:"lastChangedGeneration,omitzero"`
	// Policy in force for the score, if it is another than that of its manifest.
	Policy *score.Policy `json:"policy,omitempty"`
	// Cause of the last change.
	Cause Cause `json:"cause,omitempty"`
	// Authority that allowed the last change.
	Authority string `json:"authority,omitempty"`
	// Backup names the copy of what was overwritten.
	Backup string `json:"backup,omitempty"`
	// NextTry is when a score that failed, or is contested, is tried again.
	NextTry time.Time `json:"nextTry,omitzero"`
	// Since is when the outcome became what it is.
	Since time.Time `json:"since,omitzero"`
}

// A Cause is why a change is to be made.
type Cause string

// Causes.
const (
	CauseIntent     Cause = "intent"     // the wish is new
	CauseDrift      Cause = "drift"      // reality moved
	CauseDependency Cause = "dependency" // a score that restarts this one has changed
	CauseSecret     Cause = "secret"     // a secret that it uses has another value
	CauseAbsent     Cause = "absent"     // it was applied before and is no longer wanted
	CauseExplicit   Cause = "explicit"   // its removal was asked for in words: decommission
	CauseLiveness   Cause = "liveness"   // it hangs, and is to start again
	CauseRollback   Cause = "rollback"   // its generation did not become ready, and the last good one comes back
)

// Read decodes the observed state of st as the state of one kind, such as
// file.Observed. It fails if st is of another kind or observed nothing.
func Read[O Observed](st ScoreStatus) (O, error) {
	var o O
	if len(st.Observed) == 0 {
		return o, fmt.Errorf("cannot read the state of %s %q: nothing was observed", st.Kind, st.ID)
	}
	if err := score.Decode(st.Observed, &o); err != nil {
		return o, fmt.Errorf("cannot read the state of %s %q: %w", st.Kind, st.ID, err)
	}
	return o, nil
}

// Converged reports whether the score holds, is in force and is healthy.
func (st ScoreStatus) Converged() bool { return st.Outcome.Converged() && st.Conditions.Good() }
