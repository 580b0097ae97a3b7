package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// open is what the device asks for now; ok tells whether it was said since the last look.
func (f *fleetSide) open() (doc interpret.ApprovalRequests, said int) {
	for {
		select {
		case doc = <-f.asked:
			said++
		default:
			return doc, said
		}
	}
}

// answering is the operation that answers a request.
func answering(verb interpret.Verb, r interpret.ApprovalRequest) interpret.Operation {
	x := r.Action
	return interpret.Operation{ID: "op-" + fmt.Sprint(time.Now().UnixNano()), Verb: verb, Actor: "ann", Approvals: []interpret.Approval{{
		Request: r.ID, Manifest: x.Manifest, Score: x.Score, Action: x.Action, Effect: x.Effect, Resources: x.Resources, SpecDigest: x.SpecDigest,
	}}}
}

// guardedFiles is a manifest that changes /etc/a by itself, and asks before /etc/b goes.
func guardedFiles(g uint64, content string, end bool) score.Manifest {
	b := file("b", "/etc/b", "1")
	b.Decommission = end
	m := preset(score.Guarded, manifest("m", file("a", "/etc/a", content), b))
	m.Metadata.Generation = g
	return m
}

// A gated action is asked for once, with all that there is to know; what is approved by its request is done once, and then
// there is no request any more: S05, S47, S49, X83.
func TestRequestIsAskedAndApproved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, stop := r.running()
		offer(t, h, intent(1, guardedFiles(1, "1", false)))
		later(time.Minute)
		if doc, said := f.open(); said != 1 || len(doc.Requests) > 0 || doc.Kind != interpret.RequestsKind {
			t.Fatalf("without anything to ask for, said %d times: %+v", said, doc)
		}
		asked := time.Now()
		offer(t, h, intent(2, guardedFiles(2, "2", true)))
		later(time.Minute)
		doc, _ := f.open()
		if len(doc.Requests) != 1 || doc.Generation != 2 || doc.Device != "pi-1" {
			t.Fatalf("%+v", doc)
		}
		q := doc.Requests[0]
		x := q.Action
		if x.Manifest != "m" || x.Score != "b" || x.Action != interpret.ActionDecommission || x.Effect != interpret.Remove || x.Code != interpret.CodeSignature ||
			x.Provenance != interpret.Owned || fmt.Sprint(x.Resources) != "[file:/etc/b]" || x.SpecDigest == "" || x.Reason == "" || len(q.ID) != 64 || q.Since.Before(asked.Truncate(time.Second)) {
			t.Errorf("%+v", q)
		}
		// Nothing new: nothing is said, and nothing is written.
		offer(t, h, intent(3, guardedFiles(2, "2", true)))
		later(time.Hour)
		if doc, said := f.open(); said != 1 || doc.Generation != 3 || doc.Requests[0].ID != q.ID || !doc.Requests[0].Since.Equal(q.Since) {
			t.Errorf("a later generation of the rest: said %d times, %+v", said, doc)
		}
		wrote := 0
		r.disk.Fault = func(s store.Step) error {
			if s.Op != "read" {
				wrote++
			}
			return nil
		}
		later(24 * time.Hour)
		if doc, said := f.open(); said != 0 || wrote != 0 {
			t.Errorf("a day later, %d writes: %+v", wrote, doc)
		}
		r.disk.Fault = nil
		stop()
		r.restart()
		_, f, h, _ = r.running()
		later(time.Minute)
		if doc, said := f.open(); said != 1 || len(doc.Requests) != 1 || doc.Requests[0].ID != q.ID || !doc.Requests[0].Since.Equal(q.Since) {
			t.Errorf("after a restart: said %d times, %+v", said, doc)
		}

		op := answering(interpret.VerbApprove, q)
		done := f.ask(t, h, op)
		if _, there := r.dev.Read("/etc/b"); there || done.Result != interpret.ResultDone {
			t.Fatalf("approved, and there is %v: %+v", there, done)
		}
		if doc, said := f.open(); said != 1 || len(doc.Requests) != 0 {
			t.Errorf("after it: said %d times, %+v", said, doc)
		}
		r.dev.Put("/etc/b", "somebody else's")
		f.ask(t, h, op)
		again := f.ask(t, h, answering(interpret.VerbApprove, q))
		later(time.Hour)
		if r.content("/etc/b", "somebody else's"); again.Result != interpret.ResultRefused {
			t.Errorf("the same request once more: %+v", again)
		}
		if doc, said := f.open(); said != 0 {
			t.Errorf("cleared again: %+v", doc)
		}
	})
}

// An approval by request that differs in anything from what is asked for is refused with a code of its own: S19, X80.
func TestApprovalByRequestMustBeExact(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		log, lines := recorded()
		_, f, h, _ := r.running(withLog(log))
		offer(t, h, intent(1, guardedFiles(1, "1", false)))
		later(time.Minute)
		offer(t, h, intent(2, guardedFiles(2, "1", true)))
		later(time.Minute)
		doc, _ := f.open()
		q := doc.Requests[0]
		for name, tt := range map[string]struct {
			change func(*interpret.Operation)
			code   interpret.Code
		}{
			"action":           {func(o *interpret.Operation) { o.Approvals[0].Action = interpret.ActionRemove }, agent.CodeApprovalAction},
			"effect":           {func(o *interpret.Operation) { o.Approvals[0].Effect = interpret.Destroy }, agent.CodeApprovalAction},
			"resource":         {func(o *interpret.Operation) { o.Approvals[0].Resources = []score.Resource{"file:/etc/a"} }, agent.CodeApprovalResource},
			"spec":             {func(o *interpret.Operation) { o.Approvals[0].SpecDigest = q.ID }, agent.CodeApprovalParameters},
			"request":          {func(o *interpret.Operation) { o.Approvals[0].Request = strings.Repeat("0", 64) }, agent.CodeApprovalParameters},
			"score":            {func(o *interpret.Operation) { o.Approvals[0].Score = "a" }, agent.CodeWrongApproval},
			"no request":       {func(o *interpret.Operation) { o.Approvals[0].Request = "" }, agent.CodeWrongApproval},
			"nothing":          {func(o *interpret.Operation) { o.Approvals = nil }, agent.CodeWrongApproval},
			"a plan of before": {func(o *interpret.Operation) { o.Plan = strings.Repeat("0", 64) }, interpret.CodePlanChanged},
		} {
			for _, verb := range []interpret.Verb{interpret.VerbApprove, interpret.VerbReject} {
				if verb == interpret.VerbReject && name == "a plan of before" {
					continue // a rejection is about no plan
				}
				lines.Reset()
				op := answering(verb, q)
				tt.change(&op)
				if got := f.ask(t, h, op); got.Result != interpret.ResultRefused || got.Code != tt.code {
					t.Errorf("%s %s: %s %s %s", verb, name, got.Result, got.Code, got.Message)
				}
				if s := lines.String(); !strings.Contains(s, "level=error") || !strings.Contains(s, "code="+string(tt.code)) {
					t.Errorf("%s %s: logged %s", verb, name, s)
				}
			}
		}
		r.content("/etc/b", "1")
		if _, said := f.open(); said != 0 {
			t.Error("what was refused changed the requests")
		}
		// What differs is another thing than when it was asked: then it is another question.
		offer(t, h, intent(3, preset(score.Reviewed, manifest("m", file("a", "/etc/a", "2"), file("b", "/etc/b", "1")))))
		later(time.Minute)
		doc, _ = f.open()
		if len(doc.Requests) != 1 || doc.Requests[0].Action.Code != interpret.CodeConfirm || len(doc.Requests[0].Action.Changes) == 0 {
			t.Fatalf("%+v", doc)
		}
		r.dev.Put("/etc/a", "edited by hand")
		if got := f.ask(t, h, answering(interpret.VerbApprove, doc.Requests[0])); got.Result != interpret.ResultRefused || got.Code != agent.CodeApprovalParameters {
			t.Errorf("what it would overwrite is another content: %+v", got)
		}
		next, _ := f.open()
		if len(next.Requests) != 1 || next.Requests[0].ID == doc.Requests[0].ID {
			t.Fatalf("%+v", next)
		}
		if got := f.ask(t, h, answering(interpret.VerbApprove, next.Requests[0])); got.Result != interpret.ResultDone {
			t.Errorf("%+v", got)
		}
		r.content("/etc/a", "2")
	})
}

// A rejection is terminal: the request is gone, also after a restart, and is not made again while the same is wanted. Another
// wish is another request, and when it is over the same may be asked for again.
func TestRejectedRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, stop := r.running()
		offer(t, h, intent(1, guardedFiles(1, "1", false)))
		later(time.Minute)
		offer(t, h, intent(2, guardedFiles(2, "1", true)))
		later(time.Minute)
		doc, _ := f.open()
		q := doc.Requests[0]
		for range 2 { // to reject again is nothing
			if got := f.ask(t, h, answering(interpret.VerbReject, q)); got.Result != interpret.ResultDone || len(got.Actions) != 1 || got.Actions[0].Code != interpret.CodeRejected {
				t.Fatalf("%+v", got)
			}
		}
		if doc, said := f.open(); said != 1 || len(doc.Requests) > 0 {
			t.Errorf("rejected: said %d times, %+v", said, doc)
		}
		r.want(f.last(), "m/a=unchanged m/b=pending/rejected")
		stop()
		r.restart()
		_, f, h, _ = r.running()
		later(24 * time.Hour)
		if doc, said := f.open(); said != 1 || len(doc.Requests) > 0 {
			t.Errorf("after a restart: said %d times, %+v", said, doc)
		}
		// Who signed before it was rejected comes too late.
		if got := f.ask(t, h, answering(interpret.VerbApprove, q)); got.Result != interpret.ResultRefused || got.Code != interpret.CodeRejected || !strings.Contains(got.Message, "rejected by ann at ") {
			t.Errorf("%+v", got)
		}
		r.content("/etc/b", "1")
		// It is not wanted any more, and later once more.
		offer(t, h, intent(3, guardedFiles(3, "1", false)))
		later(time.Hour)
		offer(t, h, intent(4, guardedFiles(4, "1", true)))
		later(time.Hour)
		if doc, said := f.open(); said == 0 || len(doc.Requests) != 1 || doc.Requests[0].ID != q.ID {
			t.Fatalf("wanted once more: said %d times, %+v", said, doc)
		}
		if got := f.ask(t, h, answering(interpret.VerbReject, q)); got.Result != interpret.ResultDone {
			t.Fatalf("%+v", got)
		}
		// A decision of a person about a plan is another one.
		plan := f.plan(t, h)
		if got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbApprove, Plan: plan.ID, Approvals: all(plan)}); got.Result != interpret.ResultDone {
			t.Errorf("%+v", got)
		}
		r.gone("/etc/b")
		later(time.Hour)
		if notes := r.store.Notes("rejected/"); len(notes) > 0 {
			t.Errorf("what is over is remembered: %v", notes)
		}
		if notes := r.store.Notes("ask/"); len(notes) > 0 {
			t.Errorf("what is over is asked for: %v", notes)
		}
	})
}
