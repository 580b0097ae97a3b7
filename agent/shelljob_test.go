//go:build shelljob

package agent_test

import (
	"context"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// TestShellJobNeedsDeviceAndSignature: refused unless the device's own configuration enables it; then every run waits for a
// signature of its own, and is not run again (H78).
func TestShellJobNeedsDeviceAndSignature(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		of := func(generation uint64, arg string) (m score.Manifest) {
			m = manifest("m", score.Score{ID: "hatch", Spec: score.ShellJob{Name: "hatch", Exec: []string{"/usr/bin/do", arg}, Verify: []string{"/usr/bin/is", arg}}})
			m.Spec.AllowExperimental, m.Metadata.Generation = true, generation
			return m
		}
		// its check says no until it was run
		r.dev.JobEnds("hatch-check", memory.JobEnd{ExitCode: 1})
		r.dev.Before(func(_ context.Context, c memory.Call) error {
			if c.Op == memory.OpRunJob && c.Resource == "job:hatch" {
				r.dev.JobEnds("hatch-check", memory.JobEnd{})
			}
			return nil
		})
		_, f, h, _ := r.running()
		want := func(what string, outcome interpret.Outcome, code interpret.Code, runs int) {
			t.Helper()
			st := f.plan(t, h)
			last := f.last().Manifests[0].Scores[0]
			if last.Outcome != outcome || last.Code != code || r.dev.JobRuns("hatch") != runs || runs == 0 && r.dev.JobRuns("hatch-check") != 0 {
				t.Fatalf("%s: %s %s %s, run %d times; %+v", what, last.Outcome, last.Code, last.Message, r.dev.JobRuns("hatch"), st.Actions)
			}
			f.reported <- interpret.DeviceStatus{Manifests: []interpret.ManifestStatus{{Scores: []interpret.ScoreStatus{last}}}} // for who asks next
		}
		offer(t, h, intent(1, of(1, "one")))
		later(time.Second)
		want("disabled on the device", interpret.Refused, authority.CodeKind, 0)

		r.runner.Ceiling.ShellJobs = true
		offer(t, h, intent(2, of(2, "one")))
		later(time.Second)
		want("not signed", interpret.Pending, interpret.CodeSignature, 0)
		f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: f.plan(t, h).ID})
		want("confirmed, and not signed", interpret.Pending, interpret.CodeSignature, 0)

		plan := f.plan(t, h)
		if got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbApprove, Plan: plan.ID, Approvals: all(plan)}); got.Result != interpret.ResultDone {
			t.Fatalf("%+v", got)
		}
		later(time.Hour)
		want("signed", interpret.Unchanged, "", 1)
		later(24 * time.Hour)
		want("a day later", interpret.Unchanged, "", 1)

		r.dev.JobEnds("hatch-check", memory.JobEnd{ExitCode: 1})
		offer(t, h, intent(3, of(3, "two")))
		later(time.Second)
		want("another one", interpret.Pending, interpret.CodeSignature, 1)
	})
}
