package wire

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
)

var (
	now  = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	dev1 = Device{"main", "pi-1"}
	dev2 = Device{"main", "pi-10"}
)

func statement() Statement {
	return Statement{
		Kind: KindDevice, Audience: dev1.String(), Name: "kiosk", Generation: 7, Epoch: 1,
		Issued: UnixSeconds(now), NotAfter: UnixSeconds(now.Add(24 * time.Hour)), Media: "application/json",
	}
}

func seal(t testing.TB, st Statement, payload []byte, letters string) []byte {
	t.Helper()
	var signers []Signer
	for _, l := range []byte(letters) {
		signers = append(signers, signer(t, l))
	}
	b, err := Seal(st, payload, signers...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var expect = Expect{Kind: KindDevice, Audience: dev1.String(), Now: now}

func wantCode(t *testing.T, err error, want Code) {
	t.Helper()
	var r *Refusal
	if !errors.As(err, &r) || r.Code != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestSealAndVerify(t *testing.T) {
	payload := []byte(`{ "odd":   [1,2,  3],"a":1 }`) // S29: bytes, not a value
	long := []byte(strings.Repeat(`{"kind":"file"}`, 100))
	keys := keySet(t, "a", KindDevice)
	for _, tt := range []struct {
		name     string
		encoding string
		payload  []byte
		carried  string
	}{
		{"as it is", EncodingNone, payload, EncodingNone},
		{"compressed", EncodingGzip, long, EncodingGzip},
		{"not worth it", EncodingGzip, payload, EncodingNone},
		{"empty", EncodingGzip, nil, EncodingNone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := statement()
			st.Encoding = tt.encoding
			b := seal(t, st, tt.payload, "a")
			v, err := Verify(b, keys, expect)
			if err != nil {
				t.Fatal(err)
			}
			opened, err := v.Open()
			if err != nil || !bytes.Equal(opened, tt.payload) {
				t.Errorf("opened %q, %v", opened, err)
			}
			got := v.Statement
			if got.Encoding != tt.carried || got.RawSize != uint64(len(tt.payload)) || len(v.By) != 1 {
				t.Errorf("got %+v", v)
			}
			got.Encoding, got.Size, got.RawSize, got.Digest = tt.encoding, 0, 0, nil
			if !reflect.DeepEqual(got, st) {
				t.Errorf("got %+v, want %+v", got, st)
			}
		})
	}
}

// resealed signs whatever the change made of a statement: what only a holder of a key can send.
func resealed(t *testing.T, payload []byte, change func(*Statement)) []byte {
	t.Helper()
	e, err := SealEnvelope(statement(), payload, signer(t, 'a'))
	if err != nil {
		t.Fatal(err)
	}
	st, err := decode[Statement](e.Statement, MaxStatement)
	if err != nil {
		t.Fatal(err)
	}
	change(&st)
	if e.Statement, err = encode(&st); err != nil {
		t.Fatal(err)
	}
	return framed(t, e)
}

// framed signs the statement's bytes anew, whatever they are.
func framed(t *testing.T, e Envelope) []byte {
	t.Helper()
	e.Signatures = nil
	if err := e.Sign(signer(t, 'a')); err != nil {
		t.Fatal(err)
	}
	b, err := e.Frame()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestVerifyRefuses(t *testing.T) { // case 142
	payload := []byte(`{"scores":[]}`)
	good := seal(t, statement(), payload, "a")
	change := func(f func(*Statement)) []byte { return resealed(t, payload, f) }
	tests := []struct {
		name string
		in   []byte
		want Code
	}{
		{"nothing", nil, CodeMalformed},
		{"noise", []byte("GET / HTTP/1.1\r\n"), CodeMalformed},
		{"next major", append([]byte("CTO2"), good[4:]...), CodeUnsupportedVersion}, // H29
		{"100 MB", make([]byte, 100<<20), CodeTooLarge},
		{"statement length beyond the cap", append([]byte("CTO1\xff\xff"), good[6:]...), CodeTooLarge},
		{"statement length beyond the end", []byte("CTO1\x0f\xff"), CodeMalformed},
		{"255 signatures", append([]byte("CTO1\x00\x00\xff"), make([]byte, 255*72)...), CodeTooLarge},
		{"signatures beyond the end", []byte("CTO1\x00\x00\x01x"), CodeMalformed},
		{"no signature", []byte("CTO1\x00\x00\x00"), CodeUntrusted},
		{"unknown key", seal(t, statement(), payload, "b"), CodeUntrusted},
		{"another device's document", change(func(s *Statement) { s.Audience = dev2.String() }), CodeWrongAudience},
		{"a class's document", change(func(s *Statement) { s.Kind = KindClass }), CodeWrongPurpose},
		{"expired", change(func(s *Statement) { s.NotAfter = UnixSeconds(now) }), CodeExpired},
		{"of tomorrow", change(func(s *Statement) { s.NotBefore = UnixSeconds(now) + 1 }), CodeNotYetValid},
		{"no generation", change(func(s *Statement) { s.Generation = 0 }), CodeMalformed},
		{"unknown encoding", change(func(s *Statement) { s.Encoding = "zstd" }), CodeUnsupportedVersion},
		{"opens to too much", change(func(s *Statement) { s.RawSize = MaxOpened + 1 }), CodeTooLarge},
		{"opens to 2^64-1", change(func(s *Statement) { s.RawSize = 1<<64 - 1 }), CodeTooLarge},
		{"longer payload", append(slices.Clone(good), 'x'), CodeSizeMismatch},
		{"shorter payload", good[:len(good)-1], CodeSizeMismatch},
		{"raw size is another", change(func(s *Statement) { s.RawSize++ }), CodeSizeMismatch},
		{"another payload", append(slices.Clone(good[:len(good)-1]), 'x'), CodeDigestMismatch},
		{"digest cut short", change(func(s *Statement) { s.Digest = s.Digest[:31] }), CodeDigestMismatch},
		{"no digest", change(func(s *Statement) { s.Digest = nil }), CodeDigestMismatch},
		{"signed noise", framed(t, Envelope{Statement: unhex("ddffffffff"), Payload: payload}), CodeMalformed},
		{"signed nothing", framed(t, Envelope{Payload: payload}), CodeMalformed},
	}
	keys := keySet(t, "a", KindDevice, KindClass)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := Verify(tt.in, keys, expect)
			wantCode(t, err, tt.want)
			if !reflect.DeepEqual(v, Verified{}) {
				t.Errorf("something came with the refusal: %+v", v)
			}
		})
	}
}

// A statement is not decoded before its signature was checked: noise that nobody signed is untrusted, not malformed.
func TestSignatureComesBeforeDecoding(t *testing.T) {
	e := Envelope{Statement: unhex("ddffffffff")}
	if err := e.Sign(signer(t, 'b')); err != nil {
		t.Fatal(err)
	}
	b, err := e.Frame()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Verify(b, keySet(t, "a", KindDevice), expect)
	wantCode(t, err, CodeUntrusted)
}

// A clock that cannot be trusted drops nothing.
func TestWithoutClock(t *testing.T) { // case 121
	st := statement()
	st.NotAfter, st.NotBefore = 1, UnixSeconds(now)+1000
	want := expect
	want.Now = time.Time{}
	if _, err := Verify(seal(t, st, nil, "a"), keySet(t, "a", KindDevice), want); err != nil {
		t.Error(err)
	}
}

func TestEveryFlippedByteIsRefused(t *testing.T) {
	st := statement()
	st.Encoding = EncodingGzip
	b := seal(t, st, []byte(strings.Repeat(`{"kind":"file","id":"conf"}`, 8)), "a")
	keys := keySet(t, "a", KindDevice)
	if _, err := Verify(b, keys, expect); err != nil {
		t.Fatal(err)
	}
	for i := range b {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			bad := slices.Clone(b)
			bad[i] ^= flip
			if _, err := Verify(bad, keys, expect); err == nil {
				t.Errorf("byte %d of %d, flipped by %#x, was accepted", i, len(b), flip)
			}
		}
	}
	for i := range b {
		if _, err := Verify(b[:i], keys, expect); err == nil {
			t.Errorf("the first %d of %d bytes were accepted", i, len(b))
		}
	}
}

// Whoever signs a compressed payload cannot make it open to more or less than the statement says.
func TestOpenHoldsTheSize(t *testing.T) {
	bomb := compress(make([]byte, 64<<20))
	for name, tt := range map[string]struct {
		carried []byte
		raw     uint64
	}{
		"bomb":               {bomb, 100},
		"longer than said":   {compress([]byte("12345")), 4},
		"shorter than said":  {compress([]byte("12345")), 6},
		"not gzip":           {[]byte("12345"), 5},
		"something after it": {append(compress([]byte("12345")), 'x'), 5},
		"a second member":    {append(compress([]byte("12345")), compress([]byte("6"))...), 5},
		"checksum cut off":   {compress([]byte("12345"))[:len(compress([]byte("12345")))-4], 5},
		"empty":              {nil, 5},
	} {
		t.Run(name, func(t *testing.T) {
			v := Verified{Statement: Statement{Encoding: EncodingGzip, RawSize: tt.raw}, payload: tt.carried}
			b, err := v.Open()
			wantCode(t, err, CodeSizeMismatch)
			if b != nil {
				t.Errorf("%d bytes came with the refusal", len(b))
			}
		})
	}
}

func TestSealRefuses(t *testing.T) {
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, MaxPayload+1) // zeros, but carried as they are
	tests := []struct {
		name    string
		change  func(*Statement)
		payload []byte
		signers []Signer
		want    string
	}{
		{"no kind", func(s *Statement) { s.Kind = "" }, nil, []Signer{signer(t, 'a')}, "are needed"},
		{"no audience", func(s *Statement) { s.Audience = "" }, nil, []Signer{signer(t, 'a')}, "are needed"},
		{"no generation", func(s *Statement) { s.Generation = 0 }, nil, []Signer{signer(t, 'a')}, "are needed"},
		{"unknown encoding", func(s *Statement) { s.Encoding = "zstd" }, nil, []Signer{signer(t, 'a')}, `no encoding "zstd"`},
		{"nobody", nil, nil, nil, "nobody signs it"},
		{"connection key", nil, nil, []Signer{user}, "connection keys (U) sign no documents"},
		{"large as carried", nil, noise, []Signer{signer(t, 'a')}, "as carried, at most 262144"},
		{"large", nil, make([]byte, MaxOpened+1), []Signer{signer(t, 'a')}, "at most 4194304"},
		{"long name", func(s *Statement) { s.Name = strings.Repeat("x", MaxStatement) }, nil, []Signer{signer(t, 'a')}, "too_large: a statement"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := statement()
			if tt.change != nil {
				tt.change(&st)
			}
			_, err := Seal(st, tt.payload, tt.signers...)
			if err == nil || !strings.HasPrefix(err.Error(), "cannot seal the ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
