package wire

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
)

func user(t testing.TB) (nkeys.KeyPair, string) {
	t.Helper()
	kp, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := kp.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return kp, public
}

// request is one that is good.
func request(t testing.TB, change ...func(*Request)) []byte {
	t.Helper()
	kp, public := user(t)
	r := Request{Device: dev1, ID: "i-1", Key: public, Nonce: []byte("0123456789abcdef"), Board: Board{Serial: "board-1"}}
	for _, c := range change {
		c(&r)
	}
	b, err := SealRequest(r, kp)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func refusedAs(t *testing.T, what string, err error, code Code) {
	t.Helper()
	if r, ok := errors.AsType[*Refusal](err); !ok || r.Code != code {
		t.Errorf("%s: got %v, want %s", what, err, code)
	}
}

// A request counts for the device, the invitation and the key that it is for, and for nothing else (S48).
func TestRequest(t *testing.T) {
	b := request(t)
	r, err := OpenRequest(b, dev1, "i-1")
	if err != nil || r.Board.Serial != "board-1" || len(r.Digest) != 32 {
		t.Fatalf("got %+v, %v", r, err)
	}
	_, err = OpenRequest(b, dev2, "i-1")
	refusedAs(t, "another device", err, CodeWrongAudience)
	_, err = OpenRequest(b, dev1, "i-2")
	refusedAs(t, "another invitation", err, CodeWrongAudience)
	_, other := user(t)
	_, err = OpenRequest(request(t, func(r *Request) { r.Key = other }), dev1, "i-1")
	refusedAs(t, "a key that is not his", err, CodeUntrusted)
	_, err = OpenRequest(request(t, func(r *Request) { r.Key = "A" }), dev1, "i-1")
	refusedAs(t, "no key", err, CodeMalformed)
	_, err = OpenRequest(request(t, func(r *Request) { r.Nonce = nil }), dev1, "i-1")
	refusedAs(t, "no nonce", err, CodeMalformed)
	_, err = OpenRequest([]byte(strings.Repeat("x", maxRequest+1)), dev1, "i-1")
	refusedAs(t, "too large", err, CodeTooLarge)
	_, err = OpenRequest([]byte("{"), dev1, "i-1")
	refusedAs(t, "no JSON", err, CodeMalformed)
	long, err := OpenRequest(request(t, func(r *Request) { r.Board.Model = strings.Repeat("m", 500) }), dev1, "i-1")
	if err != nil || len(long.Board.Model) != maxFact {
		t.Errorf("a long model: %d bytes, %v", len(long.Board.Model), err)
	}
}

// An invitation lasts from a minute to four hours, and ends (X90).
func TestInvitation(t *testing.T) {
	keys := keySet(t, "a", KindApproval)
	for _, life := range []time.Duration{MinInvitation - time.Second, MaxInvitation + time.Second} {
		if _, err := SealInvitation(Invitation{ID: "i-1", Device: dev1, Until: now.Add(life)}, now, signer(t, 'a')); err == nil {
			t.Errorf("an invitation for %s", life)
		}
	}
	i, err := SealInvitation(Invitation{ID: "i-1", Device: dev1, Until: now.Add(DefaultInvitation)}, now, signer(t, 'a'))
	if err != nil {
		t.Fatal(err)
	}
	r := Request{Device: dev1, ID: "i-1", Invitation: i.Frame}
	if until, err := r.Invited(keys, now.Add(DefaultInvitation-time.Second)); err != nil || !until.Equal(now.Add(DefaultInvitation)) {
		t.Errorf("until %s, %v", until, err)
	}
	_, err = r.Invited(keys, now.Add(DefaultInvitation))
	refusedAs(t, "over", err, CodeExpired)
	_, err = r.Invited(keySet(t, "b", KindApproval), now)
	refusedAs(t, "a stranger", err, CodeUntrusted)
	// What an operator signed for something else is no invitation.
	record, err := SealRecord(Record{Generation: 1, Device: dev1}, now, signer(t, 'a'))
	if err != nil {
		t.Fatal(err)
	}
	r.Invitation = record
	_, err = r.Invited(keys, now)
	refusedAs(t, "a record", err, CodeWrongPurpose)
	_, err = OpenRecord(i.Frame, keys, dev1)
	refusedAs(t, "an invitation", err, CodeWrongPurpose)
	if got, err := OpenRecord(record, keys, dev1); err != nil || got.Generation != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = OpenRecord(record, keys, dev2)
	refusedAs(t, "the record of another device", err, CodeWrongAudience)
}

// An answer is for one request, and signed by a control service.
func TestLetIn(t *testing.T) {
	b, err := SealLetIn(LetIn{Nonce: []byte("n"), State: StateWaiting}, dev1, now, signer(t, 'h'))
	if err != nil {
		t.Fatal(err)
	}
	keys := keySet(t, "h", KindHeartbeat)
	if l, err := OpenLetIn(b, keys, dev1, []byte("n")); err != nil || l.State != StateWaiting {
		t.Errorf("got %+v, %v", l, err)
	}
	_, err = OpenLetIn(b, keys, dev1, []byte("m"))
	refusedAs(t, "another request", err, CodeWrongAudience)
	_, err = OpenLetIn(b, keySet(t, "a", KindHeartbeat), dev1, []byte("n"))
	refusedAs(t, "a stranger", err, CodeUntrusted)
	_, err = OpenControl(b, keys, dev1, nil)
	refusedAs(t, "it is no answer to a heartbeat", err, CodeUnsupportedVersion)
}

func TestEnrolmentSubjects(t *testing.T) {
	for _, subject := range []string{EnrollSubject(dev1, "i-1"), AskingSubject(dev1, "i-1")} {
		if d, id, err := AskedOn(subject); err != nil || d != dev1 || id != "i-1" {
			t.Errorf("%s: %s %s %v", subject, d, id, err)
		}
	}
	if d, err := RecordOf(RecordSubject(dev1)); err != nil || d != dev1 {
		t.Errorf("%s, %v", d, err)
	}
	for _, bad := range []string{"", "enroll.main.pi-1", "enroll.main.pi-1.i.j", "enroll.main.*.i", "enroll.main.pi-1.>", "hb.main.pi-1.x"} {
		if _, _, err := AskedOn(bad); err == nil {
			t.Errorf("%q is the subject of a request", bad)
		}
		if _, err := RecordOf(bad); err == nil {
			t.Errorf("%q is the subject of a record", bad)
		}
	}
	_, key := user(t)
	if f, err := UserFingerprint(key); err != nil || !strings.HasPrefix(f, "SHA256:") {
		t.Errorf("%s, %v", f, err)
	}
	if _, err := UserFingerprint("A"); err == nil {
		t.Error("a fingerprint of nothing")
	}
}

func ticket() string {
	return `{"kind":"Invitation","device":"main.pi-1","id":"i-1","until":"2026-11-29T13:00:00Z","servers":["nats://192.0.2.1:4222"],"knock":{"jwt":"j","seed":"s"},"invitation":"aQ==","documents":["A"],"control":["A"]}`
}

func TestTicket(t *testing.T) {
	if got, err := ParseTicket([]byte(ticket())); err != nil || got.Device != dev1 {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, tt := range []struct{ old, new, want string }{
		{`"kind":"Invitation"`, `"kind":"Manifest"`, "its kind is"}, {`"id":"i-1"`, `"id":"*"`, "an invitation"}, {`"jwt":"j"`, `"jwt":""`, "a part of it is missing"},
		{`"control":["A"]`, `"control":[]`, "whom to trust"}, {`"main.pi-1"`, `"*"`, "no file of"},
	} {
		if _, err := ParseTicket([]byte(strings.Replace(ticket(), tt.old, tt.new, 1))); err == nil || !strings.HasPrefix(err.Error(), "cannot use the invitation: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("with %s: %v", tt.new, err)
		}
	}
	if _, err := ParseTicket([]byte(strings.Repeat("x", maxTicket+1))); err == nil {
		t.Error("too large")
	}
}

func FuzzOpenRequest(f *testing.F) {
	f.Add(request(f))
	f.Add([]byte(`{"request":"e30=","proof":""}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := OpenRequest(b, dev1, "i-1")
		if err == nil && (r.Device != dev1 || len(r.Digest) != 32) {
			t.Errorf("got %+v", r)
		}
	})
}

func FuzzParseTicket(f *testing.F) {
	f.Add([]byte(ticket()))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := ParseTicket(b); err == nil && (got.Device.Check() != nil || len(got.Servers) == 0) {
			t.Errorf("got %+v", got)
		}
	})
}

func FuzzOpenRecord(f *testing.F) {
	seed, err := SealRecord(Record{Generation: 1, Device: dev1, Key: "U"}, now, signer(f, 'a'))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	keys := keySet(f, "a", KindApproval)
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := OpenRecord(b, keys, dev1); err == nil && r.Device != dev1 {
			t.Errorf("got %+v", r)
		}
	})
}
