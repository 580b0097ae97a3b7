package wire

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nkeys"
)

// A Signer signs statements. It is an account nkey ("SA…" and "A…"): a connection key ("U…") signs whatever nonce a
// server sends it, so a hostile server could have it sign a statement; the key set refuses those.
type Signer interface {
	PublicKey() (string, error)
	Sign(data []byte) ([]byte, error)
}

// A KeyID is the first bytes of the SHA-256 of a public key. It only picks the key to try.
type KeyID [8]byte

func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// keyIDOf gives the id of a document signing key.
func keyIDOf(publicKey string) (KeyID, error) {
	k, err := parseKey(publicKey)
	if err != nil {
		return KeyID{}, err
	}
	return k.id, nil
}

// CheckKey says whether text can be the public key of who signs documents, and gives it as it is written everywhere: an
// account nkey, or an Ed25519 key of OpenSSH without its comment.
func CheckKey(text string) (string, error) {
	k, err := parseKey(text)
	return k.text, err
}

// Fingerprint is that of a public key as people compare it, in the form of OpenSSH. It is the same for both ways to write
// one key.
func Fingerprint(publicKey string) (string, error) {
	k, err := parseKey(publicKey)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(sshBlob(k.key))
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:]), nil
}

// parseKey reads a public key.
func parseKey(text string) (trusted, error) {
	if strings.HasPrefix(text, sshKeyType) {
		return parseSSHKey(text)
	}
	raw, err := nkeys.Decode(nkeys.PrefixByteAccount, []byte(text))
	if err == nil { // one key has one text: the library does not mind a letter more
		var again []byte
		if again, err = nkeys.Encode(nkeys.PrefixByteAccount, raw); err == nil && string(again) != text {
			err = nkeys.ErrInvalidEncoding
		}
	}
	if err != nil {
		return trusted{}, fmt.Errorf("cannot use %q as a document signing key: it is neither a public account key (it starts with A) nor an ssh-ed25519 key; connection keys (U) sign no documents", begin(text))
	}
	sum := sha256.Sum256(raw)
	return trusted{text: text, key: ed25519.PublicKey(raw), id: KeyID(sum[:8])}, nil
}

// begin shows enough of what was given as a public key to find it, and too little to sign with if it is a private one.
func begin(text string) string {
	if len(text) > 12 {
		return strings.ToValidUTF8(text[:12], "") + "…"
	}
	return text
}

// A TrustedKey is a public key and the kinds of statements it may sign.
type TrustedKey struct {
	PublicKey string // account nkey, "A…", or "ssh-ed25519 …"
	Kinds     []Kind
	// From and Until bound when it may sign; zero is no bound. A receiver without a clock does not look.
	From, Until time.Time
	// Revoked keys sign nothing any more. They are known, so that what they sign is refused by a word of its own.
	Revoked bool
}

// A KeySet is the keys that a receiver trusts. The zero value trusts nobody. It does not change once made.
type KeySet struct {
	epoch uint64
	keys  map[KeyID]trusted
}

type trusted struct {
	TrustedKey
	text string // as it is written everywhere
	key  ed25519.PublicKey
	id   KeyID
	ssh  bool
}

// NewKeySet makes a key set of one version of the trust root. Epoch 0 is a set without a root: keys that somebody
// configured by hand.
func NewKeySet(epoch uint64, keys ...TrustedKey) (KeySet, error) {
	set := KeySet{epoch: epoch, keys: map[KeyID]trusted{}}
	for _, k := range keys {
		t, err := parseKey(k.PublicKey)
		if err != nil {
			return KeySet{}, err
		}
		if len(k.Kinds) == 0 && !k.Revoked {
			return KeySet{}, fmt.Errorf("cannot trust key %s for nothing: name the kinds it may sign", k.PublicKey)
		}
		if _, ok := set.keys[t.id]; ok {
			return KeySet{}, fmt.Errorf("cannot trust key %s twice", k.PublicKey)
		}
		t.TrustedKey = k
		t.Kinds = slices.Clone(k.Kinds)
		set.keys[t.id] = t
	}
	return set, nil
}

// Trust makes a key set of public keys that may all sign one kind. It has no trust root: somebody configured them by hand.
func Trust(kind Kind, publicKeys ...string) (KeySet, error) {
	keys := make([]TrustedKey, len(publicKeys))
	for i, k := range publicKeys {
		keys[i] = TrustedKey{PublicKey: k, Kinds: []Kind{kind}}
	}
	return NewKeySet(0, keys...)
}

// Epoch is the version of the trust root that the set is of; 0 is a set without one.
func (s KeySet) Epoch() uint64 { return s.epoch }

// signedBy checks every signature by a key of the set that may sign kind, and gives the keys. One of them that is wrong
// refuses the whole. Signatures of other keys say nothing: a receiver with older keys must go on. why is the reason of
// one that does not count although the key is known.
func (s KeySet) signedBy(kind Kind, message []byte, signatures []Signature, now time.Time) (by []string, why *Refusal, wrong *Refusal) {
	for _, sig := range signatures {
		k, ok := s.keys[sig.KeyID]
		if !ok || !k.Revoked && !slices.Contains(k.Kinds, kind) {
			continue
		}
		if !ed25519.Verify(k.key, k.signs(message), sig.Sig[:]) {
			return nil, nil, refuse(CodeUntrusted, "the signature of key %s is wrong", sig.KeyID)
		}
		if r := k.counts(now); r != nil {
			why = cmp.Or(why, r)
			continue
		}
		by = append(by, k.text)
	}
	return by, why, nil
}

// counts says why a key that signed does not count.
func (t trusted) counts(now time.Time) *Refusal {
	switch {
	case t.Revoked:
		return refuse(CodeKeyRevoked, "key %s was revoked", t.id)
	case now.IsZero():
	case !t.From.IsZero() && now.Before(t.From):
		return refuse(CodeKeyNotValid, "key %s may sign from %s on", t.id, t.From.UTC().Format(time.RFC3339))
	case !t.Until.IsZero() && !now.Before(t.Until):
		return refuse(CodeKeyNotValid, "key %s could sign until %s", t.id, t.Until.UTC().Format(time.RFC3339))
	}
	return nil
}

// signs is what a signature of this key over a message is really over.
func (t trusted) signs(message []byte) []byte {
	if t.ssh {
		return sshSigned(message)
	}
	return message
}
