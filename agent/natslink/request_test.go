package natslink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

func requests(n int) interpret.ApprovalRequests {
	doc := interpret.ApprovalRequests{APIVersion: score.APIVersion, Kind: interpret.RequestsKind, Device: pi1.ID}
	for i := range n {
		doc.Requests = append(doc.Requests, interpret.ApprovalRequest{
			ID: fmt.Sprintf("%064x", i), Action: interpret.PlannedAction{Manifest: "m", Score: score.ID(fmt.Sprintf("s%d", i)), Changes: []interpret.Change{{Field: "content", Have: "a", Want: "b"}}},
		})
	}
	return doc
}

// asks is what the fleet holds as the requests of pi1.
func (r *rig) asks() (doc interpret.ApprovalRequests) {
	r.t.Helper()
	s, err := r.js.Stream(r.t.Context(), wire.StreamActual)
	if err != nil {
		r.t.Fatal(err)
	}
	m, err := s.GetLastMsgForSubject(r.t.Context(), wire.RequestSubject(pi1))
	if err != nil {
		return doc
	}
	if err := json.Unmarshal(m.Data, &doc); err != nil {
		r.t.Fatal(err)
	}
	return doc
}

// What a device asks for is kept beside its status, the last word of it alone, and no other device can take it away: X83.
func TestAsk(t *testing.T) {
	r := newRig(t)
	l, _, _ := r.run(r.options())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, n := range []int{2, 1} {
		if err := l.Ask(ctx, requests(n)); err != nil {
			t.Fatal(err)
		}
		if got := r.asks(); len(got.Requests) != n || got.Requests[0].Action.Score != "s0" || len(got.Requests[0].Action.Changes) != 1 {
			t.Errorf("asked for %d, stored is %+v", n, got)
		}
	}
	denied := make(chan error, 10)
	other := r.srv.ConnectDevice(pi10, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	if err := other.Publish(wire.RequestSubject(pi1), []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if err := <-denied; !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("got %v", err)
	}
	if got := r.asks(); len(got.Requests) != 1 {
		t.Errorf("another device changed it: %+v", got)
	}
	// To clear is to write that nothing is asked for; to clear again is nothing.
	for range 2 {
		if err := l.Ask(ctx, requests(0)); err != nil {
			t.Fatal(err)
		}
		if got := r.asks(); got.Kind != interpret.RequestsKind || len(got.Requests) != 0 {
			t.Errorf("cleared: %+v", got)
		}
	}
}

// A store that is made anew gets the requests again with the status.
func TestAskAgain(t *testing.T) {
	r := newRig(t)
	o := r.options()
	l, _, _ := r.run(o)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r.report(l, status("instance-1", 1))
	if err := l.Ask(ctx, requests(1)); err != nil {
		t.Fatal(err)
	}
	r.srv.Stop()
	r.srv.Wipe()
	r.srv.Restart()
	r.srv.CreateStreams()
	for len(r.asks().Requests) != 1 {
		if ctx.Err() != nil {
			t.Fatal("never asked again")
		}
		signal(l.check) // as the next poll does
		r.online(l)
	}
}

// What is too large loses its fields first, then the last requests, and says so.
func TestEncodeRequests(t *testing.T) {
	doc := requests(3)
	long := strings.Repeat("x", 30<<10)
	for i := range doc.Requests {
		doc.Requests[i].Action.Changes[0].Have = long
	}
	read := func(doc interpret.ApprovalRequests) (out interpret.ApprovalRequests) {
		t.Helper()
		b, err := encodeRequests(doc)
		if err != nil || len(b) > wire.MaxRequests {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
		if err := json.Unmarshal(b, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := read(doc); len(got.Requests) != 3 || got.Truncated != 0 || got.Requests[1].Omitted != 1 || len(got.Requests[1].Action.Changes) != 0 {
		t.Errorf("%+v", got)
	}
	if len(doc.Requests[0].Action.Changes) != 1 {
		t.Error("what was given is changed")
	}
	doc.Truncated = 1
	for i := range doc.Requests {
		doc.Requests[i].Action.Reason = long
	}
	if got := read(doc); len(got.Requests) != 1 || got.Truncated != 3 || got.Requests[0].Action.Score != "s0" {
		t.Errorf("%d requests, %d left out", len(got.Requests), got.Truncated)
	}
	doc.Requests[0].Action.Reason = strings.Repeat(long, 3)
	if _, err := encodeRequests(doc); err == nil {
		t.Error("it fits")
	}
}
