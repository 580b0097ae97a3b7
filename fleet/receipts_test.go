package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

func receipt(id string, verb interpret.Verb, result interpret.Result) interpret.Receipt {
	return interpret.Receipt{APIVersion: score.APIVersion, Kind: interpret.ReceiptKind, ID: id, Verb: verb, Result: result}
}

// send stores a receipt by hand, as a device would.
func (r *rig) send(nc *nats.Conn, d fleet.Device, rc interpret.Receipt) {
	r.t.Helper()
	b, err := score.Encode(rc)
	if err != nil {
		r.t.Fatal(err)
	}
	r.sendRaw(nc, d, wire.ReceiptHeaders(d, rc.ID, string(rc.Verb), []byte(nats.NewInbox())), b)
}

func (r *rig) sendRaw(nc *nats.Conn, d fleet.Device, header map[string][]string, b []byte) {
	r.t.Helper()
	answer, err := nc.RequestMsg(&nats.Msg{Subject: wire.JournalSubject(d), Header: header, Data: b}, patience)
	if err != nil {
		r.t.Fatal(err)
	}
	var ack struct {
		Error any `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil || ack.Error != nil {
		r.t.Fatalf("not stored: %s, %v", answer.Data, err)
	}
}

// The answer to a heartbeat tells of an operation that waits, until it is answered, expired, replaced or gone, whatever
// service answers and whatever it has missed.
func TestHeartbeatTellsOfOperations(t *testing.T) {
	r := newRig(t, pi1, pi10)
	stop := r.serve(fleet.ServeOptions{Interval: 10 * time.Second})
	nc, other := r.srv.ConnectDevice(pi1), r.srv.ConnectDevice(pi10)
	tells := func(what string, id string) {
		t.Helper()
		generation := uint64(0)
		if id != "" {
			st, op := r.waiting()
			if generation = st.Generation; op.ID != id {
				t.Fatalf("%s: stored is %s", what, op.ID)
			}
		}
		r.beatUntil(nc, pi1, what, func(c wire.ControlEnvelope) bool {
			return (c.Approvals == 1) == (id != "") && c.Approvals <= 1 && c.Operation == generation
		})
		if c, err := r.beat(other, pi10, "a"); err != nil || c.Approvals != 0 {
			t.Errorf("the other device hears of %+v, %v", c, err)
		}
	}
	ask := func(id string) {
		t.Helper()
		o := r.asking()
		o.Replace = true
		if err := r.Operate(t.Context(), adopt(id), o); err != nil {
			t.Fatal(err)
		}
	}
	tells("nothing", "")
	ask("one")
	tells("of one", "one")
	ask("two")
	tells("of its successor", "two")
	r.send(other, pi10, receipt("two", interpret.VerbAdopt, interpret.ResultDone)) // somebody else's receipt answers nothing
	r.send(nc, pi1, receipt("two", interpret.VerbPass, interpret.ResultDone))      // nor does a pass
	tells("of what is not answered", "two")
	r.send(nc, pi1, receipt("two", interpret.VerbAdopt, interpret.ResultDone))
	tells("nothing that is answered", "")
	r.send(nc, pi1, receipt("pass", interpret.VerbPass, interpret.ResultDone))
	stop()
	r.serve(fleet.ServeOptions{Interval: 10 * time.Second})
	r.publish(manifest("a", "pi-1", file("f", "/etc/a", "1")))
	r.beatUntil(nc, pi1, "announced", func(c wire.ControlEnvelope) bool { return c.Generation == 1 })
	tells("nothing that was answered to another service", "")
	ask("three")
	tells("of three", "three")
	st, _ := r.waiting()
	past := adopt("past")
	past.Expires = time.Now().Add(-time.Second)
	r.storeOperation(past, st.Generation+1)
	tells("nothing that has expired", "")
	ask("four")
	tells("of four", "four")
	kv, err := r.js().KeyValue(t.Context(), wire.BucketDesired)
	if err != nil {
		t.Fatal(err)
	}
	if err := kv.Delete(t.Context(), string(wire.ApprovalKey(pi1))); err != nil {
		t.Fatal(err)
	}
	tells("nothing that is deleted", "")
	ask("five")
	if _, err := r.js().Publish(t.Context(), wire.DesiredSubject(wire.ApprovalKey(pi1)), []byte("\xdd\xff\xff\xff\xff")); err != nil {
		t.Fatal(err)
	}
	tells("nothing that is rubbish", "")
}

// Without a journal documents are announced all the same.
func TestServeWithoutJournal(t *testing.T) {
	r := newRig(t, pi1)
	if err := r.js().DeleteStream(t.Context(), wire.StreamJournal); err != nil {
		t.Fatal(err)
	}
	said := make(chan error, 100)
	r.serve(fleet.ServeOptions{Interval: 10 * time.Second, Notice: func(err error) { said <- err }})
	if err := r.Operate(t.Context(), adopt("one"), r.asking()); err != nil {
		t.Fatal(err)
	}
	r.publish(manifest("a", "pi-1", file("f", "/etc/a", "1")))
	r.beatUntil(r.srv.ConnectDevice(pi1), pi1, "announced", func(c wire.ControlEnvelope) bool { return c.Generation == 1 && c.Approvals == 1 })
	if err := <-said; !strings.Contains(err.Error(), "cannot follow which operations are answered") {
		t.Errorf("said %v", err)
	}
	for what, f := range map[string]func() error{
		"history": func() error { _, err := r.History(t.Context(), pi1, 0); return err },
		"wait":    func() error { _, err := r.WaitReceipt(t.Context(), pi1, "one"); return err },
		"operate": func() error { return r.Operate(t.Context(), adopt("two"), r.asking()) },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), "continuo setup") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// History has everything, the newest first; receipts are those that somebody asked for; rubbish is left out and breaks
// nothing, and nobody writes for another device.
func TestHistory(t *testing.T) {
	r := newRig(t, pi1, pi10)
	nc, other := r.srv.ConnectDevice(pi1), r.srv.ConnectDevice(pi10)
	if all, err := r.History(t.Context(), pi1, 0); err != nil || len(all) != 0 {
		t.Errorf("got %v, %v", all, err)
	}
	r.send(nc, pi1, receipt("one", interpret.VerbAdopt, interpret.ResultDone))
	r.send(nc, pi1, receipt("pass-1", interpret.VerbPass, interpret.ResultDone))
	foreign := receipt("theirs", interpret.VerbAdopt, interpret.ResultDone)
	foreign.Device = "pi-1"
	r.send(other, pi10, foreign)
	for _, rubbish := range []string{"", "\xdd\xff\xff\xff\xff", "null", `{"apiVersion":"continuo/v9","kind":"Receipt","id":"x"}`, `{"apiVersion":"continuo/v1","kind":"Receipt","id":"../x"}`, strings.Repeat("x", 50_000)} {
		r.sendRaw(nc, pi1, nil, []byte(rubbish))
	}
	r.send(nc, pi1, receipt("two", interpret.VerbPlan, interpret.ResultRefused))
	r.send(nc, pi1, receipt("one", interpret.VerbAdopt, interpret.ResultFailed)) // sent again, later
	newer := map[string]any{"apiVersion": score.APIVersion, "kind": interpret.ReceiptKind, "id": "three", "verb": "plan", "result": "done", "later": true}
	b, err := json.Marshal(newer)
	if err != nil {
		t.Fatal(err)
	}
	r.sendRaw(nc, pi1, nil, b)
	ids := func(all []interpret.Receipt, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, rc := range all {
			out = append(out, rc.ID)
		}
		return strings.Join(out, " ")
	}
	for what, got := range map[string]string{
		"three two pass-1 one": ids(r.History(t.Context(), pi1, 0)),
		"three two pass-1":     ids(r.History(t.Context(), pi1, 3)),
		"three two one":        ids(r.Receipts(t.Context(), pi1, 0)),
		"three two":            ids(r.Receipts(t.Context(), pi1, 2)),
	} {
		if got != what {
			t.Errorf("got %q, want %q", got, what)
		}
	}
	if rc, found, err := r.Receipt(t.Context(), pi1, "one"); err != nil || !found || rc.Result != interpret.ResultFailed {
		t.Errorf("got %+v, %v, %v", rc, found, err)
	}
	if all, err := r.History(t.Context(), pi10, 0); err != nil || len(all) != 1 || all[0].Device != "pi-10" {
		t.Errorf("of the other: %+v, %v", all, err)
	}
	if _, err := r.History(t.Context(), fleet.Device{Site: "main", ID: "*"}, 0); err == nil {
		t.Error("the history of everybody was read")
	}
}

// Who waits is told why there is no answer, and hears of one that comes after the server was away.
func TestWaitReceipt(t *testing.T) {
	r := newRig(t, pi1)
	nc := r.srv.ConnectDevice(pi1, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := r.WaitReceipt(ctx, pi1, "one"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "main.pi-1 has not answered operation one") {
		t.Errorf("got %v", err)
	}
	r.sendRaw(nc, pi1, wire.ReceiptHeaders(pi1, "bad", "plan", nil), []byte("{"))
	if _, err := r.WaitReceipt(r.within(), pi1, "bad"); err == nil || !strings.Contains(err.Error(), "its answer cannot be read") {
		t.Errorf("got %v", err)
	}
	type result struct {
		rc  interpret.Receipt
		err error
	}
	done := make(chan result, 1)
	go func() {
		rc, err := r.WaitReceipt(r.within(), pi1, "one")
		done <- result{rc, err}
	}()
	r.consumers(1)
	r.srv.Stop()
	r.srv.Restart()
	for late := time.Now().Add(patience); !nc.IsConnected(); {
		if time.Now().After(late) {
			t.Fatal("the device is not connected again")
		}
	}
	r.send(nc, pi1, receipt("one", interpret.VerbAdopt, interpret.ResultDone))
	if got := <-done; got.err != nil || got.rc.ID != "one" {
		t.Errorf("got %+v", got)
	}
}

// consumers waits until somebody follows the journal.
func (r *rig) consumers(n int) {
	r.t.Helper()
	for late := time.Now().Add(patience); ; {
		s, err := r.js().Stream(r.t.Context(), wire.StreamJournal)
		if err != nil {
			r.t.Fatal(err)
		}
		if s.CachedInfo().State.Consumers == n {
			return
		}
		if time.Now().After(late) {
			r.t.Fatalf("%d consumers", s.CachedInfo().State.Consumers)
		}
	}
}
