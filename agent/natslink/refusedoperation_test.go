package natslink

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// What is not for this device, not signed by whom it trusts, damaged, too old, too large or not understood does nothing,
// is reported once by its code, and does not keep what comes after it from being taken (H65, H66, H71, case 142).
func TestOperationRefused(t *testing.T) {
	r := newRig(t)
	stranger := newSigner(t)
	op := operation("bad")
	of := func(change func(*wire.Statement, *[]byte)) []byte { return ask(t, op, 8, r.operator, change) }
	good := ask(t, op, 8, r.operator)
	at := bytes.Index(good, []byte(`"bad"`))
	tampered := bytes.Clone(good)
	tampered[at+1] ^= 1
	past := op
	past.Expires = time.Now().Add(-time.Hour).Truncate(time.Second)
	tests := []struct {
		name  string
		frame []byte
		code  interpret.Code
	}{
		{"unknown key", ask(t, op, 8, stranger), "untrusted"},
		{"another device", of(func(st *wire.Statement, _ *[]byte) { st.Audience = pi10.String() }), "wrong_audience"},
		{"another kind", of(func(st *wire.Statement, _ *[]byte) { st.Kind = wire.KindDevice }), "wrong_purpose"},
		{"a document of the device", func() []byte { b, _ := seal(t, pi1, 8, r.operator); return b }(), "wrong_purpose"},
		{"expired", ask(t, past, 8, r.operator), "expired"},
		{"not yet valid", of(func(st *wire.Statement, _ *[]byte) { st.NotBefore = wire.UnixSeconds(time.Now().Add(time.Minute)) }), "not_yet_valid"},
		{"without an end", of(func(st *wire.Statement, _ *[]byte) { st.NotAfter = 0 }), CodeMalformed},
		{"valid too long", of(func(st *wire.Statement, _ *[]byte) { st.Issued = 1 }), CodeMalformed},
		{"another end inside", of(func(st *wire.Statement, _ *[]byte) { st.NotAfter++ }), CodeMalformed},
		{"too large", of(func(_ *wire.Statement, b *[]byte) { *b = append(*b, bytes.Repeat([]byte(" "), wire.MaxOperation)...) }), "too_large"},
		{"a bomb", of(func(st *wire.Statement, b *[]byte) {
			st.Encoding = wire.EncodingGzip
			*b = append(*b, bytes.Repeat([]byte(" "), wire.MaxOpened-len(*b))...)
		}), "too_large"},
		{"one byte tampered", tampered, "digest_mismatch"},
		{"cut", good[:20], "malformed"},
		{"cut in the payload", good[:len(good)-1], "size_mismatch"},
		{"hostile bytes", []byte{0xdd, 0xff, 0xff, 0xff, 0xff}, "malformed"},
		{"another medium", of(func(st *wire.Statement, _ *[]byte) { st.Media = wire.MediaAssignment }), CodeUnsupported},
		{"another device inside", of(func(_ *wire.Statement, b *[]byte) {
			*b = bytes.Replace(*b, []byte(`"pi-1"`), []byte(`"pi-10"`), 1)
		}), CodeMalformed},
		{"an id that is a path", of(func(_ *wire.Statement, b *[]byte) {
			*b = bytes.Replace(*b, []byte(`"bad"`), []byte(`"../bad"`), 1)
		}), CodeMalformed},
		{"no JSON", of(func(_ *wire.Statement, b *[]byte) { *b = []byte("{{") }), CodeMalformed},
		{"a key twice", of(func(_ *wire.Statement, b *[]byte) {
			*b = bytes.Replace(*b, []byte(`"id":`), []byte(`"id":"other","id":`), 1)
		}), CodeMalformed},
		{"the generation of another", ask(t, op, 7, r.operator), agent.CodeEquivocation},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := r.obeying()
			o.tune.off = onConnect
			l, d := r.runDoer(o)
			r.online(l)
			r.store(ask(t, operation("one"), 7, r.operator), 7)
			d.took(t, "one")
			for range 3 {
				r.store(tt.frame, 8)
			}
			d.has(t, tt.code)
			r.store(ask(t, operation("two"), 9, r.operator), 9)
			d.took(t, "one", "two")
			d.hasNot(t, tt.code) // a good one ends what was said of those before
			d.change(func() {
				if d.reports[tt.code] != 1 || len(d.reports) != 1 {
					t.Errorf("reported: %v", d.reports)
				}
			})
		})
	}
}

// No single damaged byte of an operation is accepted (H66, case 142).
func TestEveryFlippedByteOfAnOperationIsRefused(t *testing.T) {
	operator := newSigner(t)
	keys := trustIn(t, wire.KindApproval, operator)
	frame := ask(t, operation("one"), 3, operator)
	if op, _, err := openOperation(frame, pi1, keys, time.Now()); err != nil || op.unsupported != "" || op.ID != "one" {
		t.Fatalf("got %+v, %v", op, err)
	}
	for i := range frame {
		for _, mask := range []byte{0x01, 0x80, 0xff} {
			b := bytes.Clone(frame)
			b[i] ^= mask
			if _, _, err := openOperation(b, pi1, keys, time.Now()); err == nil {
				t.Errorf("byte %d with %#x flipped is accepted", i, mask)
			}
		}
	}
}

// A key that may sign documents signs no operation, and one for operations signs no document.
func TestKeysOfOperationsAreTheirOwn(t *testing.T) {
	publisher, approver := newSigner(t), newSigner(t)
	_, _, err := openOperation(ask(t, operation("one"), 1, publisher), pi1, trustIn(t, wire.KindApproval, approver), time.Now())
	if r := asRefusal(err); r == nil || r.Code != "untrusted" {
		t.Errorf("got %v", err)
	}
	frame, _ := seal(t, pi1, 1, approver)
	_, err = TrustKeys(trustIn(t, wire.KindDevice, publisher), wire.KeySet{}, wire.KeySet{}).Opener(pi1)(frame)
	if r := asRefusal(err); r == nil || r.Code != "untrusted" {
		t.Errorf("got %v", err)
	}
	o := Options{Device: pi1, Trust: new(Trust)}
	_, err = o.Trust.operation(ask(t, operation("one"), 1, approver), pi1, time.Now())
	if r := asRefusal(err); r == nil || r.Code != "untrusted" {
		t.Errorf("a device that was told of no key takes an operation: %v", err)
	}
}

// What was replaced is not done when it comes back, and what comes again is handed over once more at most (H36, S33).
func TestOlderOperationIsNothing(t *testing.T) {
	r := newRig(t)
	o := r.obeying()
	o.tune.poll = 20 * time.Millisecond
	l, d := r.runDoer(o)
	r.online(l)
	old := ask(t, operation("one"), 7, r.operator)
	r.store(old, 7)
	d.took(t, "one")
	r.store(ask(t, operation("two"), 8, r.operator), 8)
	d.took(t, "one", "two")
	r.store(old, 7)
	r.store(ask(t, operation("other"), 6, r.operator), 6)
	r.store(ask(t, operation("three"), 9, r.operator), 9)
	d.took(t, "one", "two", "three")
	d.change(func() {
		if len(d.problems) > 0 {
			t.Errorf("problems %v", d.problems)
		}
	})
}

// An operation that has expired is worth a word when it is published. When it is only what is left, it is not: else every
// device would complain about the last operation that it has done.
func TestLeftOverOperationIsNothing(t *testing.T) {
	r := newRig(t)
	past := operation("one")
	past.Expires = time.Now().Add(-time.Hour).Truncate(time.Second)
	r.store(ask(t, past, 7, r.operator), 7)
	p := newProxy(t, r.srv.URL)
	o := r.obeying()
	o.Servers = []string{p.url()}
	o.tune.poll = 20 * time.Millisecond
	r.answerWith(wire.ControlEnvelope{Approvals: 1, Operation: 7})
	_, d := r.runDoer(o)
	for p.count("get.a.") < 4 {
		r.beats(1)
	}
	d.change(func() {
		if len(d.problems)+len(d.taken) > 0 {
			t.Errorf("took %v, problems %v", d.taken, d.problems)
		}
	})
}

// Without a clock of its own a device waits until a control service has told the time, and then judges by that: what has
// expired meanwhile is not done.
func TestOperationWaitsForTheTime(t *testing.T) {
	r := newRig(t)
	o := r.obeying()
	o.Clock = nil
	l, d := r.runDoer(o)
	r.online(l)
	r.store(ask(t, operation("one"), 7, r.operator), 7)
	d.has(t, CodeNoTime)
	d.change(func() {
		if len(d.taken) > 0 {
			t.Error("an operation was taken without knowing the time")
		}
	})
	r.answerWith(wire.ControlEnvelope{})
	d.took(t, "one")
	d.hasNot(t, CodeNoTime)
	past := operation("late")
	past.Expires = time.Now().Add(-time.Second).Truncate(time.Second)
	r.store(ask(t, past, 8, r.operator), 8)
	d.has(t, "expired")
	d.took(t, "one")
}

// What this build does not understand is answered: who asked has to know that nothing was done (S27).
func TestOperationUnsupported(t *testing.T) {
	tests := []struct{ name, old, new, says string }{
		{"field", `"verb":`, `"later":1,"verb":`, `"later"`},
		{"verb", `"verb":"plan"`, `"verb":"explode"`, `"explode"`},
		{"no verb", `"verb":"plan",`, ``, `no operation ""`},
		{"version", `continuo/v1`, `continuo/v9`, `continuo/v9`},
		{"kind", `"kind":"Operation"`, `"kind":"Order"`, `"Order"`},
		{"type", `"id":"odd"`, `"id":"odd","scores":"all"`, "scores"},
	}
	r := newRig(t)
	p := newProxy(t, r.srv.URL)
	o := r.obeying()
	o.Servers = []string{p.url()}
	o.tune.poll = 20 * time.Millisecond
	l, d := r.runDoer(o)
	r.online(l)
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := uint64(i + 1)
			r.store(ask(t, operation("odd"), g, r.operator, func(_ *wire.Statement, b *[]byte) {
				changed := bytes.Replace(*b, []byte(tt.old), []byte(tt.new), 1)
				if bytes.Equal(changed, *b) {
					t.Fatalf("%q is not in %s", tt.old, *b)
				}
				*b = changed
			}), g)
			got := r.receipts(i + 1)[i]
			if got.ID != "odd" || got.Result != interpret.ResultRefused || got.Code != CodeUnsupported || !strings.Contains(got.Message, tt.says) || len(got.Request) != 64 || got.Device != pi1.ID {
				t.Errorf("got %+v", got)
			}
		})
	}
	r.store(ask(t, operation("one"), 50, r.operator), 50)
	d.took(t, "one")
}

// While the journal is away the answer waits, and is given when it is there again.
func TestUnsupportedIsAnsweredLater(t *testing.T) {
	r := newRig(t)
	if err := r.js.DeleteStream(t.Context(), wire.StreamJournal); err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, r.srv.URL)
	o := r.obeying()
	o.Servers = []string{p.url()}
	l, _ := r.runDoer(o)
	r.online(l)
	op := operation("odd")
	op.Verb = "explode"
	r.store(ask(t, op, 1, r.operator), 1)
	for late := time.Now().Add(patience); p.count("ev.") < 3; {
		if time.Now().After(late) {
			t.Fatal("it was not tried again")
		}
		_ = r.nc.Flush()
	}
	r.journal()
	if got := r.receipts(1)[0]; got.ID != "odd" {
		t.Errorf("got %+v", got)
	}
}

// journal makes the journal anew.
func (r *rig) journal() {
	r.t.Helper()
	for _, s := range wire.Streams(1) {
		if s.Name != wire.StreamJournal {
			continue
		}
		config := jetstream.StreamConfig{Name: s.Name, Subjects: s.Subjects, Duplicates: s.DuplicateWindow, AllowDirect: s.AllowDirect, MaxMsgSize: s.MaxMsgSize}
		if _, err := r.js.CreateStream(r.t.Context(), config); err != nil {
			r.t.Fatal(err)
		}
	}
}

// Whatever comes under the key of operations, it is one for this device as it was signed, or refused with a code.
func FuzzOpenOperation(f *testing.F) {
	operator := newSigner(f)
	keys := trustIn(f, wire.KindApproval, operator)
	op := operation("one")
	payload, err := score.Encode(op)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ask(f, op, 3, operator), payload)
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff}, []byte(`{"apiVersion":"continuo/v2","kind":"Operation","id":"a","device":"pi-1"}`))
	f.Add([]byte("CTO1"), []byte(`{"id":"../a","device":"pi-1"}`))
	f.Add([]byte("CTO1"), bytes.Replace(payload, []byte("plan"), []byte("explode"), 1))
	f.Fuzz(func(t *testing.T, frame, payload []byte) {
		signed, err := wire.Seal(wire.Statement{
			Kind: wire.KindApproval, Audience: pi1.String(), Generation: 3, Issued: wire.UnixSeconds(op.Expires.Add(-time.Hour)), NotAfter: wire.UnixSeconds(op.Expires), Media: wire.MediaOperation,
		}, payload, operator)
		if err != nil {
			signed = nil // too large to be sent
		}
		for _, b := range [][]byte{frame, signed} {
			got, _, err := openOperation(b, pi1, keys, time.Time{})
			if r := asRefusal(err); (err == nil) != (got.generation != 0) || err != nil && (r == nil || r.Code == "" || r.Message == "") {
				t.Fatalf("got %+v, %v", got, err)
			}
			if err != nil {
				continue
			}
			if got.Device != pi1.ID || wire.CheckOperationID(got.ID) != nil {
				t.Fatalf("took %+v", got)
			}
			if _, err := hex.DecodeString(got.digest); err != nil || len(got.digest) != 64 {
				t.Fatalf("digest %q", got.digest)
			}
			if got.unsupported != "" {
				if b, err := encodeReceipt(got.refusal()); err != nil || len(b) > wire.MaxReceipt {
					t.Fatalf("no receipt of %d bytes: %v", len(b), err)
				}
			}
		}
	})
}
