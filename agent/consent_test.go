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
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

func (f *fleetSide) plan(t *testing.T, h agent.Handler) interpret.Plan {
	t.Helper()
	return *f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
}

// all approves every action of a plan.
func all(p interpret.Plan) (out []interpret.Approval) {
	for _, a := range p.Actions {
		out = append(out, interpret.Approval{Manifest: a.Manifest, Score: a.Score, Action: a.Action, Resources: a.Resources, SpecDigest: a.SpecDigest})
	}
	return out
}

// A plan names everything that is restarted, link by link, and its installation restarts all of it (G41).
func TestPlanNamesChainsOfRestarts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		m := func(n uint64, conf string) score.Manifest {
			m := preset(score.Reviewed, manifest("m", file("a", "/etc/a", conf), service("b", "b.service", "a"), service("c", "c.service", "b"), service("d", "d.service")))
			m.Metadata.Generation = n
			return m
		}
		for n, conf := range []string{"1", "2"} {
			offer(t, h, intent(uint64(n+1), m(uint64(n+1), conf)))
			later(time.Second)
			plan := f.plan(t, h)
			if got := fmt.Sprint(plan.Actions[0].Restarts); got != "[b c]" {
				t.Errorf("restarts %s", got)
			}
			rec := r.dev.Record()
			if got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: plan.ID}); got.Result != interpret.ResultDone {
				t.Errorf("%+v", got)
			}
			if st := f.last(); !st.ConvergedAt(uint64(n + 1)) {
				t.Errorf("%s", outcomes(st))
			}
			if n == 1 && count(rec, memory.OpRestart, "unit:c.service") != 1 {
				t.Errorf("called %v", rec.Mutations())
			}
		}
	})
}

// What was confirmed and could not be done is told, with the reason; what the plan said nobody can consent to by it, is no
// failure (S18, G41).
func TestInstallTellsWhatIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		gone := file("data", "/etc/data", "1")
		gone.Decommission = true
		r.apply(intent(1, preset(score.Reviewed, manifest("m", file("data", "/etc/data", "1")))))
		offer(t, h, intent(1, preset(score.Reviewed, manifest("m", file("data", "/etc/data", "1"), file("a", "/etc/a", "1"), file("b", "/etc/b", "1", "a")))))
		later(time.Second)
		r.dev.Fail(memory.OpWriteFile, "file:/etc/a", topology.Faultf(topology.CodeNoSpace, "no space left"))
		got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: f.plan(t, h).ID})
		if got.Result != interpret.ResultFailed || len(got.Actions) != 3 || got.Actions[2].Score != "b" || got.Actions[2].Code != interpret.CodeDependency {
			t.Fatalf("%+v", got)
		}
		r.dev.Heal()
		m := preset(score.Reviewed, manifest("m", gone, file("a", "/etc/a", "2"), file("b", "/etc/b", "1", "a")))
		m.Metadata.Generation = 2
		offer(t, h, intent(2, m))
		later(time.Second)
		got = f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: f.plan(t, h).ID})
		if got.Result != interpret.ResultDone || len(got.Actions) != 3 {
			t.Fatalf("%+v", got)
		}
		if a := got.Actions[2]; a.Score != "data" || a.Code != interpret.CodeSignature || a.Outcome != interpret.Pending {
			t.Errorf("%+v", a)
		}
		plan := f.plan(t, h)
		if got = f.ask(t, h, interpret.Operation{Verb: interpret.VerbApprove, Plan: plan.ID, Approvals: all(plan)}); got.Result != interpret.ResultDone {
			t.Fatalf("%+v", got)
		}
		r.gone("/etc/data")
		if plan = f.plan(t, h); plan.Differs() {
			t.Errorf("left: %s", decisions(plan))
		}
	})
}

// An approval that cannot be acted on does not say that it was done; above the brake it can be.
func TestApprove(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		var many []score.Score
		for i := range 8 {
			many = append(many, file(score.ID(fmt.Sprintf("f%d", i)), fmt.Sprintf("/etc/f%d", i), "x"))
		}
		offer(t, h, intent(1, manifest("m", many...)))
		later(time.Second)
		in := intent(2, manifest("m", many[0]))
		in.Assignment.Spec.Complete = false
		offer(t, h, in)
		later(time.Second)
		plan := f.plan(t, h)
		got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbApprove, Plan: plan.ID, Approvals: all(plan)})
		if got.Result != interpret.ResultFailed || len(got.Actions) != 7 || got.Actions[0].Code != interpret.CodeNotOwned {
			t.Errorf("%s %+v", decisions(plan), got)
		}
		offer(t, h, intent(3, manifest("m", many[0])))
		later(time.Second)
		plan = f.plan(t, h)
		if n := strings.Count(decisions(plan), "remove pending"); n != 7 {
			t.Fatalf("%s", decisions(plan))
		}
		got = f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: plan.ID})
		if r.content("/etc/f7", "x"); got.Result != interpret.ResultDone || got.Actions[0].Code != authority.CodeBrake {
			t.Errorf("installed: %+v", got)
		}
		got = f.ask(t, h, interpret.Operation{Verb: interpret.VerbApprove, Plan: plan.ID, Approvals: all(plan)})
		if r.gone("/etc/f7"); got.Result != interpret.ResultDone || len(got.Actions) != 7 {
			t.Errorf("approved: %+v", got)
		}
	})
}

// What is confirmed while its image is still being fetched is not said to be done.
func TestInstallWhileFetching(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		g, f, h, _ := r.withWeb()
		m := preset(score.Reviewed, manifest("m", file("a", "/etc/a", "2"), runs("web", "web:2")))
		m.Metadata.Generation = 2
		offer(t, h, intent(2, m))
		later(time.Minute)
		got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: f.plan(t, h).ID})
		if r.content("/etc/a", "1"); got.Result != interpret.ResultFailed || got.Code != agent.CodePrefetch {
			t.Fatalf("%+v", got)
		}
		g.serve("web:2", nil)
		later(time.Minute)
		got = f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: f.plan(t, h).ID})
		if r.content("/etc/a", "2"); got.Result != interpret.ResultDone || r.image("web") != "web:2" {
			t.Errorf("%+v", got)
		}
	})
}

// Nothing is adopted that is not there, or is another's; what cannot be taken over is told. What differs afterwards is
// corrected as the policy says (X92, G31).
func TestAdoptOnlyWhatIsThere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		adopt := func(ids ...score.ID) interpret.Receipt {
			return f.ask(t, h, interpret.Operation{Verb: interpret.VerbAdopt, Manifest: "m", Scores: ids})
		}
		r.dev.Put("/etc/theirs", "theirs")
		r.dev.Put("/etc/same", "1")
		r.dev.Mkdir("/etc/dir")
		r.dev.RunByHand("web", "localhost/app:1")
		pol := score.Policy{Preset: score.Converge, Window: &score.Window{Cron: "0 2 * * *", Duration: score.Duration(time.Minute)}}
		offer(t, h, intent(1, manifest("l", file("mine", "/etc/mine", "l")), under(pol, manifest("m", file("theirs", "/etc/theirs", "ours"), file("same", "/etc/same", "1"),
			file("dir", "/etc/dir", "1"), file("none", "/etc/none", "1"), file("mine", "/etc/mine", "m"), container("web", "web")))))
		later(time.Second)
		for id, code := range map[score.ID]interpret.Code{"none": agent.CodeNothingToDo, "dir": "not_regular", "mine": interpret.CodeOwnedBy, "web": authority.CodeForeign} {
			got := adopt(id)
			if got.Result != interpret.ResultRefused || len(got.Actions) != 1 || got.Actions[0].Code != code {
				t.Errorf("%s: %+v", id, got)
			}
		}
		if e, owned := r.store.Owner("file:/etc/none"); owned {
			t.Errorf("%+v", e)
		}
		if got := adopt("theirs", "none"); got.Result != interpret.ResultFailed {
			t.Errorf("%+v", got)
		}
		if got := adopt(); got.Result != interpret.ResultDone {
			t.Errorf("%+v", got)
		}
		for res, backup := range map[string]bool{"file:/etc/theirs": true, "file:/etc/same": true} {
			if e, owned := r.store.Owner(res); !owned || e.Provenance != "adopted" || (e.Backup != "") != backup {
				t.Errorf("%s: %+v", res, e)
			}
		}
		r.content("/etc/theirs", "theirs")
	})
}

// What is given up is foreign, also if it carries the mark of the manifest that it came from (X97).
func TestReleaseOfWhatMoved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		offer(t, h, intent(1, manifest("old", file("a", "/etc/a", "1"))))
		later(time.Second)
		m := manifest("new", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"))
		offer(t, h, intent(2, m)) // it carries the mark of old still
		later(time.Second)
		if got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbRelease, Manifest: "new", Scores: []score.ID{"a"}}); got.Result != interpret.ResultDone || len(got.Actions) != 1 {
			t.Fatalf("%+v", got)
		}
		r.dev.Put("/etc/a", "theirs")
		r.dev.SetMark("/etc/a", "old/a")
		r.dev.Put("/etc/b", "drift")
		later(time.Minute)
		r.content("/etc/a", "theirs")
		r.content("/etc/b", "1")
		f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: f.plan(t, h).ID})
		r.content("/etc/a", "1")
		r.dev.Put("/etc/a", "drift")
		later(time.Minute)
		r.content("/etc/a", "1") // it is owned again
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
		verbs := []interpret.Verb{interpret.VerbPlan, interpret.VerbInstall, interpret.VerbApprove, interpret.VerbAdopt, interpret.VerbRelease, interpret.VerbRollbackCheck}
		refused := func(op interpret.Operation, code interpret.Code) {
			t.Helper()
			if got := f.ask(t, h, op); got.Result != interpret.ResultRefused || got.Code != code {
				t.Errorf("%s: %s %s %s", op.Verb, got.Result, got.Code, got.Message)
			}
		}
		for _, v := range verbs {
			refused(interpret.Operation{Verb: v}, agent.CodeNothingToDo)
		}
		refused(interpret.Operation{Verb: interpret.VerbRestore, Backup: "none"}, agent.CodeNoBackup)
		refused(interpret.Operation{Verb: "dance"}, agent.CodeNothingToDo)
		r.dev.Put("/etc/a", "theirs")
		offer(t, h, intent(1, preset(score.Reviewed, manifest("m", file("a", "/etc/a", "1")))))
		later(time.Second)
		refused(interpret.Operation{Verb: "dance"}, agent.CodeUnknownVerb)
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

// A newer generation that comes while a plan is being installed ends that, and none of the new one is done by the old
// consent (G26, G42).
func TestGenerationWhileInstalling(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		v := func(n uint64, c string) agent.Intent {
			m := preset(score.Reviewed, manifest("m", file("a", "/etc/a", c), file("b", "/etc/b", c, "a"), file("c", "/etc/c", "same", "b")))
			m.Metadata.Generation = n
			return intent(n, m)
		}
		offer(t, h, v(1, "1"))
		later(time.Second)
		id := f.plan(t, h).ID
		r.dev.Before(func(_ context.Context, c memory.Call) error {
			if c.Op == memory.OpWriteFile {
				time.Sleep(time.Minute)
			}
			return nil
		})
		if err := h.Operation(interpret.Operation{ID: "inst", Verb: interpret.VerbInstall, Plan: id, Expires: time.Now().Add(time.Hour)}, "d"); err != nil {
			t.Fatal(err)
		}
		later(30 * time.Second)
		offer(t, h, v(2, "2"))
		if err := h.Operation(interpret.Operation{ID: "second", Verb: interpret.VerbInstall, Plan: id, Expires: time.Now().Add(time.Hour)}, "d"); err != nil {
			t.Fatal(err)
		}
		later(time.Hour)
		r.dev.Before(nil)
		first := f.answer(t, "inst")
		if first.Result != interpret.ResultFailed || first.Code != agent.CodeSuperseded || first.Actions[0].Outcome != interpret.Changed {
			t.Errorf("%+v", first)
		}
		r.content("/etc/a", "1")
		r.gone("/etc/b")
		r.gone("/etc/c")
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
