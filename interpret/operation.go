package interpret

import (
	"slices"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// OperationKind is the kind of an Operation document.
const OperationKind = "Operation"

// An Operation is what a person asks of one device, once. It travels signed, and its Receipt comes back. An operation
// that is asked for again with the same content gets the same receipt and does nothing; with other content it is a
// conflict.
type Operation struct {
	// Version of the document: continuo/v1.
	APIVersion string `json:"apiVersion"`
	// Kind of document: Operation.
	Kind string `json:"kind"`
	// ID of the operation, chosen by whoever asks: a UUID. It is used once.
	ID string `json:"id"`
	// Device that it is for.
	Device string `json:"device"`
	// Verb is what is asked for.
	Verb Verb `json:"verb"`
	// Plan is the id of the plan that install consents to, and approve, if its approvals name no requests.
	Plan string `json:"plan,omitempty"`
	// Approvals are the actions that approve lets happen, each as the plan or its request names it, or reject does not.
	Approvals []Approval `json:"approvals,omitempty"`
	// Manifest that adopt and release are about.
	Manifest string `json:"manifest,omitempty"`
	// Scores of Manifest that adopt and release are about.
	Scores []score.ID `json:"scores,omitempty"`
	// Backup that restore puts back.
	Backup string `json:"backup,omitempty"`
	// Actor is who asks, for the records.
	Actor string `json:"actor,omitempty"`
	// Reason why, for the records.
	Reason string `json:"reason,omitempty"`
	// Expires is when it is no longer to be done.
	Expires time.Time `json:"expires"`
}

// A Verb is what an operation asks for.
type Verb string

// Verbs of operations.
const (
	VerbPlan          Verb = "plan"           // compute a plan; changes nothing
	VerbInstall       Verb = "install"        // do exactly the plan that is named
	VerbApprove       Verb = "approve"        // let the actions that are named happen, destruction included
	VerbReject        Verb = "reject"         // say no to the requests that are named: the device does not ask for the same again
	VerbAdopt         Verb = "adopt"          // take over what is there and what the scores claim
	VerbRelease       Verb = "release"        // give up what the scores own: it stays
	VerbRestore       Verb = "restore"        // put a backup back
	VerbRollbackCheck Verb = "rollback-check" // prove that every declared rollback could be done
)

// Verbs lists the verbs that this version knows.
func Verbs() []Verb {
	return []Verb{VerbPlan, VerbInstall, VerbApprove, VerbReject, VerbAdopt, VerbRelease, VerbRestore, VerbRollbackCheck}
}

// An Approval names one action of a plan. All of it must be as the device finds it.
type Approval struct {
	// Request is the id of the request that this answers. Then no plan is needed: the action is the one that was asked for.
	Request string `json:"request,omitempty"`
	// Manifest of the action.
	Manifest string `json:"manifest"`
	// Score of the action.
	Score score.ID `json:"score"`
	// Action that may happen.
	Action ActionVerb `json:"action"`
	// Effect is the worst that it does. Destroy may be signed by fewer keys than the rest.
	Effect Effect `json:"effect"`
	// Resources that it is done to.
	Resources []score.Resource `json:"resources"`
	// SpecDigest is the sha256 of the spec, if the action has one.
	SpecDigest string `json:"specDigest,omitempty"`
}

// ReceiptKind is the kind of a Receipt document.
const ReceiptKind = "Receipt"

// A Receipt is the record of one operation, or of one pass that changed something. The device keeps it.
type Receipt struct {
	// Version of the document: continuo/v1.
	APIVersion string `json:"apiVersion"`
	// Kind of document: Receipt.
	Kind string `json:"kind"`
	// ID of the operation; of a pass, made by the device.
	ID string `json:"id"`
	// Device that did it.
	Device string `json:"device,omitempty"`
	// Verb that was asked for; pass if nobody asked.
	Verb Verb `json:"verb"`
	// Request is the sha256 of the operation's document.
	Request string `json:"request,omitempty"`
	// Actor who asked.
	Actor string `json:"actor,omitempty"`
	// Reason why.
	Reason string `json:"reason,omitempty"`
	// Result of it.
	Result Result `json:"result"`
	// Code is the machine-readable reason of any result but done.
	Code Code `json:"code,omitempty"`
	// Message says the same for people.
	Message string `json:"message,omitempty"`
	// Generation of the assignment that was in force.
	Generation uint64 `json:"generation,omitzero"`
	// Actions that were done, or tried.
	Actions []ReceiptAction `json:"actions,omitempty"`
	// Plan that was asked for, or, after plan_changed, as it is now.
	Plan *Plan `json:"plan,omitempty"`
	// Truncated is how many actions are left out because the document would be too large.
	Truncated int `json:"truncated,omitzero"`
	// Started is when it began, on the device's clock.
	Started time.Time `json:"started,omitzero"`
	// Finished is when it ended.
	Finished time.Time `json:"finished,omitzero"`
}

// VerbPass is the verb of the receipt of a pass that nobody asked for.
const VerbPass Verb = "pass"

// A Result is what came of an operation.
type Result string

// Results.
const (
	ResultDone        Result = "done"        // all of it
	ResultFailed      Result = "failed"      // it was tried, and the actions say what came of it
	ResultRefused     Result = "refused"     // nothing was done
	ResultConflict    Result = "conflict"    // the id was used before, for something else; nothing was done
	ResultInterrupted Result = "interrupted" // the device stopped in the middle of it; what was begun is finished, the rest is not done
)

// A ReceiptAction is one thing that was done.
type ReceiptAction struct {
	// Manifest that asked for it.
	Manifest string `json:"manifest"`
	// Score that asked for it.
	Score score.ID `json:"score"`
	// Kind of the score.
	Kind score.Kind `json:"kind,omitempty"`
	// Action in one word.
	Action ActionVerb `json:"action,omitempty"`
	// Outcome of it.
	Outcome Outcome `json:"outcome"`
	// Code is the machine-readable reason.
	Code Code `json:"code,omitempty"`
	// Message says the same for people.
	Message string `json:"message,omitempty"`
	// Cause of it.
	Cause Cause `json:"cause,omitempty"`
	// Authority that covered it.
	Authority string `json:"authority,omitempty"`
	// Resources it was done to.
	Resources []score.Resource `json:"resources,omitempty"`
	// Changes that were made.
	Changes []Change `json:"changes,omitempty"`
	// Before is the sha256 of the text before, where the kind has one. A fingerprint, after the word keyed, where not everybody on the device may read it.
	Before string `json:"before,omitempty"`
	// After is the sha256 of the text after, or a fingerprint, as Before.
	After string `json:"after,omitempty"`
	// Diff is a unified diff of the text, cut to a few kilobytes. It is left out for text that not everybody on the
	// device may read.
	Diff string `json:"diff,omitempty"`
	// Backup names the copy of what was overwritten.
	Backup string `json:"backup,omitempty"`
}

// Answers reports whether it answers a request, or approves actions of a plan: what an approver signs.
func (op Operation) Answers() bool { return op.Verb == VerbApprove || op.Verb == VerbReject }

// StandsAlone reports whether it answers requests and nothing else: then it is no matter what else waits, and in which order.
func (op Operation) StandsAlone() bool { return op.Answers() && op.Plan == "" }

// Destroys reports whether it lets something be destroyed. An effect that this version does not know counts as the worst.
func (op Operation) Destroys() bool {
	return op.Verb != VerbReject && slices.ContainsFunc(op.Approvals, func(a Approval) bool {
		return !slices.Contains([]Effect{Nothing, Create, Mutate, Disrupt, Remove}, a.Effect)
	})
}
