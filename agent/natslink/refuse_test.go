package natslink

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/internal/trust"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// What is not for this device, not signed by whom it trusts, damaged, or not understood changes nothing, is reported
// once, and does not keep what comes after it from being accepted (H65, H66, S34, case 142).
func TestRefused(t *testing.T) {
	r := newRig(t)
	stranger := newSigner(t)
	frame := func(d wire.Device, generation uint64, signer nkeys.KeyPair, change ...func(*wire.Statement, *score.Assignment)) []byte {
		b, _ := seal(t, d, generation, signer, change...)
		return b
	}
	good := frame(pi1, 8, r.operator)
	tests := []struct {
		name  string
		frame []byte
		code  interpret.Code
	}{
		{"unknown key", frame(pi1, 8, stranger), "untrusted"},
		{"another device", frame(pi10, 8, r.operator), "wrong_audience"},
		{"an answer to a heartbeat", frame(pi1, 8, r.operator, func(st *wire.Statement, _ *score.Assignment) { st.Kind = wire.KindHeartbeat }), "wrong_purpose"},
		{"expired", frame(pi1, 8, r.operator, func(st *wire.Statement, _ *score.Assignment) { st.NotAfter = 2 }), "expired"},
		{"older", frame(pi1, 6, r.operator), agent.CodeRegressed},
		{"hostile bytes", []byte{0xdd, 0xff, 0xff, 0xff, 0xff}, "malformed"},
		{"rubbish", bytes.Repeat([]byte("x"), 3000), "malformed"},
		{"cut", good[:20], "malformed"},
		{"cut in the payload", good[:len(good)-1], "size_mismatch"},
		{"longer", append(bytes.Clone(good), 0), "size_mismatch"},
		{"a later envelope", append([]byte("CTO9"), good[4:]...), "unsupported_version"},
		{"another medium", frame(pi1, 8, r.operator, func(st *wire.Statement, _ *score.Assignment) { st.Media = "text/plain" }), CodeUnsupported},
		{"a later language", frame(pi1, 8, r.operator, func(_ *wire.Statement, as *score.Assignment) { as.APIVersion = "continuo/v9" }), CodeUnsupported},
		{"another name inside", frame(pi1, 8, r.operator, func(_ *wire.Statement, as *score.Assignment) { as.Metadata.Name = "pi-10" }), CodeMalformed},
		{"another generation inside", frame(pi1, 8, r.operator, func(_ *wire.Statement, as *score.Assignment) { as.Metadata.Generation = 9 }), CodeMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := r.options()
			o.tune.off = onConnect
			o.Clock = time.Now
			l, h, _ := r.run(o)
			r.online(l)
			r.publish(7)
			h.generation(t, 7)
			for range 3 {
				r.put(tt.frame, nil)
			}
			h.has(t, tt.code)
			r.publish(9)
			h.generation(t, 9)
			h.change(func() {
				if len(h.intents) != 2 {
					t.Errorf("%d intents were offered", len(h.intents))
				}
				if h.reports[tt.code] != 1 {
					t.Errorf("it was reported %d times", h.reports[tt.code])
				}
			})
			r.put(tt.frame, nil) // what comes after a good one is news
			h.until(t, "reported again", func() bool { return h.reports[tt.code] == 2 })
		})
	}
}

// No single damaged byte is accepted, and none makes a device forget (H66, case 142).
func TestEveryFlippedByteIsRefused(t *testing.T) {
	operator := newSigner(t)
	keys := trustIn(t, wire.KindDevice, operator)
	frame, _ := seal(t, pi1, 3, operator)
	if _, err := TrustKeys(keys, wire.KeySet{}, wire.KeySet{}).Opener(pi1)(frame); err != nil {
		t.Fatal(err)
	}
	for i := range frame {
		for _, mask := range []byte{0x01, 0x80, 0xff} {
			b := bytes.Clone(frame)
			b[i] ^= mask
			if _, err := TrustKeys(keys, wire.KeySet{}, wire.KeySet{}).Opener(pi1)(b); err == nil {
				t.Errorf("byte %d with %#x flipped is accepted", i, mask)
			}
		}
	}
}

// From disk a document is not too old: an expired one stays in force.
func TestAgeIsNotAskedOnDisk(t *testing.T) {
	operator := newSigner(t)
	frame, _ := seal(t, pi1, 3, operator, func(st *wire.Statement, _ *score.Assignment) { st.NotAfter = 2 })
	in, err := TrustKeys(trustIn(t, wire.KindDevice, operator), wire.KeySet{}, wire.KeySet{}).Opener(pi1)(frame)
	if err != nil || in.Generation != 3 || !bytes.Equal(in.Envelope, frame) || len(in.Digest) != 64 {
		t.Errorf("got generation %d, digest %q, %v", in.Generation, in.Digest, err)
	}
	var ref *agent.Refusal
	if _, err := TrustKeys(trustIn(t, wire.KindDevice, operator), wire.KeySet{}, wire.KeySet{}).document(frame, pi1, time.Now()); !errors.As(err, &ref) || ref.Code != "expired" {
		t.Errorf("got %v", err)
	}
}

// A field that this build does not know makes the document unsupported; extensions are carried and not acted on (S27).
func TestUnknownFields(t *testing.T) {
	operator := newSigner(t)
	keys := trustIn(t, wire.KindDevice, operator)
	sealed := func(old, new string) []byte {
		payload, err := score.Encode(assignment(pi1, 3))
		if err != nil {
			t.Fatal(err)
		}
		changed := bytes.Replace(payload, []byte(old), []byte(new), 1)
		if bytes.Equal(changed, payload) {
			t.Fatalf("%q is not in %s", old, payload)
		}
		frame, err := wire.Seal(wire.Statement{Kind: wire.KindDevice, Audience: pi1.String(), Generation: 3, Media: wire.MediaAssignment}, changed, operator)
		if err != nil {
			t.Fatal(err)
		}
		return frame
	}
	tests := []struct {
		name, old, new string
		code           interpret.Code
	}{
		{"in the assignment", `"spec":{`, `"later":1,"spec":{`, CodeUnsupported},
		{"in a score: the score's own business", `"path":`, `"later":1,"path":`, ""},
		{"an extension", `"spec":{"complete"`, `"extensions":{"restore": {"from" : "pbs"}},"spec":{"complete"`, ""},
		{"not JSON", `"spec":{`, `"spec":{{`, CodeMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in, err := TrustKeys(keys, wire.KeySet{}, wire.KeySet{}).Opener(pi1)(sealed(tt.old, tt.new))
			var ref *agent.Refusal
			switch {
			case tt.code == "" && err != nil:
				t.Errorf("got %v", err)
			case tt.code != "" && (!errors.As(err, &ref) || ref.Code != tt.code):
				t.Errorf("got %v, want %s", err, tt.code)
			}
			if raw := in.Assignment.Extensions["restore"]; tt.name == "an extension" && string(raw) != `{"from" : "pbs"}` { // S29
				t.Errorf("the extension is %q", raw)
			}
		})
	}
}

// A document that is gone, in any way, is no instruction: the last one stays, and it is said once (X16, cases 118, 120).
func TestNothingPublished(t *testing.T) {
	tests := []struct {
		name string
		gone func(context.Context, jetstream.JetStream) error
	}{
		{"deleted", func(ctx context.Context, js jetstream.JetStream) error {
			kv, err := js.KeyValue(ctx, wire.BucketDesired)
			if err != nil {
				return err
			}
			return kv.Delete(ctx, string(wire.DeviceKey(pi1)))
		}},
		{"purged", func(ctx context.Context, js jetstream.JetStream) error {
			m := nats.NewMsg(wire.DesiredSubject(wire.DeviceKey(pi1)))
			m.Header.Set("KV-Operation", "PURGE") // as tools write it, but for the roll-up that the bucket does not take
			_, err := js.PublishMsg(ctx, m)
			return err
		}},
		{"without a trace", func(ctx context.Context, js jetstream.JetStream) error {
			s, err := js.Stream(ctx, wire.StreamDesired)
			if err != nil {
				return err
			}
			return s.Purge(ctx)
		}},
		{"bucket deleted", func(ctx context.Context, js jetstream.JetStream) error {
			return js.DeleteStream(ctx, wire.StreamDesired)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			o := r.options()
			o.tune.poll = 50 * time.Millisecond
			c := r.publish(4)
			_, h, _ := r.run(o)
			h.generation(t, 4)
			if err := tt.gone(t.Context(), r.js); err != nil {
				t.Fatal(err)
			}
			h.has(t, CodeNoDesired)
			h.change(func() {
				if len(h.intents) != 1 || h.pulse.Generation != 4 {
					t.Errorf("intents %d, generation %d", len(h.intents), h.pulse.Generation)
				}
			})
			if _, err := r.js.Stream(t.Context(), wire.StreamDesired); err != nil {
				if tt.name != "bucket deleted" || !errors.Is(err, jetstream.ErrStreamNotFound) {
					t.Fatal(err)
				}
				r.srv.Stop()
				r.srv.Wipe()
				r.restart()
				r.srv.CreateStreams() // by the operator; the agent made none
			}
			frame, st := seal(t, pi1, 4, r.operator)
			if !bytes.Equal(st.Digest, c.Digest) {
				t.Fatal("the same document was sealed differently")
			}
			r.put(frame, nil)
			h.hasNot(t, CodeNoDesired)
			r.publish(5)
			h.generation(t, 5)
		})
	}
}

// A device that never had a document does not complain that there is none.
func TestNothingPublishedYet(t *testing.T) {
	r := newRig(t)
	r.answer(func(wire.Heartbeat) *wire.ControlEnvelope { return &wire.ControlEnvelope{} })
	o := r.options()
	o.tune.poll = 10 * time.Millisecond
	_, h, _ := r.run(o)
	r.beats(20)
	h.change(func() {
		if len(h.problems) > 0 {
			t.Errorf("problems %v", h.problems)
		}
	})
}

// Books that cannot be kept are no refusal: the document is offered again until they can.
func TestStoreFailureIsRetried(t *testing.T) {
	r := newRig(t)
	r.publish(1)
	l, err := New(r.options())
	if err != nil {
		t.Fatal(err)
	}
	h := &unwilling{handler: newHandler(), left: 3}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { l.Run(ctx, h); close(done) }()
	h.generation(t, 1)
	cancel()
	<-done
	if !strings.Contains(h.problems[agent.CodeStore], "disk is full") {
		t.Errorf("problems %v", h.problems)
	}
}

type unwilling struct {
	*handler
	left int
}

func (u *unwilling) Offer(in agent.Intent) error {
	if u.left--; u.left >= 0 {
		return errors.New("disk is full")
	}
	return u.handler.Offer(in)
}

func asRefusal(err error) *agent.Refusal {
	r, _ := errors.AsType[*agent.Refusal](err)
	return r
}

// Each way in which a signed document can be no good has a word of its own, so that nobody has to guess what was tried or what
// is to be mended: replay, rewind, truncation, another purpose, another target, too late, another key, a revoked one, one out
// of its bounds, too few of them, two readings of one message.
func TestEachRefusalHasItsCode(t *testing.T) {
	r := newRig(t)
	c := newChain(r)
	revoked, second, lena, stranger := newSigner(t), newSigner(t), newSigner(t), newSigner(t)
	c.last.Spec.Revoked = []string{c.public(revoked)}
	c.last.Spec.Required.Documents = 2
	c.last.Spec.Keys = append(c.last.Spec.Keys,
		trust.Key{Key: c.public(second), Name: "second", Roles: []trust.Role{trust.RolePublisher}},
		trust.Key{Key: c.public(lena), Name: "lena", Roles: []trust.Role{trust.RolePublisher}, Scope: trust.Scope{Devices: []string{"office.*"}}})
	o := c.options(func([]byte) error { return nil })
	now := time.Now()
	frame := func(change func(*wire.Statement, *[]byte), signers ...wire.Signer) []byte {
		payload, err := score.Encode(assignment(pi1, 8))
		if err != nil {
			t.Fatal(err)
		}
		st := wire.Statement{Kind: wire.KindDevice, Audience: pi1.String(), Name: pi1.ID, Generation: 8, Epoch: 1, Issued: 1, Media: wire.MediaAssignment}
		if change != nil {
			change(&st, &payload)
		}
		b, err := wire.Seal(st, payload, signers...)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := frame(nil, r.operator, second)
	tests := []struct {
		name  string
		frame []byte
		now   time.Time
		code  wire.Code // empty: it is taken
	}{
		{"good", good, now, ""},
		{"cut in the statement", good[:20], now, wire.CodeMalformed},
		{"cut in the payload", good[:len(good)-1], now, wire.CodeSizeMismatch},
		{"another payload", func() []byte { b := bytes.Clone(good); b[len(b)-1] ^= 1; return b }(), now, wire.CodeDigestMismatch},
		{"another purpose", frame(func(st *wire.Statement, _ *[]byte) { st.Kind = wire.KindApproval }, r.operator, second), now, wire.CodeWrongPurpose},
		{"another target", frame(func(st *wire.Statement, _ *[]byte) { st.Audience = pi10.String() }, r.operator, second), now, wire.CodeWrongAudience},
		{"too late", frame(func(st *wire.Statement, _ *[]byte) { st.NotAfter = 2 }, r.operator, second), now, wire.CodeExpired},
		{"too late, and nobody knows the time", frame(func(st *wire.Statement, _ *[]byte) { st.NotAfter = 2 }, r.operator, second), time.Time{}, ""},
		{"too early", frame(func(st *wire.Statement, _ *[]byte) { st.NotBefore = wire.UnixSeconds(now.Add(time.Hour)) }, r.operator, second), now, wire.CodeNotYetValid},
		{"unknown key", frame(nil, stranger), now, wire.CodeUntrusted},
		{"the root key", frame(nil, c.root), now, wire.CodeUntrusted},
		{"revoked key", frame(nil, revoked), now, wire.CodeKeyRevoked},
		{"out of scope", frame(nil, r.operator, lena), now, wire.CodeOutOfScope},
		{"too few signatures", frame(nil, r.operator), now, wire.CodeTooFewSignatures},
		{"one key and a stranger", frame(nil, r.operator, stranger), now, wire.CodeTooFewSignatures},
		{"a later trust root", frame(func(st *wire.Statement, _ *[]byte) { st.Epoch = 9 }, r.operator, second), now, wire.CodeUnknownEpoch},
		{"two readings", frame(func(_ *wire.Statement, b *[]byte) {
			*b = bytes.Replace(*b, []byte(`"spec":{`), []byte(`"kind":"Assignment","spec":{`), 1)
		}, r.operator, second), now, CodeMalformed},
	}
	seen := map[wire.Code]string{}
	for _, tt := range tests {
		_, err := o.Trust.document(tt.frame, pi1, tt.now)
		var got wire.Code
		if refused := asRefusal(err); refused != nil {
			got = wire.Code(refused.Code)
		}
		if got != tt.code || (err == nil) != (tt.code == "") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.code)
		}
		seen[tt.code] = tt.name
	}
	if len(seen) < 13 {
		t.Errorf("only %d words: %v", len(seen), seen)
	}
	// Replay, rewind, and two documents of one generation are for who keeps the books: the same again is nothing, an older one
	// generation_regressed, another one equivocation (agent:TestRefusedIntentsKeepTheLastKnown).
}
