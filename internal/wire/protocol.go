package wire

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ProtocolVersion is the major version of the heartbeat and of its answer.
const ProtocolVersion = 1

// MaxHeartbeat is the most bytes a heartbeat ever has, whatever the device carries.
const MaxHeartbeat = 1 << 10

const (
	maxControl  = 16 << 10 // bytes of a control envelope
	maxClasses  = 32       // class generations in one
	maxWord     = 32       // bytes of a machine word in a heartbeat
	maxIdentity = 64       // bytes of a version, build, boot or instance
)

// MediaControl is the media type of a control envelope in its statement.
const MediaControl = "application/vnd.continuo.control.v1+msgpack"

// A Heartbeat is what a device says regularly. It is constant in size: what needs lists is in the status. Texts are
// cut to 64 bytes (versions and ids) and 32 bytes (words) when they are written.
type Heartbeat struct {
	Version    uint64 `msgpack:"v"`                 // ProtocolVersion; filled in by Encode
	Agent      string `msgpack:"agent"`             // version of the agent
	Build      string `msgpack:"build"`             // build id of the agent
	Boot       string `msgpack:"boot"`              // boot id of the machine
	Instance   string `msgpack:"instance"`          // made when the agent starts: tells two agents of one identity apart
	Nonce      []byte `msgpack:"nonce,omitempty"`   // up to 16 bytes, fresh in every heartbeat, echoed in the answer
	Generation uint64 `msgpack:"gen,omitempty"`     // of the device document that is accepted; 0 means none
	Digest     []byte `msgpack:"digest,omitempty"`  // effective digest: SHA-256 over what is accepted
	Outcome    string `msgpack:"outcome,omitempty"` // fold of all outcomes
	Health     string `msgpack:"health,omitempty"`  // of what is managed
	Ledger     string `msgpack:"ledger,omitempty"`  // condition of the ledger; "" means good
	Store      string `msgpack:"store,omitempty"`   // condition of the state directory; "" means good
	Pending    uint32 `msgpack:"pending,omitempty"` // decisions that wait for a person
	Uptime     uint64 `msgpack:"uptime,omitempty"`  // seconds since the agent started
	Serial     string `msgpack:"serial,omitempty"`  // of the board; empty if it has none
}

// Encode writes the heartbeat.
func (h Heartbeat) Encode() ([]byte, error) {
	if len(h.Nonce) > 16 || len(h.Digest) > 32 {
		return nil, fmt.Errorf("cannot encode a heartbeat: a nonce has up to 16 bytes and a digest 32")
	}
	h.Version = ProtocolVersion
	for _, s := range []*string{&h.Agent, &h.Build, &h.Boot, &h.Instance, &h.Serial} {
		*s = cut(*s, maxIdentity)
	}
	for _, s := range []*string{&h.Outcome, &h.Health, &h.Ledger, &h.Store} {
		*s = cut(*s, maxWord)
	}
	return encode(&h)
}

// DecodeHeartbeat reads what a device sent. Every error is a [*Refusal].
func DecodeHeartbeat(b []byte) (Heartbeat, error) {
	h, err := decode[Heartbeat](b, MaxHeartbeat)
	if err != nil {
		return Heartbeat{}, err
	}
	if h.Version != ProtocolVersion {
		return Heartbeat{}, refuse(CodeUnsupportedVersion, "heartbeat version %d, this program reads %d", h.Version, ProtocolVersion)
	}
	return h, nil
}

// A ControlEnvelope is the answer to a heartbeat. It travels as the payload of an envelope of [KindHeartbeat]. It is a
// hint and a proof of freshness; nothing in it is an authority.
type ControlEnvelope struct {
	Version    uint64      `msgpack:"v"`                   // ProtocolVersion; filled in by SealControl
	Nonce      []byte      `msgpack:"nonce,omitempty"`     // of the heartbeat
	Now        uint64      `msgpack:"now"`                 // Unix seconds at the control service
	Generation uint64      `msgpack:"gen,omitempty"`       // of the device document; 0 means that there is none
	Digest     []byte      `msgpack:"digest,omitempty"`    // SHA-256 of that document as carried
	Size       uint64      `msgpack:"size,omitempty"`      // bytes of it as carried
	Interval   uint32      `msgpack:"interval,omitempty"`  // seconds between heartbeats; see HeartbeatBound
	Poll       uint32      `msgpack:"poll,omitempty"`      // seconds between polls; see PollBound
	Reconnect  uint32      `msgpack:"reconnect,omitempty"` // seconds to spread reconnects over; see ReconnectBound
	Blocked    bool        `msgpack:"blocked,omitempty"`   // an operator holds this device: change nothing
	Approvals  uint32      `msgpack:"approvals,omitempty"` // operations that wait to be fetched or answered
	Operation  uint64      `msgpack:"agen,omitempty"`      // generation of the last of them; 0 means unknown
	Classes    Generations `msgpack:"classes,omitempty"`   // generations of the followed class manifests
	Conflict   string      `msgpack:"conflict,omitempty"`  // others report as this device: see ConflictOther; an unknown word counts as ConflictHold
}

// Words of [ControlEnvelope.Conflict].
const (
	// ConflictOther is for the agent that goes on: another one reports under its name, and is told to hold.
	ConflictOther = "other"
	// ConflictHold is for an agent that has to observe and report, and to change nothing: it is not the device that was
	// enrolled, or nobody can say which of two is.
	ConflictHold = "hold"
)

// SealControl signs the answer to a heartbeat of d.
func SealControl(c ControlEnvelope, d Device, signer Signer) ([]byte, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	if len(c.Classes) > maxClasses {
		return nil, fmt.Errorf("cannot seal a control envelope for %s: %d classes, at most %d", d, len(c.Classes), maxClasses)
	}
	c.Version = ProtocolVersion
	b, err := encode(&c)
	if err != nil {
		return nil, err
	}
	// Freshness comes from the nonce; the time is the generation, because a statement has to have one.
	st := Statement{Kind: KindHeartbeat, Audience: d.String(), Generation: max(c.Now, 1), Issued: c.Now, Media: MediaControl}
	return Seal(st, b, signer)
}

// OpenControl verifies the answer to d's heartbeat with this nonce. Every error is a [*Refusal]. The time in the answer
// is the one that a device without a clock may learn, so no clock is asked.
func OpenControl(b []byte, keys KeySet, d Device, nonce []byte) (ControlEnvelope, error) {
	v, err := Verify(b, keys, Expect{Kind: KindHeartbeat, Audience: d.String()})
	if err != nil {
		return ControlEnvelope{}, err
	}
	if v.Statement.Media != MediaControl {
		return ControlEnvelope{}, refuse(CodeUnsupportedVersion, "an answer of type %q, this program reads %q", v.Statement.Media, MediaControl)
	}
	payload, err := v.Open()
	if err != nil {
		return ControlEnvelope{}, err
	}
	c, err := decode[ControlEnvelope](payload, maxControl)
	if err != nil {
		return ControlEnvelope{}, err
	}
	if c.Version != ProtocolVersion {
		return ControlEnvelope{}, refuse(CodeUnsupportedVersion, "control envelope version %d, this program reads %d", c.Version, ProtocolVersion)
	}
	if !slices.Equal(c.Nonce, nonce) {
		return ControlEnvelope{}, refuse(CodeWrongAudience, "the answer to another heartbeat")
	}
	return c, nil
}

// An Announcement is what the headers of a pushed message hint at. Nothing of it is verified.
type Announcement struct {
	Key        Key
	Generation uint64 // 0 when the header is missing or no number
	Digest     string // hex SHA-256 of the payload as carried, as the publisher said
	Deleted    bool   // the key was deleted or purged: no intent is known, which never means "remove"
}

// ParseAnnouncement reads a message that came on a config subject. ok is false for any other subject.
func ParseAnnouncement(subject string, header map[string][]string) (a Announcement, ok bool) {
	key, ok := strings.CutPrefix(subject, prefixConfig)
	if !ok {
		return a, false
	}
	if _, err := Key(key).Target(); err != nil {
		return a, false
	}
	a.Key = Key(key)
	a.Generation, a.Digest, a.Deleted = AnnouncedGeneration(header), first(header, HeaderDigest), Deleted(header)
	return a, true
}

// AnnouncedGeneration is the generation that rides beside a document; 0 when the header is missing or no number.
func AnnouncedGeneration(header map[string][]string) uint64 {
	n, _ := strconv.ParseUint(first(header, HeaderGeneration), 10, 64)
	return n
}

// Deleted reports whether a message of a bucket says that its key was deleted or purged, or has expired.
func Deleted(header map[string][]string) bool {
	op := first(header, "KV-Operation")
	return op == "DEL" || op == "PURGE" || first(header, "Nats-Marker-Reason") != ""
}

// Announce gives the headers that a publisher sets beside an envelope.
func Announce(v Statement) map[string][]string {
	return map[string][]string{
		HeaderGeneration: {strconv.FormatUint(v.Generation, 10)},
		HeaderDigest:     {fmt.Sprintf("%x", v.Digest)},
	}
}

func first(header map[string][]string, name string) string {
	if values := header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// cut shortens s to at most n bytes, between characters, and drops what is not UTF-8.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func wireName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
	if name == "" {
		panic("wire: field " + f.Name + " has no name on the wire")
	}
	return name
}

// Time is Now.
func (c ControlEnvelope) Time() time.Time { return time.Unix(int64(min(c.Now, 1<<40)), 0).UTC() }
