package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"
)

// signer gives the same key for the same letter, so that goldens have signatures.
func signer(t testing.TB, letter byte) nkeys.KeyPair {
	t.Helper()
	kp, err := nkeys.FromRawSeed(nkeys.PrefixByteAccount, bytes.Repeat([]byte{letter}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return kp
}

func publicKey(t testing.TB, kp nkeys.KeyPair) string {
	t.Helper()
	s, err := kp.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keySet trusts the letters' keys for the kinds.
func keySet(t testing.TB, letters string, kinds ...Kind) KeySet {
	t.Helper()
	var keys []TrustedKey
	for _, l := range []byte(letters) {
		keys = append(keys, TrustedKey{PublicKey: publicKey(t, signer(t, l)), Kinds: kinds})
	}
	set, err := NewKeySet(0, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestKeysAreTrustedForKinds(t *testing.T) {
	st := statement()
	st.Kind = KindApproval
	b := seal(t, st, nil, "a")
	want := Expect{Kind: KindApproval, Audience: dev1.String(), Now: now}
	if _, err := Verify(b, keySet(t, "a", KindDevice, KindClass), want); err == nil {
		t.Error("a publisher's key approved")
	} else {
		wantCode(t, err, CodeUntrusted)
	}
	if _, err := Verify(b, keySet(t, "a", KindApproval), want); err != nil {
		t.Error(err)
	}
	if _, err := Verify(b, KeySet{}, want); err == nil {
		t.Error("the empty key set trusts")
	}
}

func TestSeveralSignatures(t *testing.T) {
	keys := keySet(t, "ab", KindDevice)
	two := expect
	two.Signatures = 2
	if _, err := Verify(seal(t, statement(), nil, "ab"), keys, two); err != nil {
		t.Error(err)
	}
	_, err := Verify(seal(t, statement(), nil, "a"), keys, two)
	wantCode(t, err, CodeTooFewSignatures)
	_, err = Verify(seal(t, statement(), nil, "ac"), keys, two)
	wantCode(t, err, CodeTooFewSignatures)
	// A key that this receiver does not know yet is no reason to refuse: keys are rotated.
	if v, err := Verify(seal(t, statement(), nil, "ca"), keys, expect); err != nil || len(v.By) != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	// One key twice is not two keys.
	if _, err := Seal(statement(), nil, signer(t, 'a'), signer(t, 'a')); err == nil {
		t.Error("a key signed twice")
	}
	e, err := SealEnvelope(statement(), nil, signer(t, 'a'))
	if err != nil {
		t.Fatal(err)
	}
	e.Signatures = append(e.Signatures, e.Signatures[0])
	_, err = e.Verify(keys, two)
	wantCode(t, err, CodeMalformed)
	// A wrong signature of a trusted key refuses the whole, even when others suffice.
	e, err = SealEnvelope(statement(), nil, signer(t, 'a'), signer(t, 'b'))
	if err != nil {
		t.Fatal(err)
	}
	e.Signatures[1].Sig[5] ^= 1
	_, err = e.Verify(keys, expect)
	wantCode(t, err, CodeUntrusted)
}

func TestEpoch(t *testing.T) {
	set, err := NewKeySet(3, TrustedKey{PublicKey: publicKey(t, signer(t, 'a')), Kinds: []Kind{KindDevice}})
	if err != nil {
		t.Fatal(err)
	}
	for epoch, want := range map[uint64]Code{2: "", 3: "", 4: CodeUnknownEpoch} {
		st := statement()
		st.Epoch = epoch
		_, err := Verify(seal(t, st, nil, "a"), set, expect)
		if want == "" && err != nil {
			t.Errorf("epoch %d: %v", epoch, err)
		} else if want != "" {
			wantCode(t, err, want)
		}
	}
}

func TestNewKeySetRefuses(t *testing.T) {
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	a := TrustedKey{PublicKey: publicKey(t, signer(t, 'a')), Kinds: []Kind{KindDevice}}
	for name, tt := range map[string]struct {
		keys []TrustedKey
		want string
	}{
		"connection key": {[]TrustedKey{{PublicKey: publicKey(t, user), Kinds: []Kind{KindDevice}}}, "connection keys (U) sign no documents"},
		"no key":         {[]TrustedKey{{PublicKey: "", Kinds: []Kind{KindDevice}}}, "neither a public account key"},
		"for nothing":    {[]TrustedKey{{PublicKey: a.PublicKey}}, "for nothing"},
		"twice":          {[]TrustedKey{a, a}, "twice"},
	} {
		if _, err := NewKeySet(0, tt.keys...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
