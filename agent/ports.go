package agent

import (
	"context"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// An Intent is an assignment whose signature was verified.
type Intent struct {
	Assignment score.Assignment
	Generation uint64 // as signed
	Digest     string // sha256 of the signed payload, hex
	Envelope   []byte // as received: what is kept on disk and verified again at the next start
	// Series is the version of the trust root with which generations began anew last. Those of two series are not compared:
	// the later series counts.
	Series uint64
}

// Open verifies an envelope from disk as if it came from the network, and reads it.
type Open func(envelope []byte) (Intent, error)

// A Link carries documents between the device and its fleet. Connecting, reconnecting
// and heartbeats are its own business and never wait for a pass.
type Link interface {
	// Run connects, for ever, until ctx ends.
	Run(ctx context.Context, h Handler)

	// Send delivers a receipt. It returns when the receipt is stored, or says why it could not be; the caller tries again.
	// The same one may be sent more than once.
	Send(ctx context.Context, r interpret.Receipt) error

	// Report replaces the last status of the device. It returns when the status is
	// stored, or says why it could not be; the caller tries again. What st points to is
	// the agent's, and stays as it is.
	Report(ctx context.Context, st interpret.DeviceStatus) error

	// Ask replaces the requests of the device for approval, as Report does its status.
	Ask(ctx context.Context, requests interpret.ApprovalRequests) error

	// Inform replaces what the device says it is, as Report does its status.
	Inform(ctx context.Context, info interpret.DeviceInfo) error
}

// An Auditor is a Link that can add to the audit that the fleet keeps.
type Auditor interface {
	// Audit stores the first of some entries, as many as fit into a message, and returns how many. The same ones may be sent
	// more than once.
	Audit(ctx context.Context, entries [][]byte) (stored int, err error)
}

// A Handler takes what a Link brings. Its methods may be called from any goroutine and
// do not wait for a pass.
type Handler interface {
	// Offer hands over a verified intent. It is durable when Offer returns nil. Offering
	// what is known already is nothing. A refusal is a *Refusal.
	Offer(in Intent) error

	// Operation hands over a verified operation, digest being the sha256 of its document in hex. It may be called again
	// for the same one. When it returns nil, the operation is in the books, or its receipt says why not. An error means
	// that the books could not be kept: the operation can be offered again.
	Operation(op interpret.Operation, digest string) error

	// Refused tells that something was not accepted: who sent it has no right to, or it
	// is damaged. It is reported once.
	Refused(code interpret.Code, message string)

	// Resolved tells that what was reported under a code holds no more.
	Resolved(code interpret.Code)

	// TrustChanged tells that other signatures count now: what is in force is verified again. What is not trusted any more
	// gives no authority to anything.
	TrustChanged()

	// Control hands over what the signed control envelope says.
	Control(c Control)

	// Clock tells how far the clock of the device is ahead of the fleet's, and how far that can be wrong.
	Clock(ahead, within time.Duration)

	// Pulse is what the next heartbeat says.
	Pulse() Pulse
}

// Control is what an operator tells a device outside of its assignment.
type Control struct {
	// Blocked makes the device observe and report, and change nothing.
	Blocked bool
}

// A Pulse is how a device is, in a few words.
type Pulse struct {
	Generation uint64
	Digest     string
	State      interpret.State
	Pending    int
	Problems   int
	Store      string // empty: the books are good
}

// A Refusal says why an intent was not accepted.
type Refusal struct {
	Code    interpret.Code
	Message string
}

func (r *Refusal) Error() string { return r.Message }

// Codes of refusals and problems.
const (
	CodeRegressed    interpret.Code = "generation_regressed"
	CodeEquivocation interpret.Code = "equivocation"
	CodeNotWhole     interpret.Code = "not_whole"
	CodeStore        interpret.Code = "store"
	CodeRecovered    interpret.Code = "store_recovered"
	CodeIntentLost   interpret.Code = "intent_lost" // what was accepted last cannot be used; the next one ends it
	CodeNewerState   interpret.Code = "state_is_newer"
	CodeLink         interpret.Code = "link"
	CodeWatch        interpret.Code = "watch"
	CodeRestore      interpret.Code = "restore"         // what was there before could not be put back
	CodeUnfinished   interpret.Code = "unfinished"      // what is done once for all of a pass could not be done
	CodeReboot       interpret.Code = "reboot_required" // something that was installed takes effect with the next boot only
	CodeClock        interpret.Code = "clock_offset"    // the clock of the device is not that of its fleet
	CodePrefetch     interpret.Code = "prefetch"        // what a score needs from elsewhere is not here yet

	// of links
	CodeNotPermitted interpret.Code = "not_permitted"      // the server lets this device not do what it must
	CodeDuplicate    interpret.Code = "duplicate_identity" // another agent reports under the name of this device
	CodeShortened    interpret.Code = "report_shortened"   // the status was too large to be sent whole
)

// A Supervisor is told how the agent is; systemd is one.
type Supervisor interface {
	// Ready is called once, when the first pass from disk is over.
	Ready()
	// Alive is called while the agent makes progress; connectivity does not matter.
	Alive()
	// Stopping is called once, when the agent begins to stop.
	Stopping()
}

// A Sweeper removes what a killed write left behind in directories.
type Sweeper interface {
	SweepTemp(dirs []string) error
}
