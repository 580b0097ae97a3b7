package agent_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/schemas"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

func withLog(log *logrus.Entry) func(*agent.Config) { return func(c *agent.Config) { c.Log = log } }

// probedApp is a service that listens on port 80, or should.
func probedApp(h score.Health) score.Score {
	s := service("app", "app.service")
	s.Health = &h
	return s
}

func port80() *score.Probe {
	return &score.Probe{TCP: &score.TCPProbe{Port: 80}, Period: score.Duration(10 * time.Second), FailureThreshold: 2}
}

// What comes after a score that is not ready is not touched until it is, and so long the generation has not converged (H64).
func TestReadinessGates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		offer(t, h, intent(1, manifest("m", probedApp(score.Health{Readiness: port80()}), file("b", "/etc/b", "1", "app"), file("c", "/etc/c", "1"))))
		later(10 * time.Minute)
		st := f.last()
		b, _ := scoreOf(st, "m", "b")
		if app, _ := scoreOf(st, "m", "app"); app.Code != interpret.CodeUnhealthy || app.Conditions.Healthy == nil || *app.Conditions.Healthy {
			t.Errorf("app: %+v", app)
		}
		if b.Outcome != interpret.Waiting || b.Code != interpret.CodeDependency || !strings.Contains(b.Message, `"app"`) || st.ConvergedAt(1) || st.State != interpret.StateConverging {
			t.Errorf("b: %s %s %q, state %s", b.Outcome, b.Code, b.Message, st.State)
		}
		r.gone("/etc/b")
		r.content("/etc/c", "1")
		r.dev.Listen("127.0.0.1:80", memory.Endpoint{})
		later(11 * time.Second)
		r.content("/etc/b", "1")
		if st := f.last(); !st.ConvergedAt(1) {
			t.Errorf("when it is ready: %s", outcomes(st))
		}
	})
}

// What hangs is started again, with longer and longer pauses; and not at all where drift is only reported (H64, S18).
func TestLivenessRestarts(t *testing.T) {
	for _, on := range []score.OnDrift{score.DriftCorrect, score.DriftReport} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			_, f, h, _ := r.running()
			r.dev.Listen("127.0.0.1:80", memory.Endpoint{})
			offer(t, h, intent(1, under(score.Policy{Preset: score.Converge, OnDrift: on}, manifest("m", probedApp(score.Health{Liveness: port80()})))))
			later(10 * time.Minute)
			if st := f.last(); !st.ConvergedAt(1) {
				t.Fatalf("%s: %s", on, outcomes(st))
			}
			restarts := r.timed(memory.OpRestart, nil)
			r.dev.Unlisten("127.0.0.1:80")
			later(2 * time.Hour)
			if on == score.DriftReport {
				if n := restarts.number(); n > 0 {
					t.Errorf("restarted %d times", n)
				}
				if app, _ := scoreOf(f.last(), "m", "app"); app.Outcome != interpret.Drifted || app.Cause != interpret.CauseLiveness && len(app.Changes) == 0 {
					t.Errorf("it is not told: %+v", app)
				}
				return
			}
			gaps := restarts.gaps()
			if n := len(gaps) + 1; n < 10 || n > 40 || gaps[len(gaps)-1] < 300 {
				t.Errorf("%d restarts in two hours, with pauses of %v s", n, gaps)
			}
			r.dev.Listen("127.0.0.1:80", memory.Endpoint{})
			later(time.Hour)
			n := restarts.number()
			later(time.Hour)
			if st := f.last(); !st.ConvergedAt(1) || restarts.number() != n {
				t.Errorf("it works again: %s, restarted %d times", outcomes(st), restarts.number()-n)
			}
		})
	}
}

// Two services that use one file are each restarted once when it changes, whatever else is changed with it (G15).
func TestFileOfTwoServices(t *testing.T) {
	r := newRig(t)
	m := func(g uint64, content string) agent.Intent {
		v := manifest("m", file("conf", "/etc/conf", content), file("more", "/etc/more", content), service("x", "x.service", "conf"), service("y", "y.service", "conf", "more"), service("z", "z.service"))
		v.Metadata.Generation = g
		return intent(g, v)
	}
	r.apply(m(1, "1"))
	rec := r.dev.Record()
	r.want(r.apply(m(2, "2")), "m/conf=changed m/more=changed m/x=changed m/y=changed m/z=unchanged")
	for unit, want := range map[topology.Resource]int{"unit:x.service": 1, "unit:y.service": 1, "unit:z.service": 0} {
		if n := count(rec, memory.OpRestart, unit) + count(rec, memory.OpStart, unit); n != want {
			t.Errorf("%s was restarted %d times", unit, n)
		}
	}
	rec.Reset()
	if r.apply(m(2, "2")); len(rec.Mutations()) > 0 {
		t.Errorf("once more: %v", rec.Mutations())
	}
}

// What the books say of the device is never believed: it is looked at (G09).
func TestBooksAreNoReality(t *testing.T) {
	r := newRig(t)
	in := intent(1, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"), service("app", "app.service"), container("web", "web")))
	r.apply(in)
	r.dev.Put("/etc/a", "by hand")
	r.dev.Delete("/etc/b")
	r.dev.StopUnit("app.service")
	r.dev.StopUnit("web.service")
	r.restart()
	if n := len(r.store.ByManifest("m")); n < 4 {
		t.Fatalf("the books claim %d things", n)
	}
	st, err := r.runner.Observe(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	r.want(st, "m/a=drifted m/app=drifted m/b=drifted m/web=drifted")
}

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
