package natslink

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/internal/trust"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// A call is which operation the control side says waits for this device.
type call struct {
	waiting    uint32
	generation uint64
}

// heed looks for an operation that the signed answer c to a heartbeat tells of.
func (l *Link) heed(c wire.ControlEnvelope) {
	news := call{c.Approvals, c.Operation}
	l.mu.Lock()
	was := l.called
	l.called = news
	l.mu.Unlock()
	if news == was || news.waiting == 0 || !l.o.tune.has(onHeartbeat) {
		return
	}
	l.operations.intake.Lock()
	known := slices.Contains(slices.Collect(maps.Values(l.operations.done)), c.Operation)
	l.operations.intake.Unlock()
	if c.Operation == 0 || !known || c.Approvals > 1 { // of several, one may have come late that was signed early
		l.want(l.operations, c.Operation)
	}
}

// told is what the last signed answer to a heartbeat said about the time.
type told struct {
	seconds uint64
	heard   time.Time
}

// now is the time by which operations are judged: that of this device if it can be trusted, else that of the last
// signed answer to a heartbeat and what has passed since. Zero: not known yet.
//
// A document says what a device should be, and an old one is better than none: without a clock it is accepted. An
// operation is done once, at a time that somebody chose: nobody may keep it back and have it done later. So it waits for
// the time. Whoever holds the control key could tell a wrong one; it cannot make up an operation, and what was done once
// is in the books of the device.
func (l *Link) now() time.Time {
	if t := l.o.Clock(); !t.IsZero() {
		return t
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clock.seconds == 0 {
		return time.Time{}
	}
	return wire.ControlEnvelope{Now: l.clock.seconds}.Time().Add(time.Since(l.clock.heard))
}

var errNoTime = errors.New("the time is not known yet")

// takeOperation is where all operations come in, one or several of them.
func (l *Link) takeOperation(ctx context.Context, stored []byte, pushed bool) (highest uint64, err error) {
	box := l.operations
	box.intake.Lock()
	defer box.intake.Unlock()
	frames, err := wire.SplitOperations(stored)
	if err != nil {
		r := refusalOf("the operations for this device", err)
		l.refuse(box, r.Code, r.Message)
		return 0, nil
	}
	there, all := map[[sha256.Size]byte]uint64{}, true
	for _, frame := range frames {
		sum := sha256.Sum256(frame)
		generation, known := box.done[sum]
		if !known {
			if generation, err = l.takeOne(ctx, frame, sum, pushed); err != nil {
				return 0, err // those after it come later, and those before it are known
			}
		}
		if generation > 0 {
			there[sum], box.done[sum] = generation, generation
		}
		all = all && generation > 0
		highest = max(highest, generation)
	}
	box.done = there // what is not stored any more need not be known
	if !all {
		return 0, nil // to fetch what was refused once more does not help
	}
	return highest, nil
}

// takeOne takes one operation. What was seen before is nothing: it was handed over. So is what is older, as it was replaced
// by who asks; but the answer to a request stands alone, and is taken in any order: it may be signed somewhere else, by
// several people, and takes its time. One that has expired is worth a word only when it was published just now; else it is
// what is left of one that was done, or that nobody waits for any more.
func (l *Link) takeOne(ctx context.Context, envelope []byte, sum [sha256.Size]byte, pushed bool) (uint64, error) {
	box := l.operations
	if box.last.generation > 0 && box.last.sum == sum {
		return box.last.generation, nil
	}
	now := l.now()
	op, err := l.o.Trust.operation(envelope, l.o.Device, now)
	r, refused := errors.AsType[*agent.Refusal](err)
	if refused && l.stranger(ctx, r.Code) {
		op, err = l.o.Trust.operation(envelope, l.o.Device, now)
		r, refused = errors.AsType[*agent.Refusal](err)
	}
	switch {
	case refused && r.Code == interpret.Code(wire.CodeExpired) && !pushed:
		st, _, _ := wire.Peek(envelope) // its signature is good; a replica that is behind may have a newer one soon
		return st.Generation, nil
	case refused:
		l.refuse(box, r.Code, r.Message)
		return 0, nil
	case now.IsZero():
		l.refuse(box, CodeNoTime, "an operation waits until this device knows the time: its clock is not set, and no control service has answered yet")
		return 0, errNoTime
	case op.StandsAlone(): // its id is burnt when it is done, and its request is open or not
	case op.generation < box.last.generation:
		return op.generation, nil
	case op.generation == box.last.generation:
		l.refuse(box, agent.CodeEquivocation, fmt.Sprintf("operation %s came with the generation of another: two people share a key, or a copy was changed; ask again", op.ID))
		return op.generation, nil
	}
	if op.unsupported != "" {
		if err := l.send(ctx, op.refusal()); err != nil {
			return 0, err
		}
	} else if err := l.h.Operation(op.Operation, op.digest); err != nil {
		l.problem(agent.CodeStore, fmt.Sprintf("operation %s could not be kept: %v", op.ID, err))
		return 0, err
	}
	if op.generation > box.last.generation {
		box.last = seen{sum, op.generation}
	}
	l.accepted()
	return op.generation, nil
}

// accepted takes back what was said of operations that were not.
func (l *Link) accepted() {
	var over []interpret.Code
	l.mu.Lock()
	for code := range l.operations.refused {
		if !l.documents.refused[code] {
			over = append(over, code)
		}
	}
	clear(l.operations.refused)
	l.mu.Unlock()
	slices.Sort(over)
	for _, code := range over {
		l.h.Resolved(code)
	}
}

// An opened operation is one that somebody signed who may.
type opened struct {
	interpret.Operation
	digest      string // sha256 of its document in hex
	generation  uint64
	unsupported string // why this build cannot read it; of the operation only what a receipt needs is known
}

// refusal is the receipt of an operation that this build cannot do. It tells no time, so that the same one is made again.
func (op opened) refusal() interpret.Receipt {
	return interpret.Receipt{
		APIVersion: score.APIVersion, Kind: interpret.ReceiptKind, ID: op.ID, Device: op.Device, Verb: op.Verb, Request: op.digest,
		Result: interpret.ResultRefused, Code: CodeUnsupported, Message: interpret.Brief("this agent cannot do it: " + op.unsupported + "; update the agent, and ask again"),
	}
}

// openOperation verifies an envelope for d and reads the operation in it. A zero time judges no age. Every error is an
// *agent.Refusal.
func openOperation(envelope []byte, d wire.Device, keys wire.KeySet, now time.Time) (op opened, by []string, err error) {
	v, err := wire.Verify(envelope, keys, wire.Expect{Kind: wire.KindApproval, Audience: d.String(), Now: now})
	if err != nil {
		return opened{}, nil, refusalOf("an operation", err)
	}
	op, err = operationOf(v, d)
	return op, v.By, err
}

// operationOf reads the operation in what was verified.
func operationOf(v wire.Verified, d wire.Device) (opened, error) {
	st := v.Statement
	refuse := func(code interpret.Code, format string, args ...any) (opened, error) {
		return opened{}, &agent.Refusal{Code: code, Message: fmt.Sprintf("operation %d is signed, and was refused: %s", st.Generation, fmt.Sprintf(format, args...))}
	}
	switch {
	case st.Media != wire.MediaOperation:
		return refuse(CodeUnsupported, "it is a %q, and this agent reads %q; update the agent", st.Media, wire.MediaOperation)
	case st.RawSize > wire.MaxOperation:
		return refuse(interpret.Code(wire.CodeTooLarge), "it has %d bytes, at most %d are read", st.RawSize, wire.MaxOperation)
	case st.NotAfter == 0 || st.NotAfter > st.Issued+uint64(wire.MaxOperationLife/time.Second):
		return refuse(CodeMalformed, "an operation expires at most %s after it was issued", wire.MaxOperationLife)
	}
	payload, err := v.Open()
	if err != nil {
		return opened{}, refusalOf("an operation", err)
	}
	// What the receipt needs comes first: what a later version added is no damage.
	var head struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		ID         string         `json:"id"`
		Device     string         `json:"device"`
		Verb       interpret.Verb `json:"verb"`
	}
	if err := json.Unmarshal(payload, &head); err != nil {
		return refuse(CodeMalformed, "%v", err)
	}
	if err := wire.CheckOperationID(head.ID); err != nil {
		return refuse(CodeMalformed, "%v", err)
	}
	if head.Device != d.ID {
		return refuse(CodeMalformed, "the operation inside is for %.80q", head.Device)
	}
	op := opened{digest: hex.EncodeToString(st.Digest), generation: st.Generation}
	op.ID, op.Device, op.Verb = head.ID, head.Device, head.Verb
	if head.APIVersion != score.APIVersion || head.Kind != interpret.OperationKind {
		op.unsupported = fmt.Sprintf("it is a %.40q of %.40q, and this agent reads %q of %q", head.Kind, head.APIVersion, interpret.OperationKind, score.APIVersion)
		return op, nil
	}
	if !slices.Contains(interpret.Verbs(), head.Verb) {
		op.unsupported = fmt.Sprintf("it knows no operation %.40q", string(head.Verb))
		return op, nil
	}
	var whole interpret.Operation
	if err := score.Decode(payload, &whole); err != nil {
		op.unsupported = err.Error()
		return op, nil
	}
	if wire.UnixSeconds(whole.Expires) != st.NotAfter {
		return refuse(CodeMalformed, "the operation inside expires at %s", whole.Expires.UTC().Format(time.RFC3339))
	}
	op.Operation = whole
	return op, nil
}

// actOf is what an operation asks for, as far as scopes go.
func actOf(d wire.Device, op opened) trust.Act {
	return trust.Act{Device: d, Approve: op.Answers(), Destroy: op.Destroys()}
}
