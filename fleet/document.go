package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/score"
)

// A document is what is stored for one device.
type document struct {
	revision   uint64 // 0: nothing was ever stored, as far as the store knows
	found      bool   // false also when it was deleted
	frame      []byte
	assignment score.Assignment
}

// stored reads what is stored under a key, as bytes.
func (f *Fleet) stored(ctx context.Context, k wire.Key) (document, error) {
	ctx, cancel := f.within(ctx)
	defer cancel()
	s, err := f.js.Stream(ctx, wire.StreamDesired)
	if err != nil {
		return document{}, f.explain(noStore(err))
	}
	m, err := s.GetLastMsgForSubject(ctx, wire.DesiredSubject(k))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return document{}, nil
	}
	if err != nil {
		return document{}, f.explain(err)
	}
	if wire.Deleted(m.Header) {
		return document{revision: m.Sequence}, nil
	}
	return document{revision: m.Sequence, found: true, frame: m.Data}, nil
}

// present reads what is stored for d, if it was signed by keys.
func (f *Fleet) present(ctx context.Context, d Device, keys KeySet) (document, error) {
	doc, err := f.stored(ctx, wire.DeviceKey(d))
	if err != nil || !doc.found {
		return doc, err
	}
	v, err := wire.Verify(doc.frame, keys, wire.Expect{Kind: wire.KindDevice, Audience: d.String()})
	if err != nil {
		return doc, fmt.Errorf("what is published for it now was not signed by this key, or is damaged (%w): publish with the key that signed it", err)
	}
	payload, err := v.Open()
	if err != nil {
		return doc, fmt.Errorf("what is published for it now cannot be opened: %w", err)
	}
	if err := score.Decode(payload, &doc.assignment); err != nil {
		return doc, fmt.Errorf("what is published for it now was made by another version of this program (%w): update this one", err)
	}
	doc.assignment.Metadata.Generation = v.Statement.Generation
	return doc, nil
}

// missing tells that an error is about a stream that is not there.
func missing(err error) bool {
	return errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, nats.ErrStreamNotFound) || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse)
}

func noStore(err error) error {
	if missing(err) {
		return fmt.Errorf("%w: the server has no store for this fleet yet; continuo setup makes it", err)
	}
	return err
}

// seal signs an assignment as the document to be stored, under a version of the trust root.
func (w *pendingWrite) seal(as score.Assignment, signer wire.Signer, root uint64, now time.Time) error {
	payload, err := score.Encode(as)
	if err != nil {
		return err
	}
	st := wire.Statement{
		Kind: wire.KindDevice, Audience: w.Device.String(), Name: as.Metadata.Name, Generation: as.Metadata.Generation,
		Epoch: root, Issued: wire.UnixSeconds(now), Encoding: wire.EncodingGzip, Media: wire.MediaAssignment,
	}
	e, err := wire.SealEnvelope(st, payload, signer)
	if err != nil {
		return fmt.Errorf("%d bytes of manifests: %w", len(payload), err)
	}
	sum := sha256.Sum256(e.Payload)
	st.Digest = sum[:]
	w.digest = hex.EncodeToString(sum[:])
	w.Envelope, w.header, w.Size, w.RawSize = e, nats.Header(wire.Announce(st)), len(e.Payload), len(payload)
	w.frame, err = e.Frame()
	return err
}

// replace writes a document if what is stored is still of that revision.
func (f *Fleet) replace(ctx context.Context, k wire.Key, frame []byte, header nats.Header, revision uint64) error {
	m := &nats.Msg{Subject: wire.DesiredSubject(k), Header: header, Data: frame}
	const attempts = 3
	for i := 1; ; i++ {
		err := f.publish(ctx, m, revision)
		if err == nil {
			return nil
		}
		if permanent(err) {
			return noStore(err)
		}
		// A lost answer and a refusal both leave it open whether this document is stored.
		now, readErr := f.stored(ctx, k)
		switch {
		case readErr != nil:
			return readErr
		case now.found && bytes.Equal(now.frame, frame):
			return nil
		case now.revision != revision:
			return errStale
		case i == attempts:
			return err
		}
	}
}

var errStale = errors.New("stale base")

func (f *Fleet) publish(ctx context.Context, m *nats.Msg, revision uint64) error {
	ctx, cancel := f.within(ctx)
	defer cancel()
	_, err := f.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(revision))
	return f.explain(err)
}

// permanent tells that an error says for sure that nothing was stored, and why.
func permanent(err error) bool {
	if errors.Is(err, nats.ErrPermissionViolation) || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) {
		return true
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && !wire.WrongLast(int(api.ErrorCode))
}
