package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// maxDSSE is the largest file that is read: base64 makes four bytes of three.
const maxDSSE = 2 * MaxEnvelope

// dsseFile is the form of github.com/secure-systems-lab/dsse, with the statement as what is signed and the payload of
// the statement beside it. Readers of the standard ignore what they do not know.
type dsseFile struct {
	PayloadType string          `json:"payloadType"`
	Payload     []byte          `json:"payload"`
	Signatures  []dsseSignature `json:"signatures"`
	Document    []byte          `json:"document,omitempty"`
}

type dsseSignature struct {
	KeyID string `json:"keyid"`
	Sig   []byte `json:"sig"`
}

// DSSE writes the envelope as a JSON file. The payload goes with it if there is one; a file in git may leave it out,
// because the document that it was made of is there too.
func (e Envelope) DSSE() ([]byte, error) {
	if r := e.check(); r != nil {
		return nil, fmt.Errorf("cannot write a DSSE file: %w", r)
	}
	f := dsseFile{PayloadType: StatementType, Payload: e.Statement, Signatures: []dsseSignature{}, Document: e.Payload}
	for _, s := range e.Signatures {
		f.Signatures = append(f.Signatures, dsseSignature{s.KeyID.String(), s.Sig[:]})
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot write a DSSE file: %w", err)
	}
	return append(b, '\n'), nil
}

// ParseDSSE reads a file that [Envelope.DSSE] wrote. Nothing is verified. Every error is a [*Refusal].
func ParseDSSE(b []byte) (Envelope, error) {
	if len(b) > maxDSSE {
		return Envelope{}, refuse(CodeTooLarge, "a DSSE file of %d bytes, at most %d are read", len(b), maxDSSE)
	}
	var f dsseFile
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&f); err != nil {
		return Envelope{}, refuse(CodeMalformed, "not a DSSE file: %v", err)
	}
	if rest := bytes.TrimSpace(b[d.InputOffset():]); len(rest) > 0 {
		return Envelope{}, refuse(CodeMalformed, "%d bytes follow the DSSE file", len(rest))
	}
	if f.PayloadType != StatementType {
		return Envelope{}, refuse(CodeUnsupportedVersion, "a DSSE file of type %q, this program reads %q", f.PayloadType, StatementType)
	}
	e := Envelope{Statement: f.Payload, Payload: f.Document}
	for i, s := range f.Signatures {
		if i == MaxSignatures {
			return Envelope{}, refuse(CodeTooLarge, "%d signatures, at most %d are read", len(f.Signatures), MaxSignatures)
		}
		id, err := hex.DecodeString(s.KeyID)
		if err != nil || len(id) != len(KeyID{}) || len(s.Sig) != len(Signature{}.Sig) {
			return Envelope{}, refuse(CodeMalformed, "signature %d has no key id of 8 bytes in hex or is not 64 bytes long", i+1)
		}
		e.Signatures = append(e.Signatures, Signature{KeyID(id), [64]byte(s.Sig)})
	}
	if r := e.check(); r != nil {
		return Envelope{}, r
	}
	return e, nil
}
