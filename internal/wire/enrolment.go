package wire

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nkeys"
)

// How a device comes by its credential. An operator signs an invitation, the device presents a request with the key that it
// made for itself, the operator signs a record that names this very request, and the control service answers with a
// credential for the key. What is stored on the way is signed by who it comes from: who may write to the store lets nobody
// in.

// Media types of what is signed on the way.
const (
	MediaInvitation = "application/vnd.continuo.invitation.v1+json" // by a key for approvals
	MediaRecord     = "application/vnd.continuo.device.v1+json"     // by a key for approvals: who is let in
	MediaLetIn      = "application/vnd.continuo.letin.v1+json"      // by a control key: the answer to a request

	requestType = "application/vnd.continuo.enrolment.v1+json" // by the key of the device
)

// Bounds of invitations and credentials.
const (
	MinInvitation     = time.Minute
	MaxInvitation     = 4 * time.Hour
	DefaultInvitation = 30 * time.Minute
	CredentialLife    = 90 * 24 * time.Hour

	maxRequest = 24 << 10 // bytes of a request, with the invitation in it
	maxFact    = 128      // bytes of one thing that a device says of itself
)

// Requests that are under no invitation.
const (
	// RequestRenew is presented with a credential that still counts.
	RequestRenew = "renew"
	// RequestBack is presented by a device whose credential has expired.
	RequestBack = "back"
)

// An Invitation lets one device present one request.
type Invitation struct {
	ID     string
	Device Device
	Until  time.Time
	Frame  []byte // as signed
}

// SealInvitation signs an invitation. Its Frame is filled in.
func SealInvitation(i Invitation, now time.Time, signer Signer) (Invitation, error) {
	if err := CheckInvitation(i.ID); err != nil {
		return i, err
	}
	if left := i.Until.Sub(now); left < MinInvitation || left > MaxInvitation {
		return i, fmt.Errorf("cannot invite %s for %s: at least %s and at most %s", i.Device, left, MinInvitation, MaxInvitation)
	}
	payload, err := json.Marshal(map[string]string{"invitation": i.ID})
	if err != nil {
		return i, err
	}
	st := Statement{Kind: KindApproval, Audience: i.Device.String(), Generation: UnixSeconds(now), Issued: UnixSeconds(now), NotAfter: UnixSeconds(i.Until), Media: MediaInvitation}
	i.Frame, err = Seal(st, payload, signer)
	return i, err
}

// openInvitation verifies an invitation of d. Every error is a [*Refusal].
func openInvitation(frame []byte, keys KeySet, d Device, now time.Time) (Invitation, error) {
	var body struct {
		Invitation string `json:"invitation"`
	}
	st, err := openJSON(frame, keys, Expect{Kind: KindApproval, Audience: d.String(), Now: now}, MediaInvitation, &body)
	if err != nil {
		return Invitation{}, err
	}
	return Invitation{body.Invitation, d, time.Unix(int64(st.NotAfter), 0), frame}, nil
}

// openJSON verifies a frame, and reads the JSON in it. A field that is not known is ignored: another version wrote it.
func openJSON(frame []byte, keys KeySet, e Expect, media string, into any) (Statement, error) {
	v, err := Verify(frame, keys, e)
	if err != nil {
		return Statement{}, err
	}
	if v.Statement.Media != media {
		return Statement{}, refuse(CodeWrongPurpose, "a document of type %.80q, and not %q", v.Statement.Media, media)
	}
	payload, err := v.Open()
	if err != nil {
		return Statement{}, err
	}
	if err := json.Unmarshal(payload, into); err != nil {
		return Statement{}, refuse(CodeMalformed, "not JSON of type %s: %v", media, err)
	}
	return v.Statement, nil
}

// A Request is what a device presents to get a credential.
type Request struct {
	Device     Device `json:"device"`
	ID         string `json:"id"`                   // of the invitation, or RequestRenew or RequestBack
	Key        string `json:"key"`                  // public user key, "U…"
	Nonce      []byte `json:"nonce"`                // makes one request another one than the next
	Invitation []byte `json:"invitation,omitempty"` // as signed
	Board      Board  `json:"board,omitzero"`
}

// A Board is what a device says of itself. Nobody else vouches for it: it is for a person to compare.
type Board struct {
	Serial   string `json:"serial,omitempty"`
	Model    string `json:"model,omitempty"`
	Machine  string `json:"machine,omitempty"` // machine id of its system
	Boot     string `json:"boot,omitempty"`
	Hostname string `json:"hostname,omitempty"`
	Agent    string `json:"agent,omitempty"` // version
}

type signedRequest struct {
	Request []byte `json:"request"`
	Proof   []byte `json:"proof"` // by the key in it
}

// SealRequest signs a request with its own key.
func SealRequest(r Request, key Signer) ([]byte, error) {
	for _, s := range []*string{&r.Board.Serial, &r.Board.Model, &r.Board.Machine, &r.Board.Boot, &r.Board.Hostname, &r.Board.Agent} {
		*s = cut(*s, maxFact)
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("cannot write a request: %w", err)
	}
	proof, err := key.Sign(preAuthOf(requestType, body))
	if err != nil {
		return nil, fmt.Errorf("cannot sign a request: %w", err)
	}
	return json.Marshal(signedRequest{body, proof})
}

// An OpenedRequest is one of which whoever presented it has the key.
type OpenedRequest struct {
	Request
	Digest []byte // SHA-256
}

// OpenRequest reads what came on the subject of d and id. Every error is a [*Refusal].
func OpenRequest(b []byte, d Device, id string) (OpenedRequest, error) {
	if len(b) > maxRequest {
		return OpenedRequest{}, refuse(CodeTooLarge, "a request of %d bytes, at most %d are read", len(b), maxRequest)
	}
	var s signedRequest
	var r Request
	if err := json.Unmarshal(b, &s); err != nil {
		return OpenedRequest{}, refuse(CodeMalformed, "not a request: %v", err)
	}
	if err := json.Unmarshal(s.Request, &r); err != nil {
		return OpenedRequest{}, refuse(CodeMalformed, "not a request: %v", err)
	}
	raw, err := nkeys.Decode(nkeys.PrefixByteUser, []byte(r.Key))
	if err != nil {
		return OpenedRequest{}, refuse(CodeMalformed, "the key of a request is no public user key")
	}
	if !ed25519.Verify(raw, preAuthOf(requestType, s.Request), s.Proof) {
		return OpenedRequest{}, refuse(CodeUntrusted, "the request is not signed by the key that it is for")
	}
	if r.Device != d || r.ID != id {
		return OpenedRequest{}, refuse(CodeWrongAudience, "the request is for another device or under another invitation")
	}
	for _, text := range []string{r.Board.Serial, r.Board.Model, r.Board.Machine, r.Board.Boot, r.Board.Hostname, r.Board.Agent} {
		if cut(text, maxFact) != text {
			return OpenedRequest{}, refuse(CodeMalformed, "what the device says of itself is too long")
		}
	}
	if len(r.Nonce) < 16 || len(r.Nonce) > 64 {
		return OpenedRequest{}, refuse(CodeMalformed, "a nonce of %d bytes", len(r.Nonce))
	}
	sum := sha256.Sum256(s.Request)
	return OpenedRequest{r, sum[:]}, nil
}

// Invited says until when the request is under an invitation that counts. Every error is a [*Refusal].
func (r Request) Invited(keys KeySet, now time.Time) (until time.Time, err error) {
	i, err := openInvitation(r.Invitation, keys, r.Device, now)
	if err != nil {
		return time.Time{}, err
	}
	if i.ID != r.ID {
		return time.Time{}, refuse(CodeWrongAudience, "the request is under another invitation")
	}
	return i.Until, nil
}

// A Record says which key and which board a device has, and which request was approved. The last one counts.
type Record struct {
	Generation uint64    `json:"-"` // as signed
	Device     Device    `json:"device"`
	Key        string    `json:"key"`
	Board      Board     `json:"board,omitzero"`
	Request    []byte    `json:"request"` // digest of the one that was approved
	Approved   time.Time `json:"approved"`
	Retired    bool      `json:"retired,omitempty"`
}

// SealRecord signs a record.
func SealRecord(r Record, now time.Time, signer Signer) ([]byte, error) {
	payload, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("cannot write the record of %s: %w", r.Device, err)
	}
	st := Statement{Kind: KindApproval, Audience: r.Device.String(), Generation: r.Generation, Issued: UnixSeconds(now), Media: MediaRecord}
	return Seal(st, payload, signer)
}

// OpenRecord verifies the record of d. Every error is a [*Refusal].
func OpenRecord(frame []byte, keys KeySet, d Device) (Record, error) {
	var r Record
	st, err := openJSON(frame, keys, Expect{Kind: KindApproval, Audience: d.String()}, MediaRecord, &r)
	if err != nil {
		return Record{}, err
	}
	if r.Device != d {
		return Record{}, refuse(CodeWrongAudience, "the record is of another device")
	}
	r.Generation = st.Generation
	return r, nil
}

// States of a request.
const (
	StateWaiting  = "waiting"  // an operator has to approve it
	StateApproved = "approved" // the credential is in the answer
	StateRefused  = "refused"  // for ever: the code says why
)

// A LetIn is the answer to a request.
type LetIn struct {
	Nonce      []byte `json:"nonce"` // of the request
	State      string `json:"state"`
	Code       Code   `json:"code,omitempty"`
	Message    string `json:"message,omitempty"`
	Credential string `json:"credential,omitempty"` // a JWT for the key of the request
	Back       string `json:"back,omitempty"`       // another, without an end, by which the device can only ask to be let in again
}

// SealLetIn signs an answer to d.
func SealLetIn(l LetIn, d Device, now time.Time, signer Signer) ([]byte, error) {
	payload, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("cannot answer %s: %w", d, err)
	}
	return Seal(Statement{Kind: KindHeartbeat, Audience: d.String(), Generation: UnixSeconds(now), Issued: UnixSeconds(now), Media: MediaLetIn}, payload, signer)
}

// OpenLetIn verifies the answer to d's request. Every error is a [*Refusal].
func OpenLetIn(frame []byte, keys KeySet, d Device, nonce []byte) (LetIn, error) {
	var l LetIn
	if _, err := openJSON(frame, keys, Expect{Kind: KindHeartbeat, Audience: d.String()}, MediaLetIn, &l); err != nil {
		return LetIn{}, err
	}
	if !slices.Equal(l.Nonce, nonce) {
		return LetIn{}, refuse(CodeWrongAudience, "the answer to another request")
	}
	return l, nil
}

// UserFingerprint is that of a connection key as people compare it.
func UserFingerprint(key string) (string, error) {
	raw, err := nkeys.Decode(nkeys.PrefixByteUser, []byte(key))
	if err != nil {
		return "", fmt.Errorf("cannot use %.80q as the key of a device: it is no public user key (it starts with U)", key)
	}
	sum := sha256.Sum256(sshBlob(raw))
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:]), nil
}

// What is kept in the control bucket.
const (
	prefixRecord = prefixKV + BucketControl + ".device."
	prefixAsking = prefixKV + BucketControl + ".request."

	AllRecords = prefixRecord + anyDevice
	AllAskings = prefixAsking + anyDevice + ".*"
)

// RecordSubject is where the record of d is kept.
func RecordSubject(d Device) string { return deviceSubject(prefixRecord, d) }

// AskingSubject is where a request is kept until somebody has decided about it. It is the only one there ever is.
func AskingSubject(d Device, id string) string { return enrollSubject(prefixAsking, d, id) }

var askedRule = regexp.MustCompile(`^(` + regexp.QuoteMeta(prefixEnroll) + `|` + regexp.QuoteMeta(prefixAsking) + `)([^.]+\.[^.]+)\.([^.]+)$`)

// AskedOn takes a subject of a request apart: the one that it came on, or the one that it is kept under.
func AskedOn(subject string) (d Device, id string, err error) {
	m := askedRule.FindStringSubmatch(subject)
	if m == nil {
		return d, "", fmt.Errorf("cannot read a request from subject %q", subject)
	}
	if d, err = ParseDevice(m[2]); err == nil {
		err = CheckInvitation(m[3])
	}
	return d, m[3], err
}

// RecordOf is the device whose record is kept under a subject.
func RecordOf(subject string) (Device, error) {
	rest, ok := strings.CutPrefix(subject, prefixRecord)
	if !ok || strings.Count(rest, ".") != 1 {
		return Device{}, fmt.Errorf("cannot read a device from subject %q", subject)
	}
	return ParseDevice(rest)
}
