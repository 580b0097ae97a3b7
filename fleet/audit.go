package fleet

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// record writes down, signed, what is about to be done with a key. It is stored when it returns nil; without that nothing
// is done. Each call begins a chain of its own, whose first entry names the one that the key wrote before: two programs with
// one key do not get in each other's way, and what is missing between them shows.
func (f *Fleet) record(ctx context.Context, signer wire.Signer, entries ...interpret.AuditEntry) error {
	fail := func(err error) error {
		return fmt.Errorf("cannot write down what is to be done, so that it is not done: %w", f.explain(err))
	}
	public, err := signer.PublicKey()
	if err != nil {
		return fail(err)
	}
	subject, err := wire.ControlAuditSubject(public)
	if err != nil {
		return fail(err)
	}
	previous, err := f.lastRecorded(ctx, public, subject)
	if err != nil {
		return fail(err)
	}
	chain := rand.Text()
	var body []byte
	for i, e := range entries {
		e.APIVersion, e.Kind, e.What = score.APIVersion, interpret.AuditKind, interpret.AuditVerb
		e.Chain, e.Sequence, e.Previous, e.Time = chain, uint64(i+1), previous, time.Now().UTC().Truncate(time.Second)
		line, err := score.Encode(e.Bounded())
		if err != nil {
			return fail(err)
		}
		if len(line) > wire.MaxAuditEntry {
			return fail(fmt.Errorf("the entry has %d bytes, and at most %d are read", len(line), wire.MaxAuditEntry))
		}
		if len(body) > 0 && len(body)+1+len(line) > wire.MaxAuditMessage {
			if err := f.addToAudit(ctx, signer, subject, body); err != nil {
				return fail(err)
			}
			body = nil
		}
		if len(body) > 0 {
			body = append(body, '\n')
		}
		body = append(body, line...)
		previous = digestOf(line)
	}
	if len(body) == 0 {
		return nil
	}
	if err := f.addToAudit(ctx, signer, subject, body); err != nil {
		return fail(err)
	}
	return nil
}

func (f *Fleet) addToAudit(ctx context.Context, signer wire.Signer, subject string, body []byte) error {
	header, err := wire.SignAudit(signer, body)
	if err != nil {
		return err
	}
	ctx, cancel := f.within(ctx)
	defer cancel()
	_, err = f.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Header: header, Data: body})
	return noStore(err)
}

// lastRecorded is the digest of the last entry that a key has written, if that is known.
func (f *Fleet) lastRecorded(ctx context.Context, public, subject string) (string, error) {
	ctx, cancel := f.within(ctx)
	defer cancel()
	s, err := f.js.Stream(ctx, wire.StreamAudit)
	if err != nil {
		return "", noStore(err)
	}
	m, err := s.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if !wire.AuditSigned(public, m.Header, m.Data) {
		return "", nil // somebody else wrote there, as whoever verifies the audit sees
	}
	lines := strings.Split(string(m.Data), "\n")
	return digestOf([]byte(lines[len(lines)-1])), nil
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// published is what the audit says of a document before it is stored.
func (w pendingWrite) published(o PublishOptions) interpret.AuditEntry {
	e := interpret.AuditEntry{Device: w.Device.String(), Verb: "publish", Actor: o.Actor, Reason: o.Reason, Generation: w.Generation, Digest: w.digest}
	var what []string
	for _, c := range w.Manifests {
		if c.Action != Unchanged {
			what = append(what, c.Name+" "+string(c.Action))
		}
		if c.Action == Removed {
			e.Verb = "unpublish"
		}
	}
	e.Message = strings.Join(what, ", ")
	return e
}

// recordPublication writes down what is about to be published.
func (f *Fleet) recordPublication(ctx context.Context, ready []pendingWrite, o PublishOptions) error {
	var entries []interpret.AuditEntry
	for _, w := range ready {
		if w.Changes() {
			entries = append(entries, w.published(o))
		}
	}
	if o.DryRun || o.Hold || len(entries) == 0 {
		return nil
	}
	return f.record(ctx, o.Signer, entries...)
}

// asked is what the audit says of an operation before it is stored.
func asked(d Device, op interpret.Operation, digest string) interpret.AuditEntry {
	e := interpret.AuditEntry{Device: d.String(), Verb: string(op.Verb), Operation: op.ID, Request: digest, Actor: op.Actor, Reason: op.Reason, Plan: op.Plan, Manifest: op.Manifest}
	for _, ap := range op.Approvals {
		e.Resources = append(e.Resources, ap.Resources...)
	}
	return e
}
