package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// An Enrolled is who a device is, or wants to be.
type Enrolled struct {
	Device      Device     `json:"device"`
	Fingerprint string     `json:"fingerprint,omitempty"` // of the key of its connection
	Board       wire.Board `json:"board,omitzero"`
	Approved    time.Time  `json:"approved,omitzero"`
	Retired     bool       `json:"retired,omitzero"`
	// Unusable says why there is nothing to be said of it although something is stored.
	Unusable string `json:"unusable,omitempty"`
	// Waiting are the requests that nobody has decided about.
	Waiting []Waiting `json:"waiting,omitempty"`

	key string
}

// Key is the public key of its connection.
func (e Enrolled) Key() string { return e.key }

// A Waiting is a request that waits for an operator.
type Waiting struct {
	ID          string     `json:"id"`
	Fingerprint string     `json:"fingerprint"`
	Board       wire.Board `json:"board,omitzero"`
	Since       time.Time  `json:"since"`
	Until       time.Time  `json:"until,omitzero"` // it can be approved until then; zero has no end

	request wire.OpenedRequest
}

// Devices are all who were let in or wait for it, as far as the operators' keys have signed for it, sorted by their names.
func (f *Fleet) Devices(ctx context.Context, operators KeySet, now time.Time) ([]Enrolled, error) {
	messages, err := f.all(ctx, wire.AllRecords, wire.AllAskings)
	if err != nil {
		return nil, fmt.Errorf("cannot list the devices: %w", err)
	}
	records, byName := map[Device]decided{}, map[Device]*Enrolled{}
	entry := func(d Device) *Enrolled {
		if byName[d] == nil {
			byName[d] = &Enrolled{Device: d}
		}
		return byName[d]
	}
	var requests []message
	for _, m := range messages {
		d, err := wire.RecordOf(m.subject)
		if err != nil {
			requests = append(requests, m)
			continue
		}
		r, err := wire.OpenRecord(m.data, operators, d)
		if err != nil {
			entry(d).Unusable = err.Error()
			continue
		}
		records[d] = decided{r, m.sequence}
		e := entry(d)
		e.Board, e.Approved, e.Retired, e.key = r.Board, r.Approved, r.Retired, r.Key
		e.Fingerprint, _ = wire.UserFingerprint(r.Key) // one that is none shows no fingerprint
	}
	for _, m := range requests {
		if d, w, err := waiting(m, operators, records, now); err == nil {
			e := entry(d)
			e.Waiting = append(e.Waiting, w)
		}
	}
	out := make([]Enrolled, 0, len(byName))
	for _, e := range byName {
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b Enrolled) int { return cmp.Compare(a.Device.String(), b.Device.String()) })
	return out, nil
}

// decided is the record of a device, and when it was stored, among all that is.
type decided struct {
	wire.Record
	sequence uint64
}

// waiting reads a request that is kept. Who may write to the store can put anything there: all of it is verified again.
func waiting(m message, operators KeySet, records map[Device]decided, now time.Time) (Device, Waiting, error) {
	d, id, err := wire.AskedOn(m.subject)
	if err != nil {
		return d, Waiting{}, err
	}
	r, err := wire.OpenRequest(m.data, d, id)
	if err != nil {
		return d, Waiting{}, err
	}
	w := Waiting{ID: id, Board: r.Board, Since: m.time, request: r}
	rec := records[d]
	switch {
	case rec.Key == r.Key && bytes.Equal(rec.Request, r.Digest):
		return d, w, errors.New("it is approved")
	case id == wire.RequestBack && (rec.Key != r.Key || rec.Retired):
		return d, w, errors.New("it is not the device's")
	case id != wire.RequestBack && m.sequence < rec.sequence:
		return d, w, errors.New("something else was decided about the device since")
	case id != wire.RequestBack:
		if w.Until, err = r.Invited(operators, now); err != nil {
			return d, w, err
		}
	}
	w.Fingerprint, err = wire.UserFingerprint(r.Key)
	return d, w, err
}

// Approve lets a device in: the control service answers the request with a credential from now on. If the device had
// another key, that one has to be revoked by the caller; it is given back.
func (f *Fleet) Approve(ctx context.Context, d Device, w Waiting, operators KeySet, signer wire.Signer, now time.Time) (former string, err error) {
	return f.decide(ctx, d, operators, signer, now, func(r *wire.Record) error {
		if r.Key == w.request.Key && r.Retired {
			return fmt.Errorf("cannot approve %s: its key was retired; it has to make another one: continuo device enroll %[1]s", d)
		}
		former = ""
		if r.Key != w.request.Key {
			former = r.Key
		}
		*r = wire.Record{Generation: r.Generation, Device: d, Key: w.request.Key, Board: w.request.Board, Request: w.request.Digest, Approved: now}
		return nil
	}, &former)
}

// Retire takes a device out of the fleet: it gets no credential any more. The key that it had has to be revoked by the
// caller; it is given back.
func (f *Fleet) Retire(ctx context.Context, d Device, operators KeySet, signer wire.Signer, now time.Time) (key string, err error) {
	return f.decide(ctx, d, operators, signer, now, func(r *wire.Record) error {
		if r.Key == "" {
			return fmt.Errorf("cannot retire %s: it was never enrolled", d)
		}
		key, r.Retired = r.Key, true
		return nil
	}, &key)
}

// decide changes the record of a device, if nobody else changes it at the same time.
func (f *Fleet) decide(ctx context.Context, d Device, operators KeySet, signer wire.Signer, now time.Time, change func(*wire.Record) error, key *string) (string, error) {
	if err := d.Check(); err != nil {
		return "", err
	}
	r, sequence, err := f.deviceRecord(ctx, d, operators)
	if err != nil {
		return "", err
	}
	if err := change(&r); err != nil {
		return "", err
	}
	r.Generation = max(r.Generation+1, wire.UnixSeconds(now))
	b, err := wire.SealRecord(r, now, signer)
	if err != nil {
		return "", err
	}
	if _, err := wire.OpenRecord(b, operators, d); err != nil {
		return "", fmt.Errorf("cannot decide about %s: this key may not: %w", d, err)
	}
	err = f.keep(ctx, wire.RecordSubject(d), b, sequence)
	if wrongLast(err) {
		return "", fmt.Errorf("cannot decide about %s: somebody else did at this moment; look again: continuo device show %[1]s", d)
	}
	if err != nil {
		return "", fmt.Errorf("cannot decide about %s: %w", d, err)
	}
	return *key, nil
}

// Reject refuses a request, and the invitation that it is under, for ever.
func (f *Fleet) Reject(ctx context.Context, d Device, w Waiting) error {
	subject := wire.AskingSubject(d, w.ID)
	m, err := f.kept(ctx, subject)
	if err != nil || m == nil {
		return err
	}
	ctx, cancel := f.within(ctx)
	defer cancel()
	if _, err = f.js.PublishMsg(ctx, deletion(subject), jetstream.WithExpectLastSequencePerSubject(m.sequence)); err != nil {
		return fmt.Errorf("cannot reject the request of %s: %w", d, f.explain(err))
	}
	return nil
}

// all gives what is stored last under each of the subjects of the control bucket, and was not deleted.
func (f *Fleet) all(ctx context.Context, subjects ...string) (out []message, err error) {
	ctx, cancel := f.within(ctx)
	defer cancel()
	messages, hand := channel(ctx)
	left := backlog{}
	n, stop, err := f.follow(ctx, wire.StreamControl, subjects, hand)
	if err != nil {
		return nil, err
	}
	defer stop()
	left.expect(wire.StreamControl, n)
	for len(left) > 0 {
		select {
		case <-ctx.Done():
			return nil, f.explain(ctx.Err())
		case m := <-messages:
			left.took(m)
			if !m.deleted {
				out = append(out, m)
			}
		}
	}
	return out, nil
}
