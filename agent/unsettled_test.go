package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// What is left over goes after all that may come in its place: every score of its manifest, and of the others what failed or
// is still to be made. What a policy leaves to a person does not hold up other manifests. The plan says so before, and who
// signs for the removal need not wait (X99, cases 124, 126).
func TestLeftOverGoesLast(t *testing.T) {
	k, x := file("k", "/etc/k", "1"), file("x", "/etc/x", "1")
	waiting := file("k", "/etc/k", "2")
	waiting.Policy = &score.Policy{OnIntent: score.IntentConfirm}
	for _, tt := range []struct {
		name   string
		own    score.Score
		other  score.Manifest
		behind string // what it waits for
	}{
		{"all is well", k, manifest("other", x), ""},
		{"another fails", k, manifest("other", x, file("y", "/etc/bad", "1")), "other/y has not converged"},
		{"another is foreign", k, manifest("other", x, file("y", "/etc/theirs", "1")), "other/y has not converged"},
		{"another waits for a person", k, preset(score.Reviewed, manifest("other", file("x", "/etc/x", "2"))), ""},
		{"another waits for a person to make something", k, preset(score.Reviewed, manifest("other", x, file("y", "/etc/new", "1"))), "other/y has not converged"},
		{"drift of another is reported", k, under(score.Policy{OnDrift: score.DriftReport}, manifest("other", x)), ""},
		{"its own manifest waits for a person", waiting, manifest("other", x), "conv/k has not converged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				r.dev.Put("/etc/theirs", "theirs")
				r.dev.Fail(memory.OpFile, "file:/etc/bad", topology.Faultf(topology.CodeNotRegular, "it is a directory"))
				r.apply(intent(1, manifest("conv", k, file("c", "/etc/c", "1")), manifest("other", x)))
				r.dev.Put("/etc/x", "drift")
				in := intent(2, manifest("conv", tt.own), tt.other)
				plan, err := r.runner.Plan(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				removal := plan.Actions[len(plan.Actions)-1]
				_, f, h, _ := r.running()
				offer(t, h, in)
				later(time.Second)
				if tt.behind == "" {
					if r.gone("/etc/c"); removal.Decision != interpret.DecideApply {
						t.Errorf("planned: %+v", removal)
					}
					return
				}
				r.content("/etc/c", "1")
				if removal.Decision != interpret.DecideReport || removal.Code != agent.CodeLast || !strings.Contains(removal.Reason, tt.behind) {
					t.Errorf("planned: %+v", removal)
				}
				if o := f.last().Orphans; len(o) != 1 || o[0].Code != removal.Code || o[0].Message != removal.Reason {
					t.Errorf("left: %+v", o)
				}
				plan = f.plan(t, h)
				approvals := all(plan)[len(plan.Actions)-1:]
				if got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbApprove, Plan: plan.ID, Approvals: approvals}); got.Result != interpret.ResultDone {
					t.Errorf("%s approved: %+v", decisions(plan), got)
				}
				r.gone("/etc/c")
			})
		})
	}
}

// What a signed approval has begun to remove is finished after a crash, whatever has not converged (K13).
func TestBegunLeftOverIsFinished(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.dev.Fail(memory.OpFile, "file:/etc/bad", topology.Faultf(topology.CodeNotRegular, "it is a directory"))
		r.apply(intent(1, manifest("m", file("a", "/etc/a", "1"), file("c", "/etc/c", "1"))))
		_, f, h, stop := r.running()
		offer(t, h, intent(2, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/bad", "1"))))
		later(time.Second)
		plan := f.plan(t, h)
		r.dev.Before(func(ctx context.Context, c memory.Call) error { // the power fails in the middle of the removal
			if c.Op != memory.OpRemoveFile {
				return nil
			}
			r.disk = r.disk.Crash(store.LoseAll)
			<-ctx.Done()
			return ctx.Err()
		})
		op := interpret.Operation{ID: "cut", Verb: interpret.VerbApprove, Plan: plan.ID, Approvals: all(plan)[1:], Expires: time.Now().Add(time.Hour)}
		if err := h.Operation(op, "d"); err != nil {
			t.Fatal(err)
		}
		later(time.Second)
		r.content("/etc/c", "1")
		stop()
		r.dev.Before(nil)
		r.start()
		r.running()
		later(time.Minute)
		r.gone("/etc/c")
	})
}

// What the policy gives up is given up last, too.
func TestReleasedLast(t *testing.T) {
	r := newRig(t)
	pol := score.Policy{Preset: score.Converge, OnAbsent: score.AbsentRelease}
	r.apply(intent(1, under(pol, manifest("m", file("a", "/etc/a", "1"), file("c", "/etc/c", "1")))))
	r.dev.Fail(memory.OpFile, "file:/etc/bad", topology.Faultf(topology.CodeIO, "io"))
	next := intent(2, under(pol, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/bad", "1"))))
	r.apply(next)
	if _, owned := r.store.Owner("file:/etc/c"); !owned {
		t.Error("it is given up before the rest has converged")
	}
	r.dev.Heal()
	r.confirm(next) // it is not tried again at once by itself
	if _, owned := r.store.Owner("file:/etc/c"); owned {
		t.Error("it is owned still")
	}
}
