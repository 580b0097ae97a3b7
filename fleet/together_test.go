package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// sent is what a device has sent.
type sent struct {
	mu sync.Mutex
	b  []byte
}

func (s *sent) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b = append(s.b, b...)
	return len(b), nil
}

func (s *sent) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(string(s.b), what)
}

// open waits until exactly these scores of pi-1 are asked for.
func (r *rig) open(scores ...score.ID) []fleet.Request {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for {
		all, err := r.Requests(ctx, pi1)
		if err != nil {
			r.t.Fatal(err)
		}
		var got []score.ID
		for _, q := range all.Open {
			got = append(got, q.Action.Score)
		}
		if fmt.Sprint(got) == fmt.Sprint(scores) {
			return all.Open
		}
		if ctx.Err() != nil {
			r.t.Fatalf("never asked for %v: %+v", scores, all)
		}
	}
}

// approve signs for a request.
func (r *rig) approve(verb interpret.Verb, q fleet.Request) string {
	r.t.Helper()
	op := fleet.Answer(verb, q)
	op.ID, op.Actor = fleet.NewOperationID(), "ann"
	if err := r.Operate(r.t.Context(), op, r.asking()); err != nil {
		r.t.Fatal(err)
	}
	return op.ID
}

func (r *rig) result(id string) interpret.Receipt {
	r.t.Helper()
	got, err := r.WaitReceipt(r.within(), pi1, id)
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

func guardedManifest(content string, gone ...score.ID) score.Manifest {
	m := manifest("m", "pi-1", file("a", "/etc/a", content), file("b", "/etc/b", "1"), file("c", "/etc/c", "1"))
	m.Spec.Policy.Preset = score.Guarded
	for i, s := range m.Spec.Scores {
		for _, g := range gone {
			m.Spec.Scores[i].Decommission = m.Spec.Scores[i].Decommission || s.ID == g
		}
	}
	return m
}

// The acceptance: control sets a benign change and a decommission; the generation bumps; the device fetches once; the benign
// change is made, and the decommission waits as a request; it is approved, done exactly once, and the request is gone: S49.
func TestAcceptance(t *testing.T) {
	r := newRig(t, pi1)
	r.serve(fleet.ServeOptions{Interval: 100 * time.Millisecond})
	r.publish(guardedManifest("1"))
	dv := r.device(pi1)
	first := r.wait(pi1, 1)
	if first.Verdict != fleet.Converged {
		t.Fatalf("%+v", first)
	}
	dv.stop() // so that it has to fetch

	p := r.publish(guardedManifest("2", "b"))
	if p[0].Generation != 2 {
		t.Fatalf("%+v", p)
	}
	counted := &sent{}
	dv = r.deviceOn(pi1, dv.Device, dv.disk.Crash(store.LoseAll), tapped(t, r.srv.URL, counted))
	st := r.until(pi1, "waits", func(s fleet.DeviceState) bool {
		return s.Status != nil && s.Status.Generation == 2 && s.Verdict == fleet.Pending
	})
	q := r.open("b")[0]
	if got, _ := dv.Read("/etc/a"); got != "2" {
		t.Errorf("the benign change: %q", got)
	}
	if got, there := dv.Read("/etc/b"); !there || got != "1" {
		t.Errorf("without a signature it is gone: %+v", st)
	}
	if q.Action.Action != interpret.ActionDecommission || q.Generation != 2 {
		t.Errorf("%+v", q)
	}
	id := r.approve(interpret.VerbApprove, q)
	if got := r.result(id); got.Result != interpret.ResultDone {
		t.Fatalf("%+v", got)
	}
	r.open()
	if _, there := dv.Read("/etc/b"); there {
		t.Error("it is still there")
	}
	r.until(pi1, "converged", func(s fleet.DeviceState) bool { return s.Verdict == fleet.Converged })
	if n := counted.count("PUB get.d."); n != 1 {
		t.Errorf("%d fetches of the document", n)
	}
	// The same signed bytes once more, and the same answer under another id, do nothing.
	dv.Put("/etc/b", "somebody else's")
	op := fleet.Answer(interpret.VerbApprove, q)
	op.ID, op.Actor = id, "ann"
	if err := r.Operate(t.Context(), op, r.asking()); err != nil {
		t.Fatal(err)
	}
	if got := r.result(r.approve(interpret.VerbApprove, q)); got.Result != interpret.ResultRefused {
		t.Errorf("%+v", got)
	}
	if got, _ := dv.Read("/etc/b"); got != "somebody else's" {
		t.Errorf("it was removed twice")
	}
}

// Two people answer two requests of a device that is away: neither answer is lost, and both are done when it comes back.
// What stands not alone is still refused while something waits, and everything that waits is replaced when somebody says so.
func TestAnswersWaitTogether(t *testing.T) {
	r := newRig(t, pi1)
	r.publish(guardedManifest("1"))
	dv := r.device(pi1)
	r.wait(pi1, 1)
	r.publish(guardedManifest("1", "b", "c"))
	open := r.open("c", "b")
	dv.stop()

	yes, no := r.approve(interpret.VerbApprove, open[0]), r.approve(interpret.VerbReject, open[1])
	if err := r.Operate(t.Context(), adopt("adopt"), r.asking()); err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*fleet.UnansweredError](r.Operate(t.Context(), adopt("two"), r.asking())); !ok {
		t.Error("one operation took the place of another")
	}
	counted := &sent{}
	dv = r.deviceOn(pi1, dv.Device, dv.disk.Crash(store.LoseAll), tapped(t, r.srv.URL, counted))
	if got := r.result(yes); got.Result != interpret.ResultDone {
		t.Errorf("%+v", got)
	}
	if got := r.result(no); got.Result != interpret.ResultDone || got.Actions[0].Code != interpret.CodeRejected {
		t.Errorf("%+v", got)
	}
	r.result("adopt")
	r.open()
	_, c := dv.Read("/etc/c")
	_, b := dv.Read("/etc/b")
	if c || !b {
		t.Errorf("there are c: %v, b: %v", c, b)
	}
	if n := counted.count("PUB get.a."); n != 1 {
		t.Errorf("%d fetches", n)
	}

	// More than fit are refused, and not dropped.
	dv.stop()
	for i := range wire.MaxOperations + 1 {
		op := fleet.Answer(interpret.VerbReject, open[1])
		op.ID = fmt.Sprintf("more-%d", i)
		_, full := errors.AsType[*fleet.UnansweredError](r.Operate(t.Context(), op, r.asking()))
		if full != (i >= wire.MaxOperations) {
			t.Errorf("%d: full: %v", i, full)
		}
	}
	o := r.asking()
	o.Replace = true
	if err := r.Operate(t.Context(), adopt("instead"), o); err != nil {
		t.Fatal(err)
	}
	if _, op := r.waiting(); op.ID != "instead" {
		t.Errorf("stored is %+v", op)
	}
}
