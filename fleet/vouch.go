package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/continuo-fleet/continuo/internal/trust"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// What devices would refuse is not published: here it is judged as they do, before anybody sends it.

// taken reads a document as device d would, which follows the trust root r. An error is a *wire.Refusal, or says that the
// document cannot be read.
func taken(e Envelope, d Device, r Root, now time.Time) (as score.Assignment, st wire.Statement, err error) {
	keys, err := r.Documents()
	if err != nil {
		return as, st, err
	}
	v, err := e.Verify(keys, wire.Expect{Kind: wire.KindDevice, Audience: d.String(), Now: now, Since: r.Spec.Restart})
	if err != nil {
		return as, st, err
	}
	payload, err := v.Open()
	if err == nil {
		err = score.Decode(payload, &as)
	}
	if err != nil {
		return as, st, err
	}
	as.Metadata.Generation = v.Statement.Generation
	if refusal := r.CheckDocument(v.By, d, as); refusal != nil {
		return as, st, refusal
	}
	return as, v.Statement, nil
}

// signerIn says why the signatures of a key count for nothing in r.
func signerIn(r Root, signer wire.Signer) (public string, err error) {
	if public, err = signer.PublicKey(); err != nil {
		return "", fmt.Errorf("cannot read the public key of who signs: %w", err)
	}
	k, err := r.Find(public)
	now := time.Now()
	switch {
	case slices.Contains(r.Spec.Revoked, public):
		return "", fmt.Errorf("the key %s was revoked", public)
	case err != nil:
		return "", fmt.Errorf("the key %s is not in version %d of the trust root: its owner adds it with continuo keys add", public, r.Metadata.Version)
	case !k.NotBefore.IsZero() && now.Before(k.NotBefore), !k.NotAfter.IsZero() && !now.Before(k.NotAfter):
		return "", fmt.Errorf("the key of %s may sign only %s", k.Name, k.Validity())
	}
	return public, nil
}

// fewSignatures says that what was signed is fine so far, and waits for more who sign it.
const fewSignatures = "it needs more signatures than one: write it to a file with --out, have others sign that with continuo sign, and publish it"

// mayPublish says why no device would take a document that signer signs. With hold, others will sign it as well.
func mayPublish(r Root, signer wire.Signer, d Device, as score.Assignment, hold bool) error {
	if r.Metadata.Version == 0 {
		return nil
	}
	public, err := signerIn(r, signer)
	if err != nil {
		return err
	}
	return allowed(r.CheckDocument([]string{public}, d, as), hold)
}

// mayAsk says why a device would not take an operation that signer signs.
func mayAsk(r Root, signer wire.Signer, d Device, op interpret.Operation, hold bool) error {
	if r.Metadata.Version == 0 {
		return nil
	}
	public, err := signerIn(r, signer)
	if err != nil {
		return err
	}
	return allowed(r.CheckOperation([]string{public}, actOf(d, op)), hold)
}

func actOf(d Device, op interpret.Operation) trust.Act {
	return trust.Act{Device: d, Approve: op.Answers(), Destroy: op.Destroys()}
}

// allowed turns the word of a trust root about one who signs into an error. With hold, that others have not signed yet is
// none.
func allowed(r *wire.Refusal, hold bool) error {
	switch {
	case r == nil, hold && r.Code == wire.CodeTooFewSignatures:
		return nil
	case r.Code == wire.CodeTooFewSignatures:
		return fmt.Errorf("%s (%s): %s", r.Detail, r.Code, fewSignatures)
	}
	return fmt.Errorf("no device would take it: %s (%s)", r.Detail, r.Code)
}

// base reads what is published for d now, to be changed: only what a device takes may be signed again. With anew nothing
// is kept of something that it does not take.
func (f *Fleet) base(ctx context.Context, d Device, keys KeySet, r Root, anew bool) (document, error) {
	if r.Metadata.Version == 0 {
		return f.present(ctx, d, keys)
	}
	doc, err := f.stored(ctx, wire.DeviceKey(d))
	if err != nil || !doc.found {
		return doc, err
	}
	e, err := wire.ParseFrame(doc.frame)
	if err == nil {
		// The age of a key that signed is no matter: what it signed in its time stays in force.
		doc.assignment, _, err = taken(e, d, r, time.Time{})
	}
	if err == nil {
		return doc, nil
	}
	doc.assignment = score.Assignment{}
	if !anew {
		return doc, fmt.Errorf("what is published for it now is nothing that may be signed again, devices do not take it any more (%w): publish everything that it should be at once, with --anew", err)
	}
	if st, _, err := e.Peek(); err == nil {
		doc.assignment.Metadata.Generation = plausible(0, st.Generation)
	}
	return doc, nil
}
