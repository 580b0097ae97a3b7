package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

func (r *rig) asking() fleet.OperateOptions { return fleet.OperateOptions{Signer: r.keys.Operator} }

func adopt(id string) interpret.Operation {
	return interpret.Operation{ID: id, Device: "pi-1", Verb: interpret.VerbAdopt, Manifest: "m", Scores: []score.ID{"s"}, Actor: "eva"}
}

func (r *rig) within() context.Context {
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	r.t.Cleanup(cancel)
	return ctx
}

// waiting is what is stored under the key of operations.
func (r *rig) waiting() (st wire.Statement, op interpret.Operation) {
	r.t.Helper()
	s, err := r.js().Stream(r.t.Context(), wire.StreamDesired)
	if err != nil {
		r.t.Fatal(err)
	}
	m, err := s.GetLastMsgForSubject(r.t.Context(), wire.DesiredSubject(wire.ApprovalKey(pi1)))
	if err != nil {
		r.t.Fatal(err)
	}
	st, payload, err := wire.Peek(m.Data)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := score.Decode(payload, &op); err != nil {
		r.t.Fatal(err)
	}
	if wire.AnnouncedGeneration(m.Header) != st.Generation {
		r.t.Errorf("generation %d is announced as %d", st.Generation, wire.AnnouncedGeneration(m.Header))
	}
	return st, op
}

// A device has one operation at a time. What it has not answered is replaced only when somebody says so; what it cannot do
// any more, has answered, or would change nothing is in nobody's way.
func TestUnansweredOperation(t *testing.T) {
	r := newRig(t, pi1)
	nc := r.srv.ConnectDevice(pi1)
	ask := func(op interpret.Operation, replace bool) error {
		o := r.asking()
		o.Replace = replace
		return r.Operate(t.Context(), op, o)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(ask(adopt("one"), false))
	err := ask(adopt("two"), false)
	un, ok := errors.AsType[*fleet.UnansweredError](err)
	if !ok || un.Operation.ID != "one" || !strings.Contains(err.Error(), `operation one yet ("adopt", asked by "eva", until `) {
		t.Errorf("got %v", err)
	}
	must(ask(adopt("one"), false)) // the same one again
	must(ask(adopt("two"), true))
	if _, op := r.waiting(); op.ID != "two" {
		t.Errorf("stored is %s", op.ID)
	}
	r.send(nc, pi1, receipt("two", interpret.VerbAdopt, interpret.ResultFailed))
	must(ask(adopt("three"), false))
	r.send(nc, pi1, receipt("three", interpret.VerbAdopt, interpret.ResultDone))
	question := adopt("four")
	question.Verb = interpret.VerbPlan
	must(ask(question, false))
	must(ask(adopt("five"), false))
	// As time passes: the one that is stored has expired.
	st, _ := r.waiting()
	past := time.Now().Add(-time.Minute).Truncate(time.Second).UTC()
	r.storeOperation(interpret.Operation{APIVersion: score.APIVersion, Kind: interpret.OperationKind, ID: "old", Device: "pi-1", Verb: interpret.VerbAdopt, Expires: past}, st.Generation+1)
	must(ask(adopt("six"), false))
	// Who can write there and has no key keeps nobody from asking, whatever it is.
	_, err = r.js().Publish(t.Context(), wire.DesiredSubject(wire.ApprovalKey(pi1)), []byte("\xdd\xff\xff\xff\xff"))
	must(err)
	must(ask(adopt("seven"), false))
}

// storeOperation stores one by hand.
func (r *rig) storeOperation(op interpret.Operation, generation uint64) {
	r.t.Helper()
	payload, err := score.Encode(op)
	if err != nil {
		r.t.Fatal(err)
	}
	st := wire.Statement{Kind: wire.KindApproval, Audience: pi1.String(), Generation: generation, Issued: 1, NotAfter: wire.UnixSeconds(op.Expires), Media: wire.MediaOperation}
	frame, err := wire.Seal(st, payload, r.keys.Operator)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.js().PublishMsg(r.t.Context(), &nats.Msg{Subject: wire.DesiredSubject(wire.ApprovalKey(pi1)), Data: frame, Header: wire.Announce(st)}); err != nil {
		r.t.Fatal(err)
	}
}

// Generations only grow: above the clock, above what is stored, and after the store has forgotten everything (H36).
func TestGenerationOfOperations(t *testing.T) {
	r := newRig(t, pi1)
	o := r.asking()
	o.Replace = true
	last := uint64(0)
	next := func(what string) {
		t.Helper()
		if err := r.Operate(t.Context(), adopt(fleet.NewOperationID()), o); err != nil {
			t.Fatal(err)
		}
		st, _ := r.waiting()
		if st.Generation <= last || st.Generation < uint64(time.Now().Add(-patience).UnixMilli()) {
			t.Errorf("%s: generation %d after %d", what, st.Generation, last)
		}
		last = st.Generation
	}
	for range 5 {
		next("at once")
	}
	last = uint64(time.Now().Add(48 * time.Hour).UnixMilli()) // somebody's clock is ahead
	r.storeOperation(adopt("ahead"), last)
	next("after one of the future")
	last = 0
	s, err := r.js().Stream(t.Context(), wire.StreamDesired)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	next("after the loss of the store")
	r.storeOperation(adopt("last"), math.MaxUint64)
	if err := r.Operate(t.Context(), adopt("x"), o); err == nil || !strings.Contains(err.Error(), "highest generation") {
		t.Errorf("got %v", err)
	}
}

// Of several people who ask at the same time one is heard, and the others are told.
func TestOperateAtTheSameTime(t *testing.T) {
	r := newRig(t, pi1)
	const n = 5
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- r.Operate(t.Context(), adopt(fmt.Sprintf("op-%d", i)), r.asking()) }()
	}
	good := 0
	for range n {
		err := <-errs
		if err == nil {
			good++
		} else if _, ok := errors.AsType[*fleet.UnansweredError](err); !ok {
			t.Error(err)
		}
	}
	if good != 1 {
		t.Errorf("%d of %d were heard", good, n)
	}
}

func TestOperateRefusals(t *testing.T) {
	r := newRig(t, pi1)
	tests := []struct {
		name   string
		change func(*interpret.Operation, *fleet.OperateOptions)
		says   string
	}{
		{"no key", func(_ *interpret.Operation, o *fleet.OperateOptions) { o.Signer = nil }, "no key for operations is given"},
		{"connection key", func(_ *interpret.Operation, o *fleet.OperateOptions) { o.Signer = r.srv.Operator }, "connection keys (U) sign no documents"},
		{"no device", func(op *interpret.Operation, _ *fleet.OperateOptions) { op.Device = "" }, `cannot use "" as a device id`},
		{"wildcard", func(op *interpret.Operation, _ *fleet.OperateOptions) { op.Device = "*" }, `cannot use "*" as a device id`},
		{"site", func(_ *interpret.Operation, o *fleet.OperateOptions) { o.Site = "all" }, `cannot use "all" as a site`},
		{"no id", func(op *interpret.Operation, _ *fleet.OperateOptions) { op.ID = "" }, "take a UUID"},
		{"no verb", func(op *interpret.Operation, _ *fleet.OperateOptions) { op.Verb = "" }, "it says not what is asked for"},
		{"expired", func(op *interpret.Operation, _ *fleet.OperateOptions) { op.Expires = time.Now().Add(-time.Second) }, "it expired at "},
		{"valid too long", func(op *interpret.Operation, _ *fleet.OperateOptions) { op.Expires = time.Now().Add(25 * time.Hour) }, "an operation is for at most 24h0m0s"},
		{"too large", func(op *interpret.Operation, _ *fleet.OperateOptions) {
			op.Reason = strings.Repeat("x", wire.MaxOperation)
		}, "approve fewer actions"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			op, o := adopt("one"), r.asking()
			tt.change(&op, &o)
			if err := r.Operate(t.Context(), op, o); err == nil || !strings.HasPrefix(err.Error(), "cannot ") || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v", err)
			}
		})
	}
	if err := r.connect(r.srv.Controller).Operate(t.Context(), adopt("one"), r.asking()); err == nil || !strings.Contains(err.Error(), "not allowed by the server") {
		t.Errorf("the control service asked for an operation: %v", err)
	}
	op := adopt("one")
	op.Expires = time.Now().Add(wire.MaxOperationLife)
	if err := r.Operate(t.Context(), op, r.asking()); err != nil {
		t.Errorf("the longest: %v", err)
	}
	if st, _ := r.waiting(); st.NotAfter > st.Issued+uint64(wire.MaxOperationLife/time.Second) {
		t.Errorf("valid from %d to %d: devices refuse it", st.Issued, st.NotAfter)
	}
}

func TestOperationIDs(t *testing.T) {
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 1000 {
		id := fleet.NewOperationID()
		if !uuid.MatchString(id) || seen[id] || wire.CheckOperationID(id) != nil {
			t.Fatalf("%q", id)
		}
		seen[id] = true
	}
}
