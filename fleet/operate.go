package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
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
	// Root is the trust root that the device follows: what it does not let the signer ask for is not asked.
	Root Root
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
// that it has not answered, and that would change something, is an *[UnansweredError]. Answers to requests are stored beside
// what is not answered, and what is asked later beside them. To ask for the same operation again does nothing new: it has the
// same receipt.
func (f *Fleet) Operate(ctx context.Context, op interpret.Operation, o OperateOptions) error {
	q, err := readyOperation(op, o, false)
	if err != nil {
		return err
	}
	const attempts = 5
	for i := 1; ; i++ {
		err := f.order(ctx, q, o)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errStale) {
			return q.fail(err)
		}
		if i == attempts {
			return q.fail(errors.New("others ask it for something all the time: try again"))
		}
	}
}

// SignOperation signs what Operate would ask for, and asks for nothing: others have to sign, too, or, without a signer, alone.
// PublishSigned asks for it.
func SignOperation(op interpret.Operation, o OperateOptions) (Envelope, error) {
	q, err := readyOperation(op, o, true)
	if err != nil {
		return Envelope{}, err
	}
	e, err := q.seal(uint64(q.now.UnixMilli()), o)
	if err != nil {
		return e, q.fail(err)
	}
	return e, nil
}

// A ready operation can be signed.
type ready struct {
	device  Device
	op      interpret.Operation
	payload []byte
	now     time.Time
}

func (q ready) fail(err error) error {
	if _, ok := errors.AsType[*UnansweredError](err); ok {
		return err
	}
	return fmt.Errorf("cannot ask %s for the operation %q: %w", q.device, q.op.Verb, err)
}

// readyOperation fills in an operation, and says why nobody would do it.
func readyOperation(op interpret.Operation, o OperateOptions, hold bool) (q ready, err error) {
	q = ready{device: Device{Site: cmp.Or(o.Site, wire.DefaultSite), ID: op.Device}, op: op, now: time.Now()}
	if err := q.device.Check(); err != nil {
		return q, err
	}
	if o.Signer == nil && !hold {
		return q, q.fail(errors.New("no key for operations is given"))
	}
	if err := wire.CheckOperationID(op.ID); err != nil {
		return q, q.fail(err)
	}
	op.APIVersion, op.Kind = score.APIVersion, interpret.OperationKind
	if op.Expires.IsZero() {
		op.Expires = q.now.Add(DefaultOperationLife)
	}
	op.Expires = op.Expires.UTC().Truncate(time.Second)
	switch life := op.Expires.Sub(q.now); {
	case op.Verb == "":
		return q, q.fail(errors.New("it says not what is asked for"))
	case life <= 0:
		return q, q.fail(fmt.Errorf("it expired at %s", op.Expires.Format(time.RFC3339)))
	case life > wire.MaxOperationLife:
		return q, q.fail(fmt.Errorf("it would be valid for %s, and an operation is for at most %s", life.Round(time.Second), wire.MaxOperationLife))
	}
	if o.Signer != nil {
		if err := mayAsk(o.Root, o.Signer, q.device, op, hold); err != nil {
			return q, q.fail(err)
		}
	}
	q.op = op
	if q.payload, err = score.Encode(op); err != nil {
		return q, q.fail(err)
	}
	if len(q.payload) > wire.MaxOperation {
		return q, q.fail(fmt.Errorf("it has %d bytes, and a device reads at most %d: approve fewer actions at a time", len(q.payload), wire.MaxOperation))
	}
	return q, nil
}

// seal signs it. It is not compressed: its digest must be that of the same operation at any other time.
func (q ready) seal(generation uint64, o OperateOptions) (Envelope, error) {
	st := wire.Statement{
		Kind: wire.KindApproval, Audience: q.device.String(), Name: string(q.op.Verb), Generation: generation, Epoch: o.Root.Metadata.Version,
		Issued: wire.UnixSeconds(q.now), NotAfter: wire.UnixSeconds(q.op.Expires), Media: wire.MediaOperation,
	}
	e, err := wire.SealEnvelope(st, q.payload)
	if err == nil && o.Signer != nil {
		err = e.Sign(o.Signer)
	}
	return e, err
}

// order stores an operation if nothing that matters is in its place.
func (f *Fleet) order(ctx context.Context, q ready, o OperateOptions) error {
	key := wire.ApprovalKey(q.device)
	before, err := f.stored(ctx, key)
	if err != nil {
		return err
	}
	least, beside, err := f.beside(ctx, q.device, q.op, before, q.now, o.Replace)
	if err != nil {
		return err
	}
	// Above everything that the device can have seen, also when the store has forgotten it: devices do not look at what is
	// older than the last.
	e, err := q.seal(max(uint64(q.now.UnixMilli()), least), o)
	if err != nil {
		return err
	}
	st, _, err := e.Peek()
	if err != nil {
		return err
	}
	if err := f.record(ctx, o.Signer, asked(q.device, q.op, hex.EncodeToString(st.Digest))); err != nil {
		return err
	}
	return f.storeOperation(ctx, key, e, beside, before.revision)
}

// beside gives the frames of the operations that stay stored for d beside another one, and the least generation that it must
// have. Without room for it, the error is an *[UnansweredError].
func (f *Fleet) beside(ctx context.Context, d Device, op interpret.Operation, before document, now time.Time, replace bool) (least uint64, frames [][]byte, err error) {
	for _, q := range readQuestions(before.frame) {
		if q.generation == math.MaxUint64 {
			return 0, nil, fmt.Errorf("what is stored under %s has the highest generation there is: delete that key, and restart the agent", wire.ApprovalKey(d))
		}
		least = max(least, q.generation+1)
		if replace || q.operation.ID == op.ID || q.operation.Verb == interpret.VerbPlan || !q.open(now) {
			continue
		}
		_, answered, err := f.Receipt(ctx, d, q.operation.ID)
		switch {
		case err != nil:
			return 0, nil, err
		case answered:
			continue
		case !op.StandsAlone() && !q.operation.StandsAlone(), len(frames)+1 == wire.MaxOperations:
			return 0, nil, &UnansweredError{d, q.operation}
		}
		frames = append(frames, q.frame)
	}
	return least, frames, nil
}

func (f *Fleet) storeOperation(ctx context.Context, key wire.Key, e Envelope, beside [][]byte, revision uint64) error {
	frame, err := e.Frame()
	if err != nil {
		return err
	}
	all, err := wire.JoinOperations(append(beside, frame)...)
	if err != nil {
		return err
	}
	st, _, err := e.Peek()
	if err != nil {
		return err
	}
	return f.replace(ctx, key, all, nats.Header(wire.Announce(st)), revision)
}

// A question is an operation as it is stored. Whether somebody signed it who may is for the device.
type question struct {
	operation  interpret.Operation
	generation uint64
	digest     []byte
	expires    uint64
	frame      []byte
}

// readQuestions reads those that are stored under a key, and leaves out what is none.
func readQuestions(stored []byte) (out []question) {
	frames, err := wire.SplitOperations(stored)
	if err != nil {
		return nil
	}
	for _, f := range frames {
		if q, ok := readQuestion(f); ok {
			out = append(out, q)
		}
	}
	return out
}

// readQuestion reads one. ok is false for what is none.
func readQuestion(frame []byte) (q question, ok bool) {
	st, payload, err := wire.Peek(frame)
	if err != nil || st.Kind != wire.KindApproval || len(payload) > wire.MaxOperation {
		return question{}, false
	}
	q = question{generation: st.Generation, digest: st.Digest, expires: st.NotAfter, frame: frame}
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
