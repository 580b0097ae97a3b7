package interpret

// An Outcome is what came of playing one score. The set is closed.
type Outcome string

// Outcomes.
const (
	Unchanged   Outcome = "unchanged"   // it was true already
	Changed     Outcome = "changed"     // it is true now
	Drifted     Outcome = "drifted"     // it is not true any more, and was left so
	Pending     Outcome = "pending"     // it waits for a person, a window or a prefetch
	Waiting     Outcome = "waiting"     // a score it needs is not ready
	Conflict    Outcome = "conflict"    // what it claims belongs to another manifest, or is foreign
	Refused     Outcome = "refused"     // the device does not allow it
	Unsupported Outcome = "unsupported" // the device cannot
	RolledBack  Outcome = "rolled_back" // it was made true, and undone
	Failed      Outcome = "failed"      // it was tried
)

// Converged reports whether the score holds.
func (o Outcome) Converged() bool { return o == Unchanged || o == Changed }

// A Code is the machine-readable reason of an outcome: one of the codes below, or a
// topology.Code. Prose never decides anything.
type Code string

// Codes that do not come from a topology.
const (
	CodeNotConverged      Code = "not_converged_after_apply" // Apply said yes, the device says no
	CodeUnknownKind       Code = "unknown_kind"              // this agent knows no such kind
	CodeUnreadable        Code = "unreadable_spec"           // this agent cannot read the spec
	CodeInvalid           Code = "invalid_spec"              // the spec contradicts itself
	CodeMissingCapability Code = "missing_capability"        // the device lacks what the kind needs
	CodeOwnedBy           Code = "owned_by"                  // another manifest owns what it claims
	CodeDependency        Code = "dependency"                // a score it needs has not converged
	CodeBlocked           Code = "blocked"                   // the operator told the device to only observe
	CodePanic             Code = "panic"                     // the interpreter crashed
	CodeFlapping          Code = "flapping"                  // it was made true again and again, and does not stay
	CodeNotOwned          Code = "not_owned"                 // nothing is removed that the device cannot prove it owns
	CodeOrphaned          Code = "orphaned"                  // it is no longer named, and the policy only reports that
	CodeSignature         Code = "pending_signature"         // a signed approval has to let it happen
	CodeConfirm           Code = "pending_confirm"           // a plan has to be confirmed
	CodeRejected          Code = "rejected"                  // somebody who may has said no to exactly this
	CodeWindow            Code = "pending_window"            // it waits for its time
	CodeBrake             Code = "brake"                     // more would be removed at once than a device does by itself
	CodePolicy            Code = "policy"                    // the policy reports it and changes nothing
	CodePlanChanged       Code = "plan_changed"              // the plan that was confirmed is not the plan of now
	CodeContested         Code = "contested"                 // somebody else sets it to another value, again and again
	CodeUnhealthy         Code = "unhealthy"                 // a probe says that it does not work
	CodeNotReady          Code = "not_ready"                 // a probe has not said yet that it works
	CodeDeadline          Code = "deadline"                  // the generation did not become ready in time
	CodeNoop              Code = "noop"                      // the score says to only look
	CodeLimit             Code = "limit"                     // it was changed as often as its score allows
	CodeObserved          Code = "observed_only"             // the kind is looked at and never made true
	CodeSupervision       Code = "supervision"               // somebody else's drop-in overrides what the score says
	CodeNoProof           Code = "no_proof"                  // it could cut the device off, and there is no way to prove that it does not
	CodeGaveUp            Code = "gave_up"                   // it failed as often as it may be tried
)

// Conditions say how far a thing is. A condition that has no meaning for a kind is
// left out.
type Conditions struct {
	// Written: what describes the thing is on disk as wanted.
	Written *bool `json:"written,omitempty"`
	// Loaded: whoever runs the thing has read what is on disk.
	Loaded *bool `json:"loaded,omitempty"`
	// Effective: the thing is in force.
	Effective *bool `json:"effective,omitempty"`
	// Healthy: the thing works, as far as it says so itself.
	Healthy *bool `json:"healthy,omitempty"`
}

// Good reports whether no condition that is known says no.
func (c Conditions) Good() bool {
	for _, b := range []*bool{c.Written, c.Loaded, c.Effective, c.Healthy} {
		if b != nil && !*b {
			return false
		}
	}
	return true
}
