package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// The buckets and streams of the control account.
const (
	BucketDesired = "desired"
	BucketAlive   = "alive"
	BucketControl = "ctl"
	BucketBlobs   = "blobs" // an object store: large contents, each under its sha256

	StreamDesired = "KV_" + BucketDesired
	StreamActual  = "ACTUAL"
	StreamJournal = "JOURNAL"
	StreamAudit   = "AUDIT"
	StreamAlive   = "KV_" + BucketAlive
	StreamControl = "KV_" + BucketControl
	StreamBlobs   = "OBJ_" + BucketBlobs
)

// HeaderGeneration and HeaderDigest are hints that ride beside an envelope, so that a listener can tell news from old
// without opening it. They are not signed; nothing may be decided by them but whether to look.
const (
	HeaderGeneration = "Continuo-Gen"
	HeaderDigest     = "Continuo-Digest"
)

// First tokens of the device view. It is the same with and without accounts, so the agent has one code path.
const (
	prefixConfig      = "cfg."   // sub: pushed envelopes
	prefixFetch       = "get."   // request: the envelope under a key
	prefixStatus      = "st."    // request: write the own status
	prefixStatusFetch = "getst." // request: read the own status back
	prefixHeartbeat   = "hb."    // request: heartbeat, answered by a control envelope
	prefixJournal     = "ev."    // request: write a journal entry
	prefixInfo        = "info."  // request: write the own device info
	prefixAudit       = "audit." // request: add entries to the own audit
	prefixRequest     = "ask."   // request: write the own requests for approval
	prefixRenew       = "renew." // request: renew the own credential
	prefixInbox       = "_INBOX."
)

// First tokens of the control view.
const (
	prefixKV        = "$KV."
	prefixDesired   = prefixKV + BucketDesired + "."
	prefixActual    = "actual."
	prefixAPI       = "$JS.API."
	prefixDirectGet = prefixAPI + "DIRECT.GET."

	prefixObject    = "$O." + BucketBlobs + "."
	prefixBlobChunk = prefixObject + "C."
	prefixBlobInfo  = prefixObject + "M."
)

// First tokens of the keys of the desired bucket.
const (
	keyDevice   = "d."
	keyClass    = "c."
	keyApproval = "a."
	keyRoot     = "t.root."
)

// keyBlob is the first token after prefixFetch of what is not in the desired bucket.
const keyBlob = "b."

// A Key is a key of the desired bucket: what one document is stored under.
type Key string

// DeviceKey is the key of d's own document.
func DeviceKey(d Device) Key { d.mustCheck(); return Key(keyDevice + d.String()) }

// ApprovalKey is the key of the approvals for d.
func ApprovalKey(d Device) Key { d.mustCheck(); return Key(keyApproval + d.String()) }

// RootKey is the key of version n of the trust root. Every version keeps its own key.
func RootKey(n uint64) Key { return Key(keyRoot + strconv.FormatUint(n, 10)) }

// ClassKey is the key of a class manifest. The name must have passed [CheckClass].
func ClassKey(class string) Key {
	if err := CheckClass(class); err != nil {
		panic("wire: class was not checked: " + err.Error())
	}
	return Key(keyClass + class)
}

// Device view.

// ConfigSubject is where the envelope under k is pushed to.
func ConfigSubject(k Key) string { return prefixConfig + string(k) }

// FetchSubject is where a device asks for the envelope under k. The request has no body.
func FetchSubject(k Key) string { return prefixFetch + string(k) }

// StatusSubject is where d writes its status.
func StatusSubject(d Device) string { return deviceSubject(prefixStatus, d) }

// StatusFetchSubject is where d reads its last status back.
func StatusFetchSubject(d Device) string { return deviceSubject(prefixStatusFetch, d) }

// HeartbeatSubject is where d sends heartbeats.
func HeartbeatSubject(d Device) string { return deviceSubject(prefixHeartbeat, d) }

// JournalSubject is where d writes journal entries.
func JournalSubject(d Device) string { return deviceSubject(prefixJournal, d) }

// InfoSubject is where d writes what it says it is. The control side has it under the same name.
func InfoSubject(d Device) string { return deviceSubject(prefixInfo, d) }

// AuditSubject is where d adds entries to its audit. The control side has it under the same name.
func AuditSubject(d Device) string { return deviceSubject(prefixAudit, d) }

// RenewSubject is where d asks for a new credential.
func RenewSubject(d Device) string { return deviceSubject(prefixRenew, d) }

// InboxPrefix is what the agent of d must set as its custom inbox prefix; it may subscribe to no other inbox.
func InboxPrefix(d Device) string { return deviceSubject(prefixInbox, d) }

// Control view.

// DesiredSubject is what a publisher writes k to.
func DesiredSubject(k Key) string { return prefixDesired + string(k) }

// DesiredGetSubject is the direct get of k.
func DesiredGetSubject(k Key) string {
	return prefixDirectGet + StreamDesired + "." + DesiredSubject(k)
}

// ActualSubject is what d's status is stored under.
func ActualSubject(d Device) string { return deviceSubject(prefixActual, d) }

// ActualGetSubject is the direct get of d's status.
func ActualGetSubject(d Device) string {
	return prefixDirectGet + StreamActual + "." + ActualSubject(d)
}

// AliveKey is d's key in the alive bucket.
func AliveKey(d Device) string { return deviceSubject("", d) }

// Subjects that the control side listens on for every device.
const (
	AllHeartbeats = prefixHeartbeat + anyDevice
	AllRenewals   = prefixRenew + anyDevice
	AllActual     = prefixActual + anyDevice
	AllJournal    = prefixJournal + anyDevice
	AllInfo       = prefixInfo + anyDevice
	AllAudit      = prefixAudit + anyDevice
	AllRequests   = prefixRequest + anyDevice
	AllConfig     = prefixConfig + ">"
	AllRoots      = prefixConfig + keyRoot + "*" // where a device hears of trust roots

	anyDevice = "*.*"
)

func deviceSubject(prefix string, d Device) string { d.mustCheck(); return prefix + d.String() }

// DeviceOf gives the device whose subject this is, of the device view or the control view: its last two tokens. It
// refuses a subject of any other form, such as a class's.
func DeviceOf(subject string) (Device, error) {
	for _, prefix := range []string{
		prefixStatus, prefixStatusFetch, prefixHeartbeat, prefixJournal, prefixInfo, prefixAudit, prefixRequest, prefixRenew, prefixActual,
		prefixKV + BucketAlive + ".", prefixDesired + keyDevice, prefixDesired + keyApproval,
		prefixConfig + keyDevice, prefixConfig + keyApproval,
	} {
		if rest, ok := strings.CutPrefix(subject, prefix); ok && strings.Count(rest, ".") == 1 {
			return ParseDevice(rest)
		}
	}
	return Device{}, fmt.Errorf("cannot read a device from subject %q", subject)
}

// A Target says what a key holds: a document for a device, a class, an approval for a device, or a trust root.
type Target struct {
	Kind   Kind
	Device Device // of KindDevice and KindApproval
	Class  string // of KindClass
	Root   uint64 // of KindRoot
}

// Target takes a key apart. It refuses every key that the functions above do not make.
func (k Key) Target() (Target, error) {
	s := string(k)
	bad := func(err error) (Target, error) {
		if err != nil {
			return Target{}, fmt.Errorf("cannot read key %q: %w", s, err)
		}
		return Target{}, fmt.Errorf("cannot read key %q: no such form", s)
	}
	if rest, ok := strings.CutPrefix(s, keyRoot); ok {
		n, err := strconv.ParseUint(rest, 10, 64)
		if err != nil || string(RootKey(n)) != s {
			return bad(nil)
		}
		return Target{Kind: KindRoot, Root: n}, nil
	}
	if rest, ok := strings.CutPrefix(s, keyClass); ok {
		if err := CheckClass(rest); err != nil {
			return bad(err)
		}
		return Target{Kind: KindClass, Class: rest}, nil
	}
	kind := KindDevice
	rest, ok := strings.CutPrefix(s, keyDevice)
	if !ok {
		kind = KindApproval
		rest, ok = strings.CutPrefix(s, keyApproval)
	}
	if !ok || !strings.Contains(rest, ".") {
		return bad(nil)
	}
	d, err := ParseDevice(rest)
	if err != nil {
		return bad(err)
	}
	return Target{Kind: kind, Device: d}, nil
}
