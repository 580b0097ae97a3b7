package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
)

// Caps on what is read. They hold before anything is allocated by a number that came from outside.
const (
	MaxStatement  = 4 << 10   // bytes of a statement
	MaxSignatures = 8         // on one statement
	MaxPayload    = 256 << 10 // bytes of a payload as carried
	MaxOpened     = 4 << 20   // bytes of a payload when opened

	MaxEnvelope = len(magic) + 2 + MaxStatement + 1 + MaxSignatures*signatureSize + MaxPayload

	signatureSize = 8 + 64
)

const (
	family = "CTO"        // every version starts with it
	magic  = family + "1" // and its major
)

// StatementType is bound into every signature.
const StatementType = "application/vnd.continuo.statement.v1+msgpack"

// A Signature is one key's signature over a statement.
type Signature struct {
	KeyID KeyID
	Sig   [64]byte
}

// An Envelope is a signed statement and its payload, taken apart and not verified. Statement is kept as the bytes that
// were signed, so that fields which this version does not know stay what they were in either form.
//
// On the wire it is a frame:
//
//	"CTO1" | u16 length | statement | u8 count | count × ( key id [8] | signature [64] ) | payload
//
// Integers are big-endian. In files it is a DSSE document; the signatures are the same.
type Envelope struct {
	Statement  []byte
	Signatures []Signature
	Payload    []byte
}

// ParseFrame takes a frame apart. The parts point into b.
func ParseFrame(b []byte) (Envelope, error) {
	e, r := parseFrame(b)
	if r != nil {
		return Envelope{}, r
	}
	return e, nil
}

func parseFrame(b []byte) (Envelope, *Refusal) {
	short := func(what string) (Envelope, *Refusal) {
		return Envelope{}, refuse(CodeMalformed, "the envelope of %d bytes ends in its %s", len(b), what)
	}
	if len(b) > MaxEnvelope {
		return Envelope{}, refuse(CodeTooLarge, "an envelope of %d bytes, at most %d are read", len(b), MaxEnvelope)
	}
	if len(b) < len(magic) {
		return short("magic")
	}
	if got := string(b[:len(magic)]); got != magic {
		if got[:len(family)] == family {
			return Envelope{}, refuse(CodeUnsupportedVersion, "envelope version %q, this program reads %q: update it", got, magic)
		}
		return Envelope{}, refuse(CodeMalformed, "not an envelope")
	}
	rest := b[len(magic):]
	if len(rest) < 2 {
		return short("statement length")
	}
	n := int(binary.BigEndian.Uint16(rest))
	rest = rest[2:]
	if n > MaxStatement {
		return Envelope{}, refuse(CodeTooLarge, "a statement of %d bytes, at most %d are read", n, MaxStatement)
	}
	if len(rest) < n+1 {
		return short("statement")
	}
	e := Envelope{Statement: rest[:n:n]}
	count := int(rest[n])
	rest = rest[n+1:]
	if count > MaxSignatures {
		return Envelope{}, refuse(CodeTooLarge, "%d signatures, at most %d are read", count, MaxSignatures)
	}
	if len(rest) < count*signatureSize {
		return short("signatures")
	}
	e.Signatures = make([]Signature, count)
	for i := range e.Signatures {
		copy(e.Signatures[i].KeyID[:], rest[:8])
		copy(e.Signatures[i].Sig[:], rest[8:signatureSize])
		rest = rest[signatureSize:]
	}
	e.Payload = rest[:len(rest):len(rest)]
	return e, e.check()
}

// check holds for both forms.
func (e Envelope) check() *Refusal {
	switch {
	case len(e.Statement) > MaxStatement:
		return refuse(CodeTooLarge, "a statement of %d bytes, at most %d are read", len(e.Statement), MaxStatement)
	case len(e.Signatures) > MaxSignatures:
		return refuse(CodeTooLarge, "%d signatures, at most %d are read", len(e.Signatures), MaxSignatures)
	case len(e.Payload) > MaxPayload:
		return refuse(CodeTooLarge, "a payload of %d bytes, at most %d are read", len(e.Payload), MaxPayload)
	}
	for i, s := range e.Signatures {
		if slices.ContainsFunc(e.Signatures[:i], func(o Signature) bool { return o.KeyID == s.KeyID }) {
			return refuse(CodeMalformed, "key %s signed twice", s.KeyID)
		}
	}
	return nil
}

// Frame puts the envelope together for the wire.
func (e Envelope) Frame() ([]byte, error) {
	if r := e.check(); r != nil {
		return nil, fmt.Errorf("cannot write an envelope: %w", r)
	}
	b := make([]byte, 0, len(magic)+2+len(e.Statement)+1+len(e.Signatures)*signatureSize+len(e.Payload))
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(e.Statement)))
	b = append(b, e.Statement...)
	b = append(b, byte(len(e.Signatures)))
	for _, s := range e.Signatures {
		b = append(b, s.KeyID[:]...)
		b = append(b, s.Sig[:]...)
	}
	return append(b, e.Payload...), nil
}

// preAuth is DSSE's pre-authentication encoding: what a signature is really over. It binds the type.
func preAuth(statement []byte) []byte { return preAuthOf(StatementType, statement) }

// preAuthOf is the pre-authentication encoding of DSSE: the type is a part of what is signed.
func preAuthOf(payloadType string, payload []byte) []byte {
	b := make([]byte, 0, len(payload)+len(payloadType)+40)
	b = append(b, "DSSEv1 "...)
	b = strconv.AppendInt(b, int64(len(payloadType)), 10)
	b = append(b, ' ')
	b = append(b, payloadType...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(len(payload)), 10)
	b = append(b, ' ')
	return append(b, payload...)
}
