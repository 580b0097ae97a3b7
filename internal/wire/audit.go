package wire

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/nats-io/nkeys"
)

// Limits of the audit.
const (
	// MaxAuditEntry is the most bytes of one entry.
	MaxAuditEntry = 4 << 10
	// MaxAuditMessage is the most bytes of a message: entries, one a line.
	MaxAuditMessage = 60 << 10
)

// controlSite stands where devices have their site, in the subjects of those who are none. No site can have this name.
const controlSite = "control"

// headerSignature is beside the entries of somebody who is no device.
const headerSignature = "Continuo-Signature"

// auditType is what is signed, so that the signature of an entry is never one of anything else.
const auditType = "application/vnd.continuo.audit.v1+json"

// ControlAuditSubject is where the holder of a signing key ("A…") adds entries to the audit of what it does.
func ControlAuditSubject(publicKey string) (string, error) {
	if _, err := auditKey(publicKey); err != nil {
		return "", err
	}
	return prefixAudit + controlSite + "." + publicKey, nil
}

// auditKey is a signing key that a subject can have in it: an account nkey, and no key of OpenSSH.
func auditKey(publicKey string) (ed25519.PublicKey, error) {
	raw, err := nkeys.Decode(nkeys.PrefixByteAccount, []byte(publicKey))
	if err != nil {
		return nil, fmt.Errorf("cannot use %.80q as the key of an audit: it is no public account key (it starts with A)", publicKey)
	}
	return raw, nil
}

// AllControlAudit is the audit of everybody who is no device.
const AllControlAudit = prefixAudit + controlSite + ".*"

// An AuditWriter is whose audit it is: a device, or the holder of a signing key.
type AuditWriter struct {
	Device Device // zero if it is none
	Key    string // public key, "A…"; empty for a device
}

// String gives "site.id", or "control." and the public key.
func (w AuditWriter) String() string {
	if w.Key != "" {
		return controlSite + "." + w.Key
	}
	return w.Device.String()
}

// AuditWriterOf says whose audit a subject is.
func AuditWriterOf(subject string) (AuditWriter, error) {
	rest, ok := strings.CutPrefix(subject, prefixAudit)
	if !ok {
		return AuditWriter{}, fmt.Errorf("cannot read a writer from subject %q", subject)
	}
	if key, ok := strings.CutPrefix(rest, controlSite+"."); ok {
		if _, err := auditKey(key); err != nil {
			return AuditWriter{}, err
		}
		return AuditWriter{Key: key}, nil
	}
	d, err := DeviceOf(subject)
	return AuditWriter{Device: d}, err
}

// AuditHeaders are what goes beside a message of d: what is sent again within the window of the stream is stored once.
func AuditHeaders(d Device, message []byte) map[string][]string {
	sum := sha256.Sum256(message)
	return map[string][]string{headerMessageID: {d.String() + "/audit/" + hex.EncodeToString(sum[:])}}
}

// SignAudit gives the headers of a message of who is no device.
func SignAudit(s Signer, message []byte) (map[string][]string, error) {
	sig, err := s.Sign(preAuthOf(auditType, message))
	if err != nil {
		return nil, fmt.Errorf("cannot sign an entry of the audit: %w", err)
	}
	return map[string][]string{headerSignature: {base64.StdEncoding.EncodeToString(sig)}}, nil
}

// AuditSigned reports whether the key that a message is stored under has signed it.
func AuditSigned(publicKey string, header map[string][]string, message []byte) bool {
	raw, err := auditKey(publicKey)
	if err != nil {
		return false
	}
	sig, err := base64.StdEncoding.DecodeString(first(header, headerSignature))
	return err == nil && ed25519.Verify(raw, preAuthOf(auditType, message), sig)
}
