package wire

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

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
	raw, err := rawKey(publicKey)
	if err != nil {
		return KeyID{}, err
	}
	return keyID(raw), nil
}

func rawKey(publicKey string) (ed25519.PublicKey, error) {
	raw, err := nkeys.Decode(nkeys.PrefixByteAccount, []byte(publicKey))
	if err != nil {
		return nil, fmt.Errorf("cannot use %q as a document signing key: it is not a public account key (it starts with A); connection keys (U) sign no documents", publicKey)
	}
	return ed25519.PublicKey(raw), nil
}

func keyID(raw ed25519.PublicKey) KeyID {
	sum := sha256.Sum256(raw)
	return KeyID(sum[:8])
}

// A TrustedKey is a public key and the kinds of statements it may sign.
type TrustedKey struct {
	PublicKey string // account nkey, "A…"
	Kinds     []Kind
}

// A KeySet is the keys that a receiver trusts. The zero value trusts nobody. It does not change once made.
type KeySet struct {
	epoch uint64
	keys  map[KeyID]trusted
}

type trusted struct {
	key   ed25519.PublicKey
	kinds []Kind
}

// NewKeySet makes a key set of one version of the trust root. Epoch 0 is a set without a root: keys that somebody
// configured by hand.
func NewKeySet(epoch uint64, keys ...TrustedKey) (KeySet, error) {
	set := KeySet{epoch: epoch, keys: map[KeyID]trusted{}}
	for _, k := range keys {
		raw, err := rawKey(k.PublicKey)
		if err != nil {
			return KeySet{}, err
		}
		if len(k.Kinds) == 0 {
			return KeySet{}, fmt.Errorf("cannot trust key %s for nothing: name the kinds it may sign", k.PublicKey)
		}
		id := keyID(raw)
		if _, ok := set.keys[id]; ok {
			return KeySet{}, fmt.Errorf("cannot trust key %s twice", k.PublicKey)
		}
		set.keys[id] = trusted{raw, slices.Clone(k.Kinds)}
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

// signedBy checks every signature by a key of the set that may sign kind, and counts them. One of them that is wrong
// refuses the whole. Signatures of other keys say nothing: a receiver with older keys must go on.
func (s KeySet) signedBy(kind Kind, message []byte, signatures []Signature) (int, *Refusal) {
	good := 0
	for _, sig := range signatures {
		k, ok := s.keys[sig.KeyID]
		if !ok || !slices.Contains(k.kinds, kind) {
			continue
		}
		if !ed25519.Verify(k.key, message, sig.Sig[:]) {
			return 0, refuse(CodeUntrusted, "the signature of key %s is wrong", sig.KeyID)
		}
		good++
	}
	return good, nil
}
