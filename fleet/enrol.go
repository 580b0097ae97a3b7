package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// An Issuer makes credentials. It is given a public key, and never sees the other half.
type Issuer interface {
	// Device is the credential of d.
	Device(d Device, userPublicKey string, notAfter time.Time) (string, error)
	// Knock is one by which nothing can be done but to present a request under a name.
	Knock(d Device, request, userPublicKey string, notAfter time.Time) (string, error)
}

// Admission is how a control service lets devices in.
type Admission struct {
	Issuer    Issuer
	Operators KeySet        // who may sign invitations, and who is let in
	Life      time.Duration // of a credential; 0 means 90 days
	Clock     func() time.Time
}

// lateBack is how long an approval of a device that comes back can be fetched: it may be offline when it is given.
const lateBack = 7 * 24 * time.Hour

// admit answers requests for credentials until the connection ends.
func (s *service) admit(ctx context.Context) (stop func(), err error) {
	a := s.o.Admission
	if a == nil {
		return func() {}, nil
	}
	if a.Clock == nil {
		a.Clock = time.Now
	}
	if a.Life == 0 {
		a.Life = wire.CredentialLife
	}
	var subs []*nats.Subscription
	for subject, handle := range map[string]func(context.Context, *nats.Msg) (Device, wire.LetIn, error){
		wire.AllEnrollments: s.enrol, wire.AllRenewals: s.renew,
	} {
		sub, err := s.nc.QueueSubscribe(subject, queue, func(m *nats.Msg) {
			if m.Reply == "" {
				return
			}
			d, answer, err := handle(ctx, m)
			if err == nil && answer.State != "" {
				var b []byte
				if b, err = wire.SealLetIn(answer, d, a.Clock(), s.o.Signer); err == nil {
					err = m.Respond(b)
				}
			}
			if err != nil {
				s.complain(d, fmt.Errorf("cannot answer a request of %s for a credential: %w", d, err))
			}
		})
		if err != nil {
			return nil, fmt.Errorf("cannot serve: %w", err)
		}
		subs = append(subs, sub)
	}
	return func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe() // who asks asks again, and then another one
		}
	}, nil
}

// refusing makes an answer of a refusal. What was not even signed by the key in it gets none.
func refusing(nonce []byte, err error) (wire.LetIn, error) {
	r, ok := errors.AsType[*wire.Refusal](err)
	if !ok {
		return wire.LetIn{}, err
	}
	return wire.LetIn{Nonce: nonce, State: wire.StateRefused, Code: r.Code, Message: r.Detail}, nil
}

// enrol answers who is no device yet, or whose credential has expired.
func (s *service) enrol(ctx context.Context, m *nats.Msg) (Device, wire.LetIn, error) {
	d, id, err := wire.AskedOn(m.Subject)
	if err != nil {
		return d, wire.LetIn{}, err
	}
	r, err := wire.OpenRequest(m.Data, d, id)
	if err != nil {
		return d, wire.LetIn{}, err
	}
	a := s.o.Admission
	now := a.Clock()
	var until time.Time
	if id != wire.RequestBack {
		if until, err = r.Invited(a.Operators, now); err != nil {
			l, err := refusing(r.Nonce, err)
			return d, l, err
		}
	}
	rec, decided, err := s.deviceRecord(ctx, d, a.Operators)
	if err != nil {
		return d, wire.LetIn{}, err
	}
	approved := rec.Key == r.Key && bytes.Equal(rec.Request, r.Digest)
	switch {
	case rec.Retired && (approved || id == wire.RequestBack):
		return d, wire.LetIn{Nonce: r.Nonce, State: wire.StateRefused, Code: wire.CodeKeyRevoked, Message: "the device was retired"}, nil
	case id == wire.RequestBack && rec.Key != r.Key:
		return d, wire.LetIn{Nonce: r.Nonce, State: wire.StateRefused, Code: wire.CodeKeyRevoked, Message: "the device has another key by now"}, nil
	case id == wire.RequestBack:
		until = rec.Approved.Add(lateBack)
	}
	if approved && now.Before(until) {
		l, err := s.issue(r.Request, now)
		return d, l, err
	}
	l, err := s.note(ctx, r, m.Data, decided)
	return d, l, err
}

// renew answers a device whose credential still counts: the server let its request through for that.
func (s *service) renew(ctx context.Context, m *nats.Msg) (Device, wire.LetIn, error) {
	d, err := wire.DeviceOf(m.Subject)
	if err != nil {
		return d, wire.LetIn{}, err
	}
	r, err := wire.OpenRequest(m.Data, d, wire.RequestRenew)
	if err != nil {
		return d, wire.LetIn{}, err
	}
	rec, _, err := s.deviceRecord(ctx, d, s.o.Admission.Operators)
	if err != nil {
		return d, wire.LetIn{}, err
	}
	s.mu.Lock()
	blocked := s.picture.blocked[d]
	s.mu.Unlock()
	switch {
	case rec.Key != r.Key || rec.Retired:
		return d, wire.LetIn{Nonce: r.Nonce, State: wire.StateRefused, Code: wire.CodeKeyRevoked, Message: "the device is not enrolled with this key"}, nil
	case blocked:
		return d, wire.LetIn{Nonce: r.Nonce, State: wire.StateWaiting, Message: "the device is blocked"}, nil
	}
	l, err := s.issue(r.Request, s.o.Admission.Clock())
	return d, l, err
}

// issue makes the credential that was approved. To make it twice is to make the same.
func (s *service) issue(r wire.Request, now time.Time) (wire.LetIn, error) {
	a := s.o.Admission
	l := wire.LetIn{Nonce: r.Nonce, State: wire.StateApproved}
	var err error
	if l.Credential, err = a.Issuer.Device(r.Device, r.Key, now.Add(a.Life)); err != nil {
		return wire.LetIn{}, err
	}
	l.Back, err = a.Issuer.Knock(r.Device, wire.RequestBack, r.Key, time.Time{})
	return l, err
}

// note keeps a request until somebody has decided about it. Under an invitation there is one, ever; a device that comes
// back may ask again in other words. What was presented before something else was decided about the device is over.
func (s *service) note(ctx context.Context, r wire.OpenedRequest, data []byte, decided uint64) (wire.LetIn, error) {
	waiting := wire.LetIn{Nonce: r.Nonce, State: wire.StateWaiting}
	refused := func(code wire.Code, why string) (wire.LetIn, error) {
		return wire.LetIn{Nonce: r.Nonce, State: wire.StateRefused, Code: code, Message: why}, nil
	}
	subject := wire.AskingSubject(r.Device, r.ID)
	for range 3 {
		there, err := s.kept(ctx, subject)
		switch {
		case err != nil:
			return wire.LetIn{}, err
		case there != nil && there.deleted && r.ID != wire.RequestBack:
			return refused(wire.CodeUntrusted, "an operator rejected the request")
		case there != nil && bytes.Equal(there.data, data) && there.sequence < decided && r.ID != wire.RequestBack:
			return refused(wire.CodeUntrusted, "an operator decided otherwise about this device since it was presented")
		case there != nil && !there.deleted && bytes.Equal(there.data, data):
			return waiting, nil
		case there != nil && r.ID != wire.RequestBack:
			return refused(wire.CodeEquivocation, "another request was presented under this invitation: ask for a new one, and tell your operator, who may be deceived")
		}
		last := uint64(0)
		if there != nil {
			last = there.sequence
		}
		if err = s.keep(ctx, subject, data, last); err == nil {
			return waiting, nil
		}
		if !wrongLast(err) {
			return wire.LetIn{}, err
		}
	}
	return waiting, nil // others write the same; it is asked again
}

// kept is what is stored last under a subject of the control bucket; nil if nothing ever was.
func (f *Fleet) kept(ctx context.Context, subject string) (*message, error) {
	ctx, cancel := f.within(ctx)
	defer cancel()
	stream, err := f.js.Stream(ctx, wire.StreamControl)
	if err != nil {
		return nil, f.explain(noStore(err))
	}
	m, err := stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, f.explain(err)
	}
	return &message{stream: wire.StreamControl, subject: m.Subject, sequence: m.Sequence, time: m.Time, deleted: wire.Deleted(m.Header), data: m.Data}, nil
}

// keep stores something under a subject, if what is there is still that of a sequence.
func (f *Fleet) keep(ctx context.Context, subject string, data []byte, last uint64) error {
	ctx, cancel := f.within(ctx)
	defer cancel()
	_, err := f.js.Publish(ctx, subject, data, jetstream.WithExpectLastSequencePerSubject(last))
	return f.explain(noStore(err))
}

// deviceRecord is who d is by the last record of it; the zero value if it was never let in. sequence is that of what is stored.
func (f *Fleet) deviceRecord(ctx context.Context, d Device, operators KeySet) (rec wire.Record, sequence uint64, err error) {
	m, err := f.kept(ctx, wire.RecordSubject(d))
	if err != nil || m == nil {
		return wire.Record{}, 0, err
	}
	if m.deleted {
		return wire.Record{}, m.sequence, nil
	}
	rec, err = wire.OpenRecord(m.data, operators, d)
	if err != nil {
		return wire.Record{}, m.sequence, fmt.Errorf("cannot use the record of %s: %w", d, err)
	}
	return rec, m.sequence, nil
}

// wrongLast reports whether something else was stored before.
func wrongLast(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && wire.WrongLast(int(api.ErrorCode))
}
