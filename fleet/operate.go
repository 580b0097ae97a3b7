package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// OperateOptions say how a device is asked for something.
type OperateOptions struct {
	Signer wire.Signer // a key that the device trusts for operations
	Site   string      // of the device; empty means main
	// Replace asks although the device has not answered an earlier operation. If it has not fetched that one yet, it
	// never will.
	Replace bool
}

// DefaultOperationLife is how long an operation is valid when nothing else is said. A device that is away for longer does
// not do it.
const DefaultOperationLife = time.Hour

// NewOperationID makes an id that was never used: a random UUID.
func NewOperationID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// An UnansweredError says that a device has not answered an earlier operation yet. Nothing was asked.
type UnansweredError struct {
	Device    Device
	Operation interpret.Operation // as it is stored; nobody has checked who signed it
}

func (e *UnansweredError) Error() string {
	return fmt.Sprintf("cannot ask %s for anything: it has not answered operation %s yet (%.40q, asked by %.80q, until %s): wait for it, or replace it",
		e.Device, e.Operation.ID, string(e.Operation.Verb), cmp.Or(e.Operation.Actor, "somebody"), e.Operation.Expires.UTC().Format(time.RFC3339))
}

// Operate asks a device for something, once. It fills in the version, the kind and, if there is none, the end of op. It
// returns when the operation is stored; the answer is a receipt. A device has one operation at a time: an earlier one
// that it has not answered, and that would change something, is an *[UnansweredError]. To ask for the same operation again
// does nothing new: it has the same receipt.
func (f *Fleet) Operate(ctx context.Context, op interpret.Operation, o OperateOptions) error {
	d := Device{Site: cmp.Or(o.Site, wire.DefaultSite), ID: op.Device}
	if err := d.Check(); err != nil {
		return err
	}
	fail := func(err error) error {
		if _, ok := errors.AsType[*UnansweredError](err); ok {
			return err
		}
		return fmt.Errorf("cannot ask %s for the operation %q: %w", d, op.Verb, err)
	}
	if o.Signer == nil {
		return fail(errors.New("no key for operations is given"))
	}
	if err := wire.CheckOperationID(op.ID); err != nil {
		return fail(err)
	}
	now := time.Now()
	op.APIVersion, op.Kind = score.APIVersion, interpret.OperationKind
	if op.Expires.IsZero() {
		op.Expires = now.Add(DefaultOperationLife)
	}
	op.Expires = op.Expires.UTC().Truncate(time.Second)
	switch life := op.Expires.Sub(now); {
	case op.Verb == "":
		return fail(errors.New("it says not what is asked for"))
	case life <= 0:
		return fail(fmt.Errorf("it expired at %s", op.Expires.Format(time.RFC3339)))
	case life > wire.MaxOperationLife:
		return fail(fmt.Errorf("it would be valid for %s, and an operation is for at most %s", life.Round(time.Second), wire.MaxOperationLife))
	}
	payload, err := score.Encode(op)
	if err != nil {
		return fail(err)
	}
	if len(payload) > wire.MaxOperation {
		return fail(fmt.Errorf("it has %d bytes, and a device reads at most %d: approve fewer actions at a time", len(payload), wire.MaxOperation))
	}
	const attempts = 5
	for i := 1; ; i++ {
		err := f.order(ctx, d, op, payload, o, now)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errStale) {
			return fail(err)
		}
		if i == attempts {
			return fail(errors.New("others ask it for something all the time: try again"))
		}
	}
}

// order stores an operation if nothing that matters is in its place.
func (f *Fleet) order(ctx context.Context, d Device, op interpret.Operation, payload []byte, o OperateOptions, now time.Time) error {
	key := wire.ApprovalKey(d)
	before, err := f.stored(ctx, key)
	if err != nil {
		return err
	}
	// Above everything that the device can have seen, also when the store has forgotten it: devices do not look at what is
	// older than the last.
	generation := uint64(now.UnixMilli())
	if q, ok := readQuestion(before.frame); ok {
		if q.generation == math.MaxUint64 {
			return fmt.Errorf("what is stored under %s has the highest generation there is: delete that key, and restart the agent", key)
		}
		generation = max(generation, q.generation+1)
		if !o.Replace && q.operation.ID != op.ID && q.operation.Verb != interpret.VerbPlan && q.open(now) {
			_, answered, err := f.Receipt(ctx, d, q.operation.ID)
			if err != nil {
				return err
			}
			if !answered {
				return &UnansweredError{d, q.operation}
			}
		}
	}
	// It is not compressed: its digest must be that of the same operation at any other time.
	st := wire.Statement{
		Kind: wire.KindApproval, Audience: d.String(), Name: string(op.Verb), Generation: generation,
		Issued: wire.UnixSeconds(now), NotAfter: wire.UnixSeconds(op.Expires), Media: wire.MediaOperation,
	}
	e, err := wire.SealEnvelope(st, payload, o.Signer)
	if err != nil {
		return err
	}
	frame, err := e.Frame()
	if err != nil {
		return err
	}
	st, _, err = wire.Peek(frame)
	if err != nil {
		return err
	}
	return f.replace(ctx, key, frame, nats.Header(wire.Announce(st)), before.revision)
}

// A question is an operation as it is stored. Whether somebody signed it who may is for the device.
type question struct {
	operation  interpret.Operation
	generation uint64
	digest     []byte
	expires    uint64
}

// readQuestion reads one. ok is false for what is none.
func readQuestion(frame []byte) (q question, ok bool) {
	st, payload, err := wire.Peek(frame)
	if err != nil || st.Kind != wire.KindApproval || len(payload) > wire.MaxOperation {
		return question{}, false
	}
	q = question{generation: st.Generation, digest: st.Digest, expires: st.NotAfter}
	if json.Unmarshal(payload, &q.operation) != nil || wire.CheckOperationID(q.operation.ID) != nil {
		q.operation, q.expires = interpret.Operation{}, 0
	}
	return q, true
}

// open reports whether a device could still do it.
func (q question) open(now time.Time) bool {
	t := wire.UnixSeconds(now)
	return q.expires > t && q.expires <= t+2*uint64(wire.MaxOperationLife/time.Second)
}

// Plan asks d what it would do now, and waits for the answer. Nothing is changed by it. When ctx ends before, the
// question expires with it.
func (f *Fleet) Plan(ctx context.Context, d Device, actor string, o OperateOptions) (interpret.Plan, error) {
	op := interpret.Operation{ID: NewOperationID(), Device: d.ID, Verb: interpret.VerbPlan, Actor: actor}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < DefaultOperationLife {
		op.Expires = end.Add(time.Second)
	}
	o.Site = d.Site
	if err := f.Operate(ctx, op, o); err != nil {
		return interpret.Plan{}, err
	}
	r, err := f.WaitReceipt(ctx, d, op.ID)
	if err != nil {
		return interpret.Plan{}, err
	}
	if r.Result != interpret.ResultDone || r.Plan == nil {
		return interpret.Plan{}, fmt.Errorf("cannot get a plan of %s: %s: %s (%s)", d, r.Result, cmp.Or(r.Message, "no reason is given"), cmp.Or(r.Code, "no code"))
	}
	return *r.Plan, nil
}
