package fleet_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/natslink"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// An answerer is the device's side of operations without the rest of an agent: a real link, and books in memory.
type answerer struct {
	link *natslink.Link
	ctx  context.Context
	mu   sync.Mutex
	ids  map[string]string // digest by id
	took int
	plan *interpret.Plan
}

func (a *answerer) Offer(agent.Intent) error { return nil }

func (a *answerer) Refused(interpret.Code, string) {}

func (a *answerer) Clock(time.Duration, time.Duration) {}
func (a *answerer) TrustChanged()                      {}
func (a *answerer) Resolved(interpret.Code)            {}

func (a *answerer) Control(agent.Control) {}

func (a *answerer) Pulse() agent.Pulse { return agent.Pulse{} }

func (a *answerer) Operation(op interpret.Operation, digest string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.took++
	r := receipt(op.ID, op.Verb, interpret.ResultDone)
	r.Request, r.Actor = digest, op.Actor
	switch was, known := a.ids[op.ID]; {
	case known && was != digest:
		r.Result = interpret.ResultConflict
	case op.Verb == interpret.VerbPlan && a.plan == nil:
		r.Result, r.Code, r.Message = interpret.ResultRefused, interpret.CodeBlocked, "no plans today"
	case op.Verb == interpret.VerbPlan:
		r.Plan = a.plan
	}
	a.ids[op.ID] = digest
	go func() {
		for a.link.Send(a.ctx, r) != nil && a.ctx.Err() == nil {
		}
	}()
	return nil
}

// answer starts the link of pi1.
func (r *rig) answer() *answerer {
	r.t.Helper()
	operator, control, err := r.keys.Trusted()
	if err != nil {
		r.t.Fatal(err)
	}
	o := natslink.Options{Servers: []string{r.srv.URL}, Device: pi1, CredsFile: r.srv.Creds(r.srv.DeviceKey(pi1)), Version: "test", BootID: "boot", Instance: rand(), Clock: time.Now}
	o.Trust = trusting(r.t, operator, control)
	ctx, cancel := context.WithCancel(r.t.Context())
	a := &answerer{ctx: ctx, ids: map[string]string{}}
	if a.link, err = natslink.New(o); err != nil {
		r.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { a.link.Run(ctx, a); close(done) }()
	r.t.Cleanup(func() { cancel(); <-done })
	return a
}

// An operation goes out, is done once, and its receipt comes back; asked for again it is the same receipt, and another
// one under the same id is a conflict (H71, G33, G38).
func TestOperateAndReceipt(t *testing.T) {
	r := newRig(t, pi1, pi10)
	a := r.answer()
	op := adopt("one")
	op.Expires = time.Now().Add(time.Hour)
	if err := r.Operate(t.Context(), op, r.asking()); err != nil {
		t.Fatal(err)
	}
	first, err := r.WaitReceipt(r.within(), pi1, "one")
	if err != nil || first.Result != interpret.ResultDone || first.Actor != "eva" || first.Device != "pi-1" || len(first.Request) != 64 {
		t.Fatalf("got %+v, %v", first, err)
	}
	if err := r.Operate(t.Context(), op, r.asking()); err != nil {
		t.Fatal(err)
	}
	if again, err := r.WaitReceipt(r.within(), pi1, "one"); err != nil || again.Request != first.Request || again.Result != interpret.ResultDone {
		t.Errorf("again: %+v, %v", again, err)
	}
	op.Manifest = "another"
	if err := r.Operate(t.Context(), op, r.asking()); err != nil {
		t.Fatal(err)
	}
	if other, err := r.WaitReceipt(r.within(), pi1, "one"); err != nil || other.Result != interpret.ResultConflict || other.Request == first.Request {
		t.Errorf("another: %+v, %v", other, err)
	}
	if got, found, err := r.Receipt(t.Context(), pi1, "one"); err != nil || !found || got.Request != first.Request || got.Result != interpret.ResultDone {
		t.Errorf("the receipt is %+v, %v, %v", got, found, err)
	}
	if _, found, err := r.Receipt(t.Context(), pi10, "one"); err != nil || found {
		t.Errorf("the other device has one too: %v, %v", found, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.took != 3 {
		t.Errorf("the device heard of %d", a.took)
	}
}

// A plan is asked for and comes back, and a device that makes none says why (G29).
func TestPlan(t *testing.T) {
	r := newRig(t, pi1)
	a := r.answer()
	if _, err := r.Plan(r.within(), pi1, "eva", r.asking()); err == nil || !strings.Contains(err.Error(), "cannot get a plan of main.pi-1: refused: no plans today (blocked)") {
		t.Errorf("got %v", err)
	}
	a.mu.Lock()
	a.plan = &interpret.Plan{APIVersion: score.APIVersion, Kind: interpret.PlanKind, ID: "digest", Unchanged: 3}
	a.mu.Unlock()
	if p, err := r.Plan(r.within(), pi1, "eva", r.asking()); err != nil || p.ID != "digest" || p.Unchanged != 3 {
		t.Errorf("got %+v, %v", p, err)
	}
	if st, op := r.waiting(); op.Verb != interpret.VerbPlan || op.Actor != "eva" || st.NotAfter > wire.UnixSeconds(time.Now().Add(patience+2*time.Second)) {
		t.Errorf("the question was %+v, valid until %d", op, st.NotAfter)
	}
}
