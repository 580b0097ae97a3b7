package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// under gives a manifest another policy.
func under(p score.Policy, m score.Manifest) score.Manifest {
	m.Spec.Policy = p
	return m
}

func preset(p score.Preset, m score.Manifest) score.Manifest {
	return under(score.Policy{Preset: p}, m)
}

// ask hands an operation to the device and returns the answer.
func (f *fleetSide) ask(t *testing.T, h agent.Handler, op interpret.Operation) interpret.Receipt {
	t.Helper()
	if op.ID == "" {
		op.ID = "op-" + strings.ReplaceAll(time.Now().Format("150405.000000000"), ".", "-")
	}
	op.Expires = time.Now().Add(time.Hour)
	if err := h.Operation(op, "digest-of-"+string(op.Verb)+op.Plan); err != nil {
		t.Fatal(err)
	}
	later(time.Second)
	return f.answer(t, op.ID)
}

// answer is the last receipt of an operation that was sent.
func (f *fleetSide) answer(t *testing.T, id string) (last interpret.Receipt) {
	t.Helper()
	for {
		select {
		case r := <-f.receipts:
			if r.ID == id {
				last = r
			}
		default:
			if last.ID == "" {
				t.Fatalf("no receipt of %s came", id)
			}
			return last
		}
	}
}

// decisions writes a plan as "action manifest/score cause effect decision …".
func decisions(p interpret.Plan) string {
	var out []string
	for _, a := range p.Actions {
		out = append(out, strings.Join([]string{string(a.Action), a.Manifest + "/" + string(a.Score), string(a.Cause), string(a.Effect), string(a.Decision)}, " "))
	}
	return strings.Join(out, ", ")
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

// Guarded is what counts without a policy: it makes things true and corrects drift, and removes nothing. What it leaves is
// removed by a plan, or by an approval of just that (S04, S15, S37, S47, S49, X80).
func TestGuardedReportsWhatIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		offer(t, h, intent(1, preset("", manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1")))))
		later(time.Second)
		r.dev.Put("/etc/a", "drift")
		later(time.Minute)
		r.content("/etc/a", "1")
		offer(t, h, intent(2, preset("", manifest("m", file("a", "/etc/a", "1")))))
		later(time.Minute)
		st := f.last()
		if len(st.Orphans) != 1 || st.Orphans[0].Code != interpret.CodeOrphaned {
			t.Fatalf("left: %+v", st.Orphans)
		}
		r.content("/etc/b", "1")

		plan := f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
		if got := decisions(*plan); got != "remove m/b absent remove report" {
			t.Fatalf("plan: %s", got)
		}
		good := interpret.Approval{Manifest: "m", Score: "b", Action: interpret.ActionRemove, Resources: plan.Actions[0].Resources, SpecDigest: plan.Actions[0].SpecDigest}
		for code, change := range map[interpret.Code]func(*interpret.Approval){
			"approval_action":       func(a *interpret.Approval) { a.Action = interpret.ActionChange },
			"approval_resource":     func(a *interpret.Approval) { a.Resources = []score.Resource{"file:/etc/a"} },
			"approval_parameters":   func(a *interpret.Approval) { a.SpecDigest = "of another" },
			agent.CodeWrongApproval: func(a *interpret.Approval) { a.Score = "a" },
		} {
			bad := good
			change(&bad)
			ref := f.ask(t, h, interpret.Operation{Verb: interpret.VerbApprove, Plan: plan.ID, Approvals: []interpret.Approval{bad}})
			if ref.Result != interpret.ResultRefused || ref.Code != code {
				t.Errorf("%s: %+v", code, ref)
			}
		}
		r.content("/etc/b", "1")
		done := f.ask(t, h, interpret.Operation{Verb: interpret.VerbApprove, Plan: plan.ID, Approvals: []interpret.Approval{good}})
		if _, there := r.dev.Read("/etc/b"); there || done.Result != interpret.ResultDone {
			t.Errorf("approved, and there is %v: %+v", there, done)
		}
	})
}

// First contact with what is there: it stays, until it is adopted; then it is corrected as anything else, and given up again
// it is foreign, although it carries our mark (K14, X92).
func TestAdoptAndRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		r.dev.Put("/etc/motd", "theirs")
		in := intent(1, manifest("m", file("motd", "/etc/motd", "ours")))
		offer(t, h, in)
		later(time.Hour)
		r.want(f.last(), "m/motd=conflict/foreign")
		r.content("/etc/motd", "theirs")

		got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbAdopt, Manifest: "m"})
		if got.Result != interpret.ResultDone || len(got.Actions) != 1 || got.Actions[0].Backup == "" {
			t.Fatalf("%+v", got)
		}
		later(time.Second)
		r.content("/etc/motd", "ours")
		r.want(f.last(), "m/motd=unchanged")

		back := f.ask(t, h, interpret.Operation{Verb: interpret.VerbRestore, Backup: got.Actions[0].Backup})
		if back.Result != interpret.ResultDone {
			t.Fatalf("%+v", back)
		}
		later(time.Hour)
		r.content("/etc/motd", "ours") // it is drift, and the policy corrects it

		f.ask(t, h, interpret.Operation{Verb: interpret.VerbRelease, Manifest: "m"})
		r.dev.Put("/etc/motd", "theirs again")
		later(time.Hour)
		r.want(f.last(), "m/motd=conflict/foreign")
		r.content("/etc/motd", "theirs again")
	})
}

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

// Windows: changes wait for their time, and a person may not (X103).
func TestWindow(t *testing.T) {
	bubble(t, func(t *testing.T) { // begins at midnight UTC
		time.Local = time.UTC
		r := newRig(t)
		_, f, h, _ := r.running()
		pol := score.Policy{Preset: score.Converge, Window: &score.Window{Cron: "0 2 * * *", Duration: score.Duration(2 * time.Hour)}}
		offer(t, h, intent(1, under(pol, manifest("m", file("a", "/etc/a", "1")))))
		later(time.Hour)
		r.want(f.last(), "m/a=pending/pending_window")
		later(time.Hour + time.Second)
		r.content("/etc/a", "1")
		later(3 * time.Hour)
		r.dev.Put("/etc/a", "drift")
		later(time.Hour)
		r.want(f.last(), "m/a=pending/pending_window")
		plan := f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
		f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: plan.ID})
		r.content("/etc/a", "1")
	})
}

// Old backups go, and never the newest, nor one that is in use.
func TestBackupsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		r.dev.Put("/etc/motd", "first")
		offer(t, h, intent(1, manifest("m", file("motd", "/etc/motd", "ours"))))
		later(time.Second)
		first := f.ask(t, h, interpret.Operation{Verb: interpret.VerbAdopt, Manifest: "m"}).Actions[0].Backup
		for range 20 { // putting one back keeps what is there
			later(time.Minute)
			f.ask(t, h, interpret.Operation{Verb: interpret.VerbRestore, Backup: first})
			r.dev.Put("/etc/motd", time.Now().String())
		}
		later(time.Hour)
		kept, err := r.store.Backups()
		if err != nil || len(kept) < 5 || len(kept) > 12 {
			t.Errorf("%d are kept, %v", len(kept), err)
		}
		if _, content, err := r.store.ReadBackup(first); err != nil || string(content) != "first" {
			t.Errorf("the one in use: %q, %v", content, err)
		}
	})
}
