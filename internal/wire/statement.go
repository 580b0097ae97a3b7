package wire

import (
	"time"
)

// A Kind is what a signed statement is for. A key is trusted for kinds, and a document of one kind is never taken for
// one of another.
type Kind string

const (
	KindDevice    Kind = "device"    // what one device should be
	KindClass     Kind = "class"     // a manifest that devices follow
	KindApproval  Kind = "approval"  // what a person asks of one device, or consents to: an operation
	KindRoot      Kind = "root"      // which keys are trusted
	KindHeartbeat Kind = "heartbeat" // a control envelope: the answer to a heartbeat
)

// Encodings of a payload.
const (
	EncodingNone = ""
	EncodingGzip = "gzip"
)

// A Statement is what is signed: everything a receiver must know about a payload before it touches the payload. The
// payload itself is bound by digest.
type Statement struct {
	Kind       Kind   `msgpack:"kind"`
	Audience   string `msgpack:"aud"`              // who it is for: see Target.Audience
	Name       string `msgpack:"name,omitempty"`   // what people call the document; for reports, decides nothing
	Generation uint64 `msgpack:"gen"`              // strictly increasing for an audience and kind
	Epoch      uint64 `msgpack:"epoch,omitempty"`  // version of the trust root the signer worked under
	Issued     uint64 `msgpack:"iat"`              // Unix seconds
	NotBefore  uint64 `msgpack:"nbf,omitempty"`    // Unix seconds; 0 means at once
	NotAfter   uint64 `msgpack:"exp,omitempty"`    // Unix seconds; 0 means for ever
	Digest     []byte `msgpack:"digest,omitempty"` // SHA-256 of the payload as carried
	Size       uint64 `msgpack:"size"`             // bytes of the payload as carried
	RawSize    uint64 `msgpack:"raw"`              // bytes of the payload when opened
	Encoding   string `msgpack:"enc,omitempty"`    // how it is carried
	Media      string `msgpack:"media"`            // what it is when opened
}

// Audience is who the document under a target is for: the device, the class, or the whole fleet.
func (t Target) Audience() string {
	switch t.Kind {
	case KindClass:
		return t.Class
	case KindRoot:
		return AudienceFleet
	default:
		return t.Device.String()
	}
}

// AudienceFleet is who a trust root is for. It is a reserved word, so it is no class, and it has no dot, so it is no device.
const AudienceFleet = "fleet"

// valid checks a statement against a clock. A zero time means that the clock cannot be trusted; then nothing is refused
// for its age, because a device without a clock must not drop what it should be.
func (s *Statement) valid(now time.Time) *Refusal {
	if now.IsZero() {
		return nil
	}
	t := uint64(max(now.Unix(), 0))
	if s.NotBefore > t {
		return refuse(CodeNotYetValid, "valid from %s, and it is %s", when(s.NotBefore), when(t))
	}
	if s.NotAfter != 0 && s.NotAfter <= t {
		return refuse(CodeExpired, "valid until %s, and it is %s", when(s.NotAfter), when(t))
	}
	return nil
}

func when(t uint64) string {
	const year9999 = 253402300799
	return time.Unix(int64(min(t, year9999)), 0).UTC().Format(time.RFC3339)
}
