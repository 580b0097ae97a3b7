package agent_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/schemas"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// Every receipt and every plan fits its schema, those of what is refused, of what failed and of passes as well, and what is
// kept on the device is what was sent (G40, X71).
func TestReceiptsFitTheirSchema(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		r.dev.Put("/etc/theirs", "theirs\n")
		m := func(g uint64, content string) score.Manifest {
			v := preset(score.Guarded, manifest("m", file("a", "/etc/a", content), file("theirs", "/etc/theirs", content), service("app", "app.service", "a"), container("web", "web")))
			v.Metadata.Generation = g
			return v
		}
		offer(t, h, intent(1, m(1, "1\n")))
		later(time.Minute)
		seen, checked := map[string]bool{}, 0
		check := func(what string, rc interpret.Receipt) interpret.Receipt {
			t.Helper()
			b, err := score.Encode(rc)
			if err == nil {
				err = schemas.Check("receipt", b)
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", what, err, b)
			}
			if rc.Plan != nil {
				if b, err = score.Encode(rc.Plan); err == nil {
					err = schemas.Check("plan", b)
				}
				if err != nil {
					t.Errorf("plan of %s: %v\n%s", what, err, b)
				}
			}
			if body, kept, err := r.store.Receipt(rc.ID); err != nil || !kept || len(body) == 0 {
				t.Errorf("%s: kept %v, %v", what, kept, err)
			}
			seen[string(rc.Verb)+" "+string(rc.Result)] = true
			checked++
			return rc
		}
		passes := func() {
			for len(f.receipts) > 0 {
				check("a pass", <-f.receipts)
			}
		}
		passes()
		plan := check("plan", f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan})).Plan
		check("changed", f.ask(t, h, interpret.Operation{ID: "2", Verb: interpret.VerbInstall, Plan: strings.Repeat("0", 64)}))
		done := check("install", f.ask(t, h, interpret.Operation{ID: "3", Verb: interpret.VerbInstall, Plan: plan.ID, Actor: "ann", Reason: "ticket 7"}))
		if len(done.Actions) != 1 || done.Actions[0].Backup == "" || done.Actions[0].Diff == "" || done.Actions[0].Before == "" || done.Actions[0].Authority != "plan:3" || done.Finished.IsZero() {
			t.Fatalf("got %+v", done)
		}
		check("release", f.ask(t, h, interpret.Operation{ID: "4", Verb: interpret.VerbRelease, Manifest: "m", Scores: []score.ID{"a"}}))
		check("adopt", f.ask(t, h, interpret.Operation{ID: "5", Verb: interpret.VerbAdopt, Manifest: "m", Scores: []score.ID{"a"}}))
		check("restore", f.ask(t, h, interpret.Operation{ID: "6", Verb: interpret.VerbRestore, Backup: done.Actions[0].Backup}))
		check("rollback-check", f.ask(t, h, interpret.Operation{ID: "7", Verb: interpret.VerbRollbackCheck}))
		check("unknown", f.ask(t, h, interpret.Operation{ID: "8", Verb: interpret.VerbRestore, Backup: "nothing"}))
		offer(t, h, intent(2, m(2, "2\n")))
		later(time.Minute)
		passes()
		r.dev.Fail(memory.OpWriteFile, "file:/etc/a", topology.Faultf(topology.CodeNoSpace, "no space left"))
		offer(t, h, intent(3, preset(score.Reviewed, m(3, "3\n"))))
		later(time.Minute)
		plan = f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
		check("failed", f.ask(t, h, interpret.Operation{ID: "9", Verb: interpret.VerbInstall, Plan: plan.ID}))
		for _, want := range []string{"pass done", "plan done", "install failed", "install refused", "install done", "release done", "adopt done", "restore done", "rollback-check done", "restore refused"} {
			if !seen[want] {
				t.Errorf("no receipt says %s", want)
			}
		}
		if checked < 11 {
			t.Errorf("%d receipts", checked)
		}
	})
}

// A record that cannot be kept opens no gate and stops nothing that may happen: what is benign is done, what waits for a
// signature waits, the gap is told, and the record is kept when it can be (X79).
func TestRecordsThatCannotBeKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		var full atomic.Bool
		r.disk.Fault = func(s store.Step) error {
			if full.Load() && strings.HasPrefix(s.Name, "receipts/") {
				return topology.Faultf(topology.CodeNoSpace, "no space left on the card")
			}
			return nil
		}
		_, f, h, _ := r.running()
		m := func(g uint64, content string, end bool) score.Manifest {
			b := file("b", "/etc/b", "1")
			b.Decommission = end
			v := preset(score.Guarded, manifest("m", file("a", "/etc/a", content), b))
			v.Metadata.Generation = g
			return v
		}
		offer(t, h, intent(1, m(1, "1", false)))
		later(time.Minute)
		kept := func() int {
			infos, err := r.store.Receipts()
			if err != nil {
				t.Fatal(err)
			}
			return len(infos)
		}
		before := kept()
		full.Store(true)
		offer(t, h, intent(2, m(2, "2", true)))
		later(time.Second)
		st := f.last()
		r.content("/etc/a", "2")
		r.content("/etc/b", "1")
		if b, _ := scoreOf(st, "m", "b"); b.Outcome != interpret.Pending || len(st.Problems) == 0 || st.Problems[0].Code != agent.CodeStore || kept() != before {
			t.Errorf("b is %s, problems %+v, %d receipts", b.Outcome, st.Problems, kept())
		}
		full.Store(false)
		later(20 * time.Minute)
		if st := f.last(); len(st.Problems) > 0 || kept() <= before {
			t.Errorf("problems %+v, %d receipts, before %d", st.Problems, kept(), before)
		}
	})
}

// An install that is done and whose service does not come up is told as failed, and rolled back: the receipt of the pass after
// it says what and why (G13, G41, X36).
func TestReceiptOfAFailedInstall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.dev.Program("/usr/bin/broken", memory.Program{Exits: true, Status: 3})
		_, f, h, _ := r.running()
		install := func(g uint64, app score.Score) interpret.Receipt {
			t.Helper()
			m := under(score.Policy{Preset: score.Reviewed, OnFailure: score.FailureRollBack}, manifest("m", file("conf", "/etc/conf", fmt.Sprint(g)), app))
			m.Metadata.Generation = g
			offer(t, h, intent(g, m))
			later(time.Second)
			plan := f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
			for len(f.receipts) > 0 {
				<-f.receipts
			}
			op := interpret.Operation{ID: fmt.Sprint("install-", g), Verb: interpret.VerbInstall, Plan: plan.ID, Expires: time.Now().Add(time.Hour)}
			if err := h.Operation(op, fmt.Sprint(g)); err != nil {
				t.Fatal(err)
			}
			later(time.Minute)
			rc := <-f.receipts
			if rc.ID != op.ID {
				t.Fatalf("got the receipt of %s, %s", rc.Verb, rc.ID)
			}
			return rc
		}
		if rc := install(1, service("app", "app.service", "conf")); rc.Result != interpret.ResultDone {
			t.Fatalf("the good one: %+v", rc)
		}
		later(time.Minute)
		rc := install(2, brokenUnit("app", "app.service", "conf"))
		failed := ""
		for _, x := range rc.Actions {
			if x.Outcome == interpret.Failed {
				failed += string(x.Score) + " " + string(x.Code)
			}
		}
		if rc.Result != interpret.ResultFailed || failed != "app exited" {
			t.Errorf("%s, failed: %q", rc.Result, failed)
		}
		back := map[score.ID]interpret.ReceiptAction{}
		for len(f.receipts) > 0 {
			rc := <-f.receipts
			for _, x := range rc.Actions {
				if rc.Verb == interpret.VerbPass && x.Cause == interpret.CauseRollback {
					back[x.Score] = x
				}
			}
		}
		if len(back) != 2 || back["conf"].Outcome != interpret.Changed || back["app"].Outcome != interpret.Changed || back["conf"].Authority == "" {
			t.Errorf("rolled back: %+v", back)
		}
		r.content("/etc/conf", "1")
		if !r.active(t, "app.service") {
			t.Error("the service does not answer")
		}
	})
}

// A failure leaves a receipt when it is new, and not each time that it is tried again.
func TestFailureLeavesOneReceipt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		r.dev.Fail(memory.OpWriteFile, "file:/etc/a", topology.Faultf(topology.CodeNoSpace, "no space left"))
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"))))
		later(time.Hour)
		if len(f.receipts) != 1 {
			t.Fatalf("%d receipts", len(f.receipts))
		}
		if rc := <-f.receipts; rc.Result != interpret.ResultFailed || rc.Actions[0].Code != interpret.Code(topology.CodeNoSpace) {
			t.Errorf("%+v", rc)
		}
		r.dev.Heal()
		later(10 * time.Minute)
		if rc := <-f.receipts; rc.Result != interpret.ResultDone || rc.Actions[0].Outcome != interpret.Changed {
			t.Errorf("%+v", rc)
		}
	})
}

// A last line without an end is marked in the diff of a receipt (cases 15).
func TestDiffMarksTheLastLine(t *testing.T) {
	r := newRig(t)
	r.dev.Put("/etc/a", "old\n")
	r.confirm(intent(1, manifest("m", file("a", "/etc/a", "new"))))
	body, kept, err := r.store.Receipt("by-hand")
	var rc interpret.Receipt
	if err == nil && kept {
		err = score.Decode(body, &rc)
	}
	if err != nil || len(rc.Actions) != 1 || rc.Actions[0].Diff != "--- /etc/a (before)\n+++ /etc/a\n@@ -1 +1 @@\n-old\n+new\n\\ No newline at end of file\n" {
		t.Errorf("kept %v, %v: %+v", kept, err, rc.Actions)
	}
}
