package trust

import (
	"fmt"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/score"
)

// Media is the media type of a root in its statement.
const Media = "application/vnd.continuo.root.v1+json"

// maxRoot is the most bytes of a root when opened: some hundred keys.
const maxRoot = 256 << 10

// First reads the version that a device begins with, from a file or from an envelope. Its owner vouches for it by putting
// it there, so that only its own root keys must have signed it. Every error is a [*wire.Refusal].
func First(e wire.Envelope) (Root, error) {
	r, err := read(e)
	if err != nil {
		return Root{}, err
	}
	return r, r.signed(e)
}

// Next reads the version that follows r. Enough root keys of r must have signed it, and enough of its own: whoever hands
// the keys over shows that the new ones are there. Every error is a [*wire.Refusal].
func (r Root) Next(e wire.Envelope) (Root, error) {
	// Before anything is read of what may come from anybody.
	if err := r.signed(e); err != nil {
		return Root{}, err
	}
	next, err := read(e)
	if err != nil {
		return Root{}, err
	}
	switch {
	case next.Metadata.Version != r.Metadata.Version+1:
		return Root{}, refuse(wire.CodeRegressed, "version %d of the trust root does not follow version %d", next.Metadata.Version, r.Metadata.Version)
	case next.Metadata.Name != r.Metadata.Name:
		return Root{}, refuse(wire.CodeWrongAudience, "a trust root of fleet %q, this is %q", next.Metadata.Name, r.Metadata.Name)
	}
	return next, next.signed(e)
}

// signed checks that enough root keys of by signed e.
func (by Root) signed(e wire.Envelope) error {
	keys, err := by.keySet(RoleRoot)
	if err != nil {
		return err
	}
	_, err = e.Verify(keys, wire.Expect{Kind: wire.KindRoot, Audience: wire.AudienceFleet, Signatures: by.Spec.Required.Root})
	return err
}

// read opens a root that somebody vouches for.
func read(e wire.Envelope) (Root, error) {
	st, payload, err := e.Peek()
	if err != nil {
		return Root{}, err
	}
	switch {
	case st.Media != Media:
		return Root{}, refuse(wire.CodeUnsupportedVersion, "a trust root of type %q, this program reads %q", st.Media, Media)
	case len(payload) > maxRoot:
		return Root{}, refuse(wire.CodeTooLarge, "a trust root of %d bytes, at most %d are read", len(payload), maxRoot)
	}
	var r Root
	if err := score.Decode(payload, &r); err != nil {
		return Root{}, refuse(wire.CodeUnsupportedVersion, "the trust root cannot be read, a newer program wrote it: %v; update this one", err)
	}
	if ps := r.Validate(); len(ps) > 0 {
		return Root{}, refuse(wire.CodeMalformed, "the trust root is not sound: %s", ps[0])
	}
	if r.Metadata.Version != st.Generation {
		return Root{}, refuse(wire.CodeMalformed, "the trust root says version %d, and its statement %d", r.Metadata.Version, st.Generation)
	}
	return r, nil
}

// Seal writes r for its root keys to sign. More of them can sign the envelope later.
func (r Root) Seal(issued uint64, signers ...wire.Signer) (wire.Envelope, error) {
	if ps := r.Validate(); len(ps) > 0 {
		return wire.Envelope{}, fmt.Errorf("cannot sign the trust root: %s", ps[0])
	}
	payload, err := score.Encode(r)
	if err != nil {
		return wire.Envelope{}, fmt.Errorf("cannot sign the trust root: %w", err)
	}
	st := wire.Statement{Kind: wire.KindRoot, Audience: wire.AudienceFleet, Name: r.Metadata.Name, Generation: r.Metadata.Version, Issued: issued, Media: Media}
	return wire.SealEnvelope(st, payload, signers...)
}

func refuse(c wire.Code, format string, args ...any) *wire.Refusal {
	return &wire.Refusal{Code: c, Detail: fmt.Sprintf(format, args...)}
}

// Peek reads a root that nobody vouches for, to show it or to sign it. Every error is a [*wire.Refusal].
func Peek(e wire.Envelope) (Root, error) { return read(e) }
