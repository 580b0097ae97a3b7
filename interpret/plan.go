package interpret

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// PlanKind is the kind of a Plan document.
const PlanKind = "Plan"

// A Plan is what a device would do now, computed on the device by looking at it, and what of it is allowed. Making one
// changes nothing.
type Plan struct {
	// Version of the document: continuo/v1.
	APIVersion string `json:"apiVersion"`
	// Kind of document: Plan.
	Kind string `json:"kind"`
	// Device that the plan is for.
	Device string `json:"device,omitempty"`
	// Generation of the assignment that was planned.
	Generation uint64 `json:"generation,omitzero"`
	// Assignment is the sha256 of that assignment.
	Assignment string `json:"assignment,omitempty"`
	// ID is the sha256 over all of the plan but its time: whoever confirms it confirms exactly this.
	ID string `json:"id"`
	// Actions, in the order in which they would be done. A score that is as it should be has none.
	Actions []PlannedAction `json:"actions,omitempty"`
	// Unchanged is how many scores are as they should be.
	Unchanged int `json:"unchanged"`
	// Truncated is how many actions are left out because the document would be too large. Their digest is in ID.
	Truncated int `json:"truncated,omitzero"`
	// Time of the plan, on the device's clock.
	Time time.Time `json:"time,omitzero"`
}

// A PlannedAction is one thing that a device would do.
type PlannedAction struct {
	// Manifest that asks for it, or did.
	Manifest string `json:"manifest"`
	// Generation of that manifest.
	Generation uint64 `json:"generation,omitzero"`
	// Score that asks for it, or did.
	Score score.ID `json:"score"`
	// Kind of the score.
	Kind score.Kind `json:"kind"`
	// Action in one word.
	Action ActionVerb `json:"action"`
	// Cause is why it would be done.
	Cause Cause `json:"cause,omitempty"`
	// Effect is the worst that it does.
	Effect Effect `json:"effect,omitempty"`
	// Provenance says whose the thing is now.
	Provenance Provenance `json:"provenance,omitempty"`
	// Resources that the score claims.
	Resources []score.Resource `json:"resources,omitempty"`
	// Changes, field by field.
	Changes []Change `json:"changes,omitempty"`
	// Restarts are the scores that would be restarted, or read their configuration again, because of it.
	Restarts []score.ID `json:"restarts,omitempty"`
	// SpecDigest is the sha256 of the spec.
	SpecDigest string `json:"specDigest,omitempty"`
	// Decision is what the policy says.
	Decision Decision `json:"decision"`
	// Authority that covers it, if the decision is apply.
	Authority string `json:"authority,omitempty"`
	// Code is the machine-readable reason of any other decision.
	Code Code `json:"code,omitempty"`
	// Reason says the same for people.
	Reason string `json:"reason,omitempty"`
	// Backup is true if what is overwritten would be kept first.
	Backup bool `json:"backup,omitempty"`
}

// An ActionVerb is what is done to a thing, in one word.
type ActionVerb string

// Verbs of actions.
const (
	ActionCreate       ActionVerb = "create"       // it is not there yet
	ActionChange       ActionVerb = "change"       // it is there and differs
	ActionRestart      ActionVerb = "restart"      // it is as it should be, and has to start again
	ActionReload       ActionVerb = "reload"       // it is as it should be, and has to read its configuration again
	ActionRemove       ActionVerb = "remove"       // it is no longer wanted
	ActionDecommission ActionVerb = "decommission" // its removal, with its data, was asked for in words
	ActionNone         ActionVerb = "none"         // nothing can be done about it, and the code says why
)

// A Provenance says how a resource came to the device, as far as its books can prove.
type Provenance string

// Provenances.
const (
	Owned   Provenance = "owned"   // this agent made it
	Adopted Provenance = "adopted" // it was there before, and was taken over
	Foreign Provenance = "foreign" // no record claims it
	Scratch Provenance = "scratch" // made inside the transaction that is under way
)

// A Decision is what a policy says about an action.
type Decision string

// Decisions.
const (
	DecideApply   Decision = "apply"   // an authority covers it
	DecideReport  Decision = "report"  // nothing happens, and it is said
	DecidePending Decision = "pending" // a person has to say yes, or it is not the time
	DecideRefuse  Decision = "refuse"  // no authority can cover it as things are
	DecideNothing Decision = "nothing" // it may not even be planned
)

// Seal fills in the ID of p, which must be complete but for its time.
func (p *Plan) Seal() error {
	q := *p
	q.ID, q.Time = "", time.Time{}
	b, err := score.Encode(q)
	if err != nil {
		return fmt.Errorf("cannot seal a plan: %w", err)
	}
	sum := sha256.Sum256(b)
	p.ID = hex.EncodeToString(sum[:])
	return nil
}

// Differs reports whether anything is not as it should be.
func (p Plan) Differs() bool { return len(p.Actions)+p.Truncated > 0 }
