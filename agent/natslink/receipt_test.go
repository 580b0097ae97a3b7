package natslink

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// receipts waits until the journal holds n receipts of pi1.
func (r *rig) receipts(n int) []interpret.Receipt {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	c, err := r.js.OrderedConsumer(ctx, wire.StreamJournal, jetstream.OrderedConsumerConfig{FilterSubjects: []string{wire.JournalSubject(pi1)}})
	if err != nil {
		r.t.Fatal(err)
	}
	messages, err := c.Messages()
	if err != nil {
		r.t.Fatal(err)
	}
	defer messages.Stop()
	var out []interpret.Receipt
	for len(out) < n {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			r.t.Fatalf("%d receipts of %d: %v", len(out), n, err)
		}
		var one interpret.Receipt
		if err := score.Decode(m.Data(), &one); err != nil {
			r.t.Fatal(err)
		}
		if id, verb := wire.AnnouncedReceipt(m.Headers()); id != one.ID || verb != string(one.Verb) && verb != "unknown" {
			r.t.Errorf("receipt %s of %q is announced as %s of %q", one.ID, one.Verb, id, verb)
		}
		out = append(out, one)
	}
	return out
}

// The same operation that is asked for again has the same receipt, and another one under its id is a conflict: both are in
// the journal (H71).
func TestSameOperationSameReceipt(t *testing.T) {
	r := newRig(t)
	l, err := New(r.obeying())
	if err != nil {
		t.Fatal(err)
	}
	d := &doer{handler: newHandler(), known: map[string]string{}, ctx: t.Context(), link: l}
	r.runHandler(l, d)
	r.online(l)
	op := operation("one")
	r.store(ask(t, op, 1, r.operator), 1)
	first := r.receipts(1)[0]
	r.store(ask(t, op, 2, r.operator), 2) // signed again: a new generation, the same document
	d.took(t, "one", "one")
	op.Reason = "another"
	r.store(ask(t, op, 3, r.operator), 3)
	all := r.receipts(2)
	if all[0].Result != interpret.ResultDone || all[0].Request != first.Request || all[1].Result != interpret.ResultConflict || all[1].Request == first.Request {
		t.Errorf("got %+v", all)
	}
}

// A receipt whose answer was lost is sent again, and stored once; nothing is stored of one that cannot be sent.
func TestReceiptIsStoredOnce(t *testing.T) {
	r := newRig(t)
	p := newProxy(t, r.srv.URL)
	o := r.obeying()
	o.Servers = []string{p.url()}
	o.tune.timeout = 200 * time.Millisecond
	l, _ := r.runDoer(o)
	r.online(l)
	receipt := interpret.Receipt{APIVersion: score.APIVersion, Kind: interpret.ReceiptKind, ID: "one", Verb: interpret.VerbPlan, Result: interpret.ResultDone}
	sprung := p.deafen("ev.")
	if err := l.Send(t.Context(), receipt); err == nil {
		t.Error("a lost answer is a success")
	}
	<-sprung
	p.hear()
	for {
		err := l.Send(t.Context(), receipt)
		if err == nil {
			break
		}
		t.Log(err)
	}
	other := receipt
	other.Result = interpret.ResultFailed
	if err := l.Send(t.Context(), other); err != nil {
		t.Error(err)
	}
	if got := r.receipts(2); got[0].Result != interpret.ResultDone || got[1].Result != interpret.ResultFailed {
		t.Errorf("got %+v", got)
	}
	s, err := r.js.Stream(t.Context(), wire.StreamJournal)
	if err != nil {
		t.Fatal(err)
	}
	if n := s.CachedInfo().State.Msgs; n != 2 {
		t.Errorf("%d messages are stored", n)
	}
	large := receipt
	large.ID = "large"
	for range 400 {
		large.Actions = append(large.Actions, interpret.ReceiptAction{Manifest: "m", Score: "s", Outcome: interpret.Changed, Message: strings.Repeat("m", 300)})
	}
	if err := l.Send(t.Context(), large); err != nil {
		t.Errorf("a large one: %v", err)
	}
	if got := r.receipts(3)[2]; got.ID != "large" || len(got.Actions) == 0 || len(got.Actions)+got.Truncated != 400 {
		t.Errorf("the large one has %d actions, and %d are left out", len(got.Actions), got.Truncated)
	}
	receipt.ID = "../one"
	if err := l.Send(t.Context(), receipt); err == nil || !strings.HasPrefix(err.Error(), "cannot send a receipt") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.setDown(true)
	receipt.ID = "two"
	if err := l.Send(ctx, receipt); err == nil {
		t.Error("a receipt was stored without a connection")
	}
}

// A receipt that is too large is cut until it fits, and says how much is left out.
func TestReceiptIsShortened(t *testing.T) {
	action := interpret.ReceiptAction{Manifest: "m", Score: "s", Outcome: interpret.Changed, Message: strings.Repeat("m", 300), Diff: strings.Repeat("d", 4000)}
	planned := interpret.PlannedAction{Manifest: "m", Score: "s", Kind: "File", Action: interpret.ActionChange, Reason: strings.Repeat("r", 300)}
	many := func(n int) []interpret.ReceiptAction {
		out := make([]interpret.ReceiptAction, n)
		for i := range out {
			out[i] = action
		}
		return out
	}
	plan := func(n int) *interpret.Plan {
		p := &interpret.Plan{ID: "id"}
		for range n {
			p.Actions = append(p.Actions, planned)
		}
		return p
	}
	tests := []struct {
		name             string
		receipt          interpret.Receipt
		actions, planned int // that are told; the rest is counted
		diffs            bool
	}{
		{"fits", interpret.Receipt{Actions: many(10)}, 10, 0, true},
		{"diffs go first", interpret.Receipt{Actions: many(40)}, 40, 0, false},
		{"then actions", interpret.Receipt{Actions: many(400)}, 100, 0, false},
		{"of a plan", interpret.Receipt{Plan: plan(1000)}, 0, 125, false},
		{"of both", interpret.Receipt{Actions: many(400), Plan: plan(400)}, 50, 100, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.receipt.ID = "one"
			before, err := score.Encode(tt.receipt)
			if err != nil {
				t.Fatal(err)
			}
			b, err := encodeReceipt(tt.receipt)
			if err != nil || len(b) > wire.MaxReceipt {
				t.Fatalf("%d bytes, %v", len(b), err)
			}
			var got interpret.Receipt
			if err := score.Decode(b, &got); err != nil {
				t.Fatal(err)
			}
			if len(got.Actions) != tt.actions || len(got.Actions)+got.Truncated != len(tt.receipt.Actions) {
				t.Errorf("%d actions and %d left out", len(got.Actions), got.Truncated)
			}
			if p := got.Plan; p != nil && (len(p.Actions) != tt.planned || len(p.Actions)+p.Truncated != len(tt.receipt.Plan.Actions) || p.ID != "id") {
				t.Errorf("%d planned and %d left out", len(p.Actions), p.Truncated)
			}
			if len(got.Actions) > 0 && (got.Actions[0].Diff != "") != tt.diffs {
				t.Error("the diffs are not as they should be")
			}
			if after, err := score.Encode(tt.receipt); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the caller's own receipt was changed: %v", err)
			}
		})
	}
	if _, err := encodeReceipt(interpret.Receipt{ID: "one", Actor: strings.Repeat("x", wire.MaxReceipt)}); err == nil || !strings.Contains(err.Error(), "do not fit") {
		t.Errorf("got %v", err)
	}
}
