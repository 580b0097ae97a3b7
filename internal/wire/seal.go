package wire

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"time"
)

// Seal makes the frame of a payload. It fills in the statement's Digest, Size and RawSize. With [EncodingGzip] the
// payload is compressed, unless that makes it longer.
func Seal(st Statement, payload []byte, signers ...Signer) ([]byte, error) {
	if len(signers) == 0 {
		return nil, fmt.Errorf("cannot seal the %s document for %q: nobody signs it", st.Kind, st.Audience)
	}
	e, err := SealEnvelope(st, payload, signers...)
	if err != nil {
		return nil, err
	}
	return e.Frame()
}

// SealEnvelope is [Seal] without putting the parts together. Others may sign what comes back, so that nobody needs to here.
func SealEnvelope(st Statement, payload []byte, signers ...Signer) (Envelope, error) {
	fail := func(err error) (Envelope, error) {
		return Envelope{}, fmt.Errorf("cannot seal the %s document for %q: %w", st.Kind, st.Audience, err)
	}
	if st.Kind == "" || st.Audience == "" || st.Generation == 0 {
		return fail(fmt.Errorf("kind, audience and generation are needed"))
	}
	if len(payload) > MaxOpened {
		return fail(refuse(CodeTooLarge, "%d bytes, at most %d may be sent", len(payload), MaxOpened))
	}
	carried := payload
	switch st.Encoding {
	case EncodingNone:
	case EncodingGzip:
		if c := compress(payload); len(c) < len(payload) {
			carried = c
		} else {
			st.Encoding = EncodingNone
		}
	default:
		return fail(fmt.Errorf("no encoding %q", st.Encoding))
	}
	if len(carried) > MaxPayload {
		return fail(refuse(CodeTooLarge, "%d bytes as carried, at most %d may be sent: move large content to an artifact", len(carried), MaxPayload))
	}
	digest := sha256.Sum256(carried)
	st.Digest, st.Size, st.RawSize = digest[:], uint64(len(carried)), uint64(len(payload))
	b, err := encode(&st)
	if err != nil {
		return fail(err)
	}
	e := Envelope{Statement: b, Payload: carried}
	for _, s := range signers {
		if err := e.Sign(s); err != nil {
			return fail(err)
		}
	}
	return e, nil
}

// Sign adds the signature of s. It does not look at what the statement says.
func (e *Envelope) Sign(s Signer) error {
	public, err := s.PublicKey()
	if err != nil {
		return fmt.Errorf("cannot read the public key: %w", err)
	}
	id, err := keyIDOf(public)
	if err != nil {
		return err
	}
	sig, err := s.Sign(preAuth(e.Statement))
	if err != nil {
		return fmt.Errorf("cannot sign with key %s: %w", id, err)
	}
	if len(sig) != len(Signature{}.Sig) {
		return fmt.Errorf("cannot sign with key %s: a signature of %d bytes", id, len(sig))
	}
	e.Signatures = append(e.Signatures, Signature{id, [64]byte(sig)})
	if r := e.check(); r != nil {
		return r
	}
	return nil
}

// Expect is what a receiver is ready to accept.
type Expect struct {
	Kind       Kind
	Audience   string
	Now        time.Time // zero when the clock cannot be trusted: then age is no reason to refuse
	Signatures int       // how many keys must have signed; 0 means 1
	Since      uint64    // version of the trust root under which it must have been signed at least
}

// Verified is a statement that was signed by keys which may, for this receiver, with its payload as carried. It points
// into the bytes that were verified.
type Verified struct {
	Statement Statement
	By        []string // public keys of who signed, of those that may
	payload   []byte
}

// Verify checks a frame. In this order: size, frame, signatures over the bytes as they came, and only then the
// statement, its purpose, audience, epoch and age, and the payload's size and digest. The payload is not opened.
// Every error is a [*Refusal].
//
// It does not know what was accepted before: whether a generation may follow another is for who keeps the books.
func Verify(b []byte, keys KeySet, want Expect) (Verified, error) {
	e, r := parseFrame(b)
	if r != nil {
		return Verified{}, r
	}
	return e.Verify(keys, want)
}

// Verify is [Verify] for an envelope that came as a file.
func (e Envelope) Verify(keys KeySet, want Expect) (Verified, error) {
	if r := e.check(); r != nil {
		return Verified{}, r
	}
	need := max(want.Signatures, 1)
	by, why, r := keys.signedBy(want.Kind, preAuth(e.Statement), e.Signatures, want.Now)
	switch {
	case r != nil:
		return Verified{}, r
	case len(by) < need && why != nil:
		return Verified{}, why
	case len(by) < need && len(by) > 0:
		return Verified{}, refuse(CodeTooFewSignatures, "signed by %d of the keys that may sign %s documents, %d needed", len(by), want.Kind, need)
	case len(by) < need:
		return Verified{}, refuse(CodeUntrusted, "signed by %d of the keys that may sign %s documents, %d needed", len(by), want.Kind, need)
	}
	st, err := decode[Statement](e.Statement, MaxStatement)
	if err != nil {
		return Verified{}, err
	}
	switch {
	case st.Kind != want.Kind:
		r = refuse(CodeWrongPurpose, "a %q document, %q was expected", st.Kind, want.Kind)
	case st.Audience != want.Audience:
		r = refuse(CodeWrongAudience, "a document for %q, this is %q", st.Audience, want.Audience)
	case keys.epoch != 0 && st.Epoch > keys.epoch:
		r = refuse(CodeUnknownEpoch, "signed under trust root %d, known is %d", st.Epoch, keys.epoch)
	case st.Epoch < want.Since:
		r = refuse(CodeOldEpoch, "signed under trust root %d, and what was signed before version %d counts no more", st.Epoch, want.Since)
	case st.Generation == 0:
		r = refuse(CodeMalformed, "no generation")
	case st.Encoding != EncodingNone && st.Encoding != EncodingGzip:
		r = refuse(CodeUnsupportedVersion, "payload encoding %q: update this program", st.Encoding)
	case st.RawSize > MaxOpened:
		r = refuse(CodeTooLarge, "a payload of %d bytes, at most %d are opened", st.RawSize, MaxOpened)
	case st.Size != uint64(len(e.Payload)), st.Encoding == EncodingNone && st.RawSize != st.Size:
		r = refuse(CodeSizeMismatch, "a payload of %d bytes, the statement says %d (opened: %d)", len(e.Payload), st.Size, st.RawSize)
	default:
		r = st.valid(want.Now)
	}
	if r != nil {
		return Verified{}, r
	}
	if sum := sha256.Sum256(e.Payload); !bytes.Equal(sum[:], st.Digest) {
		return Verified{}, refuse(CodeDigestMismatch, "the payload is not the one that was signed")
	}
	return Verified{st, by, e.Payload}, nil
}

// Open gives the payload, decompressed to exactly the size that was signed. An error is a [*Refusal].
func (v Verified) Open() ([]byte, error) {
	if v.Statement.Encoding == EncodingNone {
		return v.payload, nil
	}
	bad := func() ([]byte, error) {
		return nil, refuse(CodeSizeMismatch, "the payload does not open to the %d bytes that were signed", v.Statement.RawSize)
	}
	carried := bytes.NewReader(v.payload)
	z, err := gzip.NewReader(carried)
	if err != nil {
		return bad()
	}
	z.Multistream(false)
	opened := make([]byte, v.Statement.RawSize)
	if _, err := io.ReadFull(z, opened); err != nil {
		return bad()
	}
	// The end, with its checksum, must be here, and nothing after it.
	if n, err := z.Read(make([]byte, 1)); n != 0 || err != io.EOF || carried.Len() != 0 {
		return bad()
	}
	return opened, nil
}

// Peek reads a frame that nobody vouches for: no signature, audience or age is checked. It is for showing what is stored
// and for hints; nothing that somebody might do may depend on it. Every error is a [*Refusal].
func Peek(b []byte) (Statement, []byte, error) {
	e, r := parseFrame(b)
	if r != nil {
		return Statement{}, nil, r
	}
	return e.Peek()
}

// Peek is [Peek] for an envelope that came as a file. It is also how one is read after it was verified.
func (e Envelope) Peek() (Statement, []byte, error) {
	st, err := decode[Statement](e.Statement, MaxStatement)
	if err != nil {
		return Statement{}, nil, err
	}
	if st.RawSize > MaxOpened {
		return Statement{}, nil, refuse(CodeTooLarge, "a payload of %d bytes, at most %d are opened", st.RawSize, MaxOpened)
	}
	payload, err := Verified{Statement: st, payload: e.Payload}.Open()
	return st, payload, err
}

// compress cannot fail: it writes to memory.
func compress(b []byte) []byte {
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(b)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic("wire: " + err.Error())
	}
	return buf.Bytes()
}

// UnixSeconds gives t as statements carry it. Times before 1970 are 0.
func UnixSeconds(t time.Time) uint64 { return uint64(min(max(t.Unix(), 0), math.MaxInt64)) }
