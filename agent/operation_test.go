package agent_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// An operation that was under way when the agent ended is answered, what it had begun is finished, and nothing is done
// twice (K13, X56, X77).
func TestInterruptedOperation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, stop := r.running()
		offer(t, h, intent(1, preset(score.Reviewed, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1", "a")))))
		later(time.Second)
		plan := f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
		op := interpret.Operation{ID: "cut", Verb: interpret.VerbInstall, Plan: plan.ID, Expires: time.Now().Add(time.Hour)}
		r.dev.Before(func(ctx context.Context, c memory.Call) error { // the power fails in the middle of the action
			if c.Op != memory.OpWriteFile {
				return nil
			}
			r.disk = r.disk.Crash(store.LoseAll)
			<-ctx.Done()
			return ctx.Err()
		})
		if err := h.Operation(op, "d"); err != nil {
			t.Fatal(err)
		}
		later(time.Second)
		stop()
		r.dev.Before(nil)
		r.start()
		_, f, h, _ = r.running()
		later(time.Minute)
		got := f.answer(t, "cut")
		if got.Result != interpret.ResultInterrupted || got.Code != agent.CodeInterrupted {
			t.Errorf("%+v", got)
		}
		r.content("/etc/a", "1") // was begun
		if _, there := r.dev.Read("/etc/b"); there {
			t.Error("what was not begun is done")
		}
		if err := h.Operation(op, "d"); err != nil {
			t.Fatal(err)
		}
		later(time.Minute)
		if again := f.answer(t, "cut"); again.Result != interpret.ResultInterrupted {
			t.Errorf("asked again: %+v", again)
		}
	})
}

// One operation, offered by many at once, is done once; more than the device can remember are refused for good; and what
// was done long ago is not said to be interrupted when its receipt is gone (G32, X56).
func TestOperationsAreBoundedAndDoneOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, stop := r.running()
		offer(t, h, intent(1, preset(score.Reviewed, manifest("m", file("a", "/etc/a", "1")))))
		later(time.Second)
		rec := r.dev.Record()
		op := interpret.Operation{ID: "once", Verb: interpret.VerbInstall, Plan: f.plan(t, h).ID, Expires: time.Now().Add(time.Hour)}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := h.Operation(op, "d"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		later(time.Second)
		if n := count(rec, memory.OpWriteFile, "file:/etc/a"); n != 1 {
			t.Errorf("written %d times", n)
		}
		if got := f.answer(t, "once"); got.Result != interpret.ResultDone {
			t.Errorf("%+v", got)
		}
		for i := range 250 { // their receipts push out the first
			if err := h.Operation(interpret.Operation{ID: fmt.Sprintf("more-%d", i), Verb: interpret.VerbPlan, Expires: time.Now().Add(time.Minute)}, "d"); err != nil {
				t.Fatal(err)
			}
			later(100 * time.Millisecond)
		}
		if _, kept, _ := r.store.Receipt("once"); kept {
			t.Fatal("its receipt is kept")
		}
		stop()
		r.restart()
		_, f, h, _ = r.running()
		later(time.Second)
		for len(f.receipts) > 0 {
			if got := <-f.receipts; got.Result == interpret.ResultInterrupted {
				t.Fatalf("%+v", got)
			}
		}
		if err := h.Operation(op, "d"); err != nil {
			t.Fatal(err)
		}
		later(time.Second)
		if got := f.answer(t, "once"); got.Result != interpret.ResultRefused || got.Code != agent.CodeOperationReused {
			t.Errorf("%+v", got)
		}

		release := make(chan struct{})
		r.dev.Before(func(_ context.Context, _ memory.Call) error { <-release; return nil })
		refused := 0
		for i := range 40 {
			if err := h.Operation(interpret.Operation{ID: fmt.Sprintf("flood-%d", i), Verb: interpret.VerbPlan, Expires: time.Now().Add(time.Minute)}, "d"); err != nil {
				t.Fatal(err)
			}
		}
		later(time.Second)
		for len(f.receipts) > 0 {
			if got := <-f.receipts; got.Code == agent.CodeTooManyWaiting {
				refused++
			}
		}
		r.dev.Before(nil)
		close(release)
		later(time.Second)
		if refused < 5 || refused > 8 {
			t.Errorf("%d were refused", refused)
		}
		if err := h.Operation(interpret.Operation{ID: "flood-39", Verb: interpret.VerbPlan, Expires: time.Now().Add(time.Minute)}, "d"); err != nil {
			t.Fatal(err)
		}
		later(time.Second)
		if got := f.answer(t, "flood-39"); got.Code != agent.CodeTooManyWaiting {
			t.Errorf("refused, and then %+v", got)
		}
	})
}

// What cannot be done now is refused, each for its own reason, and changes nothing (S25, G31).
func TestOperationsThatCannotBeDone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		refused := func(op interpret.Operation, code interpret.Code) {
			t.Helper()
			if got := f.ask(t, h, op); got.Result != interpret.ResultRefused || got.Code != code {
				t.Errorf("%s: %s %s %s", op.Verb, got.Result, got.Code, got.Message)
			}
		}
		for _, v := range interpret.Verbs() {
			if v != interpret.VerbRestore {
				refused(interpret.Operation{Verb: v}, agent.CodeNothingToDo)
			}
		}
		refused(interpret.Operation{Verb: interpret.VerbRestore, Backup: "none"}, agent.CodeNoBackup)
		refused(interpret.Operation{Verb: "dance"}, agent.CodeNothingToDo)
		r.dev.Put("/etc/a", "theirs")
		offer(t, h, intent(1, preset(score.Reviewed, manifest("m", file("a", "/etc/a", "1")))))
		later(time.Second)
		refused(interpret.Operation{Verb: "dance"}, agent.CodeUnknownVerb)
		for _, v := range interpret.Verbs() {
			if got := f.ask(t, h, interpret.Operation{Verb: v}); got.Code == agent.CodeUnknownVerb {
				t.Errorf("this agent does not know how to %s", v)
			}
		}
		refused(interpret.Operation{Verb: interpret.VerbAdopt, Manifest: "other"}, agent.CodeNothingToDo)
		refused(interpret.Operation{Verb: interpret.VerbRelease, Manifest: "m"}, agent.CodeNothingToDo)
		got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: f.plan(t, h).ID})
		backup := got.Actions[0].Backup
		rec := r.dev.Record()
		h.Control(agent.Control{Blocked: true})
		r.dev.Put("/etc/a", "by hand")
		later(time.Second)
		plan := f.plan(t, h)
		if got := decisions(plan); !strings.HasSuffix(got, "report") || plan.Actions[0].Code != interpret.CodeBlocked {
			t.Errorf("the plan of a blocked device: %s", got)
		}
		refused(interpret.Operation{Verb: interpret.VerbInstall, Plan: plan.ID}, interpret.CodeBlocked)
		refused(interpret.Operation{Verb: interpret.VerbRestore, Backup: backup}, interpret.CodeBlocked)
		h.Control(agent.Control{})
		later(time.Second)
		refused(interpret.Operation{Verb: interpret.VerbInstall, Plan: plan.ID}, interpret.CodePlanChanged)
		late := interpret.Operation{ID: "late", Verb: interpret.VerbInstall, Plan: f.plan(t, h).ID, Expires: time.Now().Add(-time.Second)}
		if err := h.Operation(late, "d"); err != nil {
			t.Fatal(err)
		}
		later(time.Second)
		if got := f.answer(t, "late"); got.Result != interpret.ResultRefused || got.Code != "expired" {
			t.Errorf("%+v", got)
		}
		r.dev.Delete("/etc/a")
		r.dev.Mkdir("/etc/a")
		if got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbRestore, Backup: backup}); got.Result != interpret.ResultFailed || got.Code != interpret.Code(topology.CodeNotRegular) {
			t.Errorf("onto a directory: %+v", got)
		}
		if m := rec.Mutations(); len(m) > 0 {
			t.Errorf("called %v", m)
		}
	})
}

// Two operations at once are done one after the other, and the second one sees what the first one did.
func TestTwoOperationsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		offer(t, h, intent(1, preset(score.Reviewed, manifest("m", file("a", "/etc/a", "1")))))
		later(time.Second)
		rec := r.dev.Record()
		id := f.plan(t, h).ID
		for _, op := range []string{"one", "two"} {
			if err := h.Operation(interpret.Operation{ID: op, Verb: interpret.VerbInstall, Plan: id, Expires: time.Now().Add(time.Hour)}, "d"); err != nil {
				t.Fatal(err)
			}
		}
		later(time.Second)
		var results []string
		for len(f.receipts) > 0 {
			if rc := <-f.receipts; rc.Verb == interpret.VerbInstall {
				results = append(results, rc.ID+" "+string(rc.Result)+" "+string(rc.Code))
			}
		}
		if got := strings.Join(results, ", "); got != "one done , two refused plan_changed" || count(rec, memory.OpWriteFile, "file:/etc/a") != 1 {
			t.Errorf("%s", got)
		}
	})
}

// What a device does not accept it refuses, whoever signed for it, and keeps the receipt (G31).
func TestRefusedVerbsAndPaths(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.runner.Ceiling = authority.Ceiling{Adopt: []string{"/srv"}, Verbs: []interpret.Verb{interpret.VerbPlan, interpret.VerbAdopt}}
		_, f, h, _ := r.running()
		r.dev.Put("/etc/ssh/sshd_config", "theirs")
		r.dev.Put("/srv/x", "theirs")
		offer(t, h, intent(1, manifest("m", file("ssh", "/etc/ssh/sshd_config", "ours"), file("x", "/srv/x", "ours"))))
		later(time.Second)
		plan := f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
		for _, tt := range []struct {
			op   interpret.Operation
			code interpret.Code
		}{
			{interpret.Operation{ID: "ssh", Verb: interpret.VerbAdopt, Manifest: "m", Scores: []score.ID{"ssh"}}, authority.CodePath},
			{interpret.Operation{ID: "all", Verb: interpret.VerbAdopt, Manifest: "m"}, authority.CodePath},
			{interpret.Operation{ID: "install", Verb: interpret.VerbInstall, Plan: plan.ID}, authority.CodeVerb},
		} {
			got := f.ask(t, h, tt.op)
			if got.Result != interpret.ResultRefused || got.Code != tt.code {
				t.Errorf("%s: %+v", tt.op.ID, got)
			}
			if body, kept, err := r.store.Receipt(tt.op.ID); err != nil || !kept || !strings.Contains(string(body), string(tt.code)) {
				t.Errorf("%s: kept %v, %s, %v", tt.op.ID, kept, body, err)
			}
		}
		r.content("/etc/ssh/sshd_config", "theirs")
		r.content("/srv/x", "theirs")
		if got := f.ask(t, h, interpret.Operation{ID: "x", Verb: interpret.VerbAdopt, Manifest: "m", Scores: []score.ID{"x"}}); got.Result != interpret.ResultDone {
			t.Errorf("what is allowed: %+v", got)
		}
	})
}

// An answer that could not be sent is sent by the next start, once (X56).
func TestAnswersAreSentOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		link := &badLink{handler: make(chan agent.Handler, 1)}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		a := agent.New(agent.Config{Runner: r.runner, Recovered: r.lost, Open: open, Link: link, Events: r.dev.Events(), Device: "pi-1", Log: quiet()})
		go func() { a.Run(ctx); close(done) }()
		h := <-link.handler
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"))))
		if err := h.Operation(interpret.Operation{ID: "one", Verb: interpret.VerbPlan, Expires: time.Now().Add(time.Hour)}, "d"); err != nil {
			t.Fatal(err)
		}
		later(time.Minute)
		cancel()
		<-done
		for n, want := range []int{1, 0} {
			r.restart()
			_, f, _, stop := r.running()
			later(10 * time.Minute)
			got := 0
			for len(f.receipts) > 0 {
				if (<-f.receipts).ID == "one" {
					got++
				}
			}
			if got != want {
				t.Errorf("start %d sends %d answers, want %d", n+1, got, want)
			}
			stop()
		}
	})
}
