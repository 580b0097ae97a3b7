package agent_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// all approves every action of a plan.
func all(p interpret.Plan) (out []interpret.Approval) {
	for _, a := range p.Actions {
		out = append(out, interpret.Approval{Manifest: a.Manifest, Score: a.Score, Action: a.Action, Effect: a.Effect, Resources: a.Resources, SpecDigest: a.SpecDigest})
	}
	return out
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
		if r.content("/etc/f7", "x"); got.Result != interpret.ResultDone || got.Actions[0].Code != interpret.CodeBrake {
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

// Under reviewed nothing happens by itself, whatever goes by; a plan is made by looking, and only the plan that was
// confirmed is done (G10, G26, G27, G42, X71).
func TestReviewedInstall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		rec := r.dev.Record()
		m := preset(score.Reviewed, manifest("m", file("conf", "/etc/conf", "1"), service("app", "app.service", "conf")))
		offer(t, h, intent(1, m))
		later(30 * 24 * time.Hour)
		if n := rec.Mutations(); len(n) > 0 {
			t.Fatalf("without any consent: %v", n)
		}
		r.want(f.last(), "m/app=waiting/dependency m/conf=pending/pending_confirm")

		plan := f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
		if got := decisions(*plan); got != "create m/conf intent create pending, create m/app intent mutate pending" || !slices.Equal(plan.Actions[0].Restarts, []score.ID{"app"}) {
			t.Fatalf("plan: %s", got)
		}
		if n := rec.Mutations(); len(n) > 0 {
			t.Fatalf("planning called %v", n)
		}

		r.dev.Put("/etc/conf", "by hand") // reality moves after the plan was made
		later(time.Second)
		old := f.ask(t, h, interpret.Operation{ID: "one", Verb: interpret.VerbInstall, Plan: plan.ID})
		if old.Result != interpret.ResultRefused || old.Code != interpret.CodePlanChanged || old.Plan == nil || old.Plan.ID == plan.ID {
			t.Fatalf("the plan of before: %+v", old)
		}
		if n := rec.Mutations(); len(n) > 0 {
			t.Fatalf("a plan that is no longer true led to %v", n)
		}

		done := f.ask(t, h, interpret.Operation{ID: "two", Verb: interpret.VerbInstall, Plan: old.Plan.ID, Actor: "ann@laptop"})
		if done.Result != interpret.ResultDone || len(done.Actions) != 2 || done.Actor != "ann@laptop" {
			t.Fatalf("%+v", done)
		}
		conf := done.Actions[0]
		if conf.Authority != "plan:two" || conf.Backup == "" || !strings.Contains(conf.Diff, "-by hand") || !strings.Contains(conf.Diff, "+1") || conf.Before == conf.After {
			t.Errorf("the action of conf: %+v", conf)
		}
		r.content("/etc/conf", "1")
		if st := f.last(); !st.ConvergedAt(1) {
			t.Errorf("after it: %s", outcomes(st))
		}

		n := len(rec.Mutations())
		r.dev.Put("/etc/conf", "drift")
		later(time.Hour)
		r.want(f.last(), "m/app=unchanged m/conf=drifted/policy")
		again := f.ask(t, h, interpret.Operation{ID: "two", Verb: interpret.VerbInstall, Plan: old.Plan.ID})
		if again.Result != interpret.ResultDone || again.Finished != done.Finished {
			t.Errorf("asked again: %+v", again)
		}
		other := f.ask(t, h, interpret.Operation{ID: "two", Verb: interpret.VerbInstall, Plan: plan.ID})
		if other.Result != interpret.ResultConflict || other.Code != agent.CodeOperationReused {
			t.Errorf("the same id for something else: %+v", other)
		}
		if m := rec.Mutations(); len(m) != n {
			t.Errorf("done twice, or drift corrected: %v", m[n:])
		}
	})
}

// Under reviewed nothing is done by itself: not for 10,000 passes between which things drift, go, come back and fail, new
// generations are published that change, drop and decommission scores, and the agent starts again (G10, G27, G42).
func TestTenThousandPassesWithoutConsent(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 11))
	r := newRig(t)
	wish := func(g uint64) (in []score.Score) {
		gone := rnd.IntN(6)
		for i, s := range []score.Score{file("a", "/etc/a", fmt.Sprint(g)), file("b", "/etc/b", fmt.Sprint(g), "a"), file("c", "/etc/c", "c"),
			service("app", "app.service", "c"), container("web", "web")} {
			if i != gone {
				s.Decommission = g > 1 && s.ID == "c" && rnd.IntN(3) == 0
				in = append(in, s)
			}
		}
		return in
	}
	in := intent(1, preset(score.Reviewed, manifest("m", wish(1)...)))
	if st := r.confirm(in); !st.ConvergedAt(1) {
		t.Fatalf("confirmed: %s", outcomes(st))
	}
	rec := r.dev.Record()
	pending, drifted := 0, 0
	for n := range 10_000 {
		switch rnd.IntN(50) {
		case 0:
			g := in.Generation + 1
			m := preset(score.Reviewed, manifest("m", wish(g)...))
			m.Metadata.Generation = g
			in = intent(g, m)
		case 1:
			r.restart()
		default:
			r.spoilt(rnd)
		}
		st := r.apply(in)
		for _, s := range st.Manifests[0].Scores {
			switch s.Outcome {
			case interpret.Pending:
				pending++
			case interpret.Drifted:
				drifted++
			case interpret.Changed:
				t.Fatalf("pass %d: %s", n, outcomes(st))
			}
		}
		if m := rec.Mutations(); len(m) > 0 {
			t.Fatalf("pass %d called %v", n, m)
		}
		rec.Reset()
	}
	if pending < 1000 || drifted < 1000 {
		t.Errorf("%d times pending, %d times drifted: nothing was there to be done", pending, drifted)
	}
}
