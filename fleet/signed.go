package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/trust"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// A Signed is what is in a signed document, for who is asked to sign it as well. Nobody vouches for it.
type Signed struct {
	// Kind of what is signed: device, approval or root.
	Kind string `json:"kind"`
	// For whom it is: a device, or the fleet.
	For string `json:"for"`
	// Generation of it, or the version of the trust root.
	Generation uint64 `json:"generation"`
	// Under is the version of the trust root that it was signed under.
	Under uint64 `json:"under,omitzero"`
	// Issued is when it was made.
	Issued time.Time `json:"issued"`
	// Expires is when it counts no more, if ever.
	Expires time.Time `json:"expires,omitzero"`
	// Signatures that are on it.
	Signatures int `json:"signatures"`

	// What it says: one of these.
	Assignment *score.Assignment    `json:"assignment,omitempty"`
	Operation  *interpret.Operation `json:"operation,omitempty"`
	Root       *Root                `json:"root,omitempty"`
}

// Device is whom it is for, if it is for one.
func (s Signed) Device() (Device, error) { return ParseDevice(s.For) }

// ReadSigned opens a signed document. Nothing of it is verified.
func ReadSigned(e Envelope) (s Signed, err error) {
	fail := func(err error) (Signed, error) {
		return Signed{}, fmt.Errorf("cannot read the signed document: %w", err)
	}
	st, payload, err := e.Peek()
	if err != nil {
		return fail(err)
	}
	s = Signed{Kind: string(st.Kind), For: st.Audience, Generation: st.Generation, Under: st.Epoch, Signatures: len(e.Signatures), Issued: timeOf(st.Issued), Expires: timeOf(st.NotAfter)}
	switch st.Kind {
	case wire.KindDevice:
		s.Assignment = new(score.Assignment)
		err = score.Decode(payload, s.Assignment)
	case wire.KindApproval:
		s.Operation = new(interpret.Operation)
		err = score.Decode(payload, s.Operation)
	case wire.KindRoot:
		var r Root
		r, err = trust.Peek(e)
		s.Root = &r
	default:
		err = fmt.Errorf("it is of the kind %.40q, which nobody signs in a file", string(st.Kind))
	}
	if err != nil {
		return fail(err)
	}
	return s, nil
}

// timeOf is a time of a statement; 0 is none.
func timeOf(seconds uint64) time.Time {
	const year9999 = 253402300799
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(int64(min(seconds, year9999)), 0).UTC()
}

// MaySign says why the signature of a key on a document would count for nothing, for who follows the trust root r.
func MaySign(r Root, signer wire.Signer, s Signed) error {
	if s.Kind == string(wire.KindRoot) {
		return maySignRoot(r, signer, s)
	}
	d, err := s.Device()
	switch {
	case err != nil:
	case s.Assignment != nil:
		err = mayPublish(r, signer, d, *s.Assignment, true)
	default:
		err = mayAsk(r, signer, d, *s.Operation, true)
	}
	if err != nil {
		return fmt.Errorf("cannot sign what is for %s: %w", s.For, err)
	}
	return nil
}

// maySignRoot: a root key of the version before, or of the new one.
func maySignRoot(r Root, signer wire.Signer, s Signed) error {
	public, err := signer.PublicKey()
	if err != nil {
		return fmt.Errorf("cannot sign the trust root: %w", err)
	}
	for _, v := range []Root{r, *s.Root} {
		if k, err := v.Find(public); err == nil && k.Has(trust.RoleRoot) {
			return nil
		}
	}
	return fmt.Errorf("cannot sign version %d of the trust root: %s is no root key of it, and none of the version before", s.Root.Metadata.Version, public)
}

// PublishSigned stores a document for a device, or asks for an operation, that enough people have signed. Devices follow the
// trust root r. With dry it only says whether that would be done.
func (f *Fleet) PublishSigned(ctx context.Context, e Envelope, r Root, dry bool) (Signed, error) {
	s, err := ReadSigned(e)
	if err != nil {
		return s, err
	}
	fail := func(err error) (Signed, error) {
		return s, fmt.Errorf("cannot publish what was signed for %s: %w", s.For, err)
	}
	if r.Metadata.Version == 0 {
		return fail(errors.New("this fleet has no trust root, which says whose signatures count: continuo keys init makes one"))
	}
	if s.Root != nil {
		return fail(errors.New("it is a trust root: continuo keys publish"))
	}
	d, err := s.Device()
	if err != nil {
		return fail(err)
	}
	switch {
	case s.Assignment != nil:
		err = f.publishDocument(ctx, e, d, r, dry)
	case s.Operation != nil:
		err = f.publishOperation(ctx, e, d, *s.Operation, r, dry)
	}
	if err != nil {
		return fail(err)
	}
	return s, nil
}

func (f *Fleet) publishDocument(ctx context.Context, e Envelope, d Device, r Root, dry bool) error {
	_, st, err := taken(e, d, r, time.Now())
	if err != nil {
		return fmt.Errorf("the device would not take it: %w", err)
	}
	frame, err := e.Frame()
	if err != nil {
		return err
	}
	now, err := f.stored(ctx, wire.DeviceKey(d))
	if err != nil {
		return err
	}
	// What is published now, if it counts, must be what this was made of, or older.
	if other, err := wire.ParseFrame(now.frame); now.found && err == nil {
		if _, was, err := taken(other, d, r, time.Time{}); err == nil && was.Generation >= st.Generation {
			return fmt.Errorf("generation %d is published for it meanwhile, and this is %d: make it again from what is published now", was.Generation, st.Generation)
		}
	}
	if dry {
		return nil
	}
	if err := f.replace(ctx, wire.DeviceKey(d), frame, nats.Header(wire.Announce(st)), now.revision); errors.Is(err, errStale) {
		return &StaleError{Device: d}
	} else if err != nil {
		return err
	}
	return nil
}

func (f *Fleet) publishOperation(ctx context.Context, e Envelope, d Device, op interpret.Operation, r Root, dry bool) error {
	keys, err := r.Operations()
	if err != nil {
		return err
	}
	v, err := e.Verify(keys, wire.Expect{Kind: wire.KindApproval, Audience: d.String(), Now: time.Now()})
	if err == nil {
		if refusal := r.CheckOperation(v.By, actOf(d, op)); refusal != nil {
			err = refusal
		}
	}
	if err != nil {
		return fmt.Errorf("the device would not do it: %w", err)
	}
	before, err := f.stored(ctx, wire.ApprovalKey(d))
	if err != nil {
		return err
	}
	least, beside, err := f.beside(ctx, d, op, before, time.Now(), false)
	switch {
	case err != nil:
		return err
	case v.Statement.Generation < least && !op.StandsAlone():
		return errors.New("it was asked for something else since this was made: make it again")
	case dry:
		return nil
	}
	err = f.storeOperation(ctx, wire.ApprovalKey(d), e, beside, before.revision)
	if errors.Is(err, errStale) {
		return errors.New("somebody asks it for something else at the same time: try again")
	}
	return err
}
