//go:build clockjump

package agent_test

import (
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// These tests need a Go whose wall clock can be set apart from the one that only runs: see test/clock.

// The clock of the device is set by a day, back or forward, while its agent runs: a version has the time that it was
// given, what failed is tried again as before and not more often, drift is found, what was done is known, and what
// waits for the full pass comes (case 135).
func TestClockIsSet(t *testing.T) {
	for _, jump := range []time.Duration{-26 * time.Hour, 26 * time.Hour} {
		set := func() { time.Jumped += int64(jump / time.Second) }
		t.Run("trial "+jump.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				_, f, h, _ := r.running()
				r.onTrial(h)
				later(2 * time.Minute)
				set()
				later(150 * time.Second)
				r.content("/etc/conf", "2")
				later(time.Minute)
				r.content("/etc/conf", "1")
				if b := f.last().Manifests[0].RolledBack; b == nil || b.Code != interpret.CodeDeadline {
					t.Errorf("rolled back: %+v", b)
				}
			})
		})
		t.Run("pace "+jump.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				_, f, h, _ := r.running(looking(r))
				offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"))))
				later(time.Minute)
				r.bad("/etc/b")
				r.dev.Put("/etc/b", "drift")
				later(time.Hour)
				rec := r.dev.Record()
				later(time.Hour)
				before := count(rec, memory.OpWriteFile, "file:/etc/b")
				full := count(rec, memory.OpFile, "file:/etc/a")
				set()
				rec.Reset()
				later(time.Hour)
				tries, passes := count(rec, memory.OpWriteFile, "file:/etc/b"), count(rec, memory.OpFile, "file:/etc/a")
				if tries == 0 || tries > 2*before || tries < before/2 {
					t.Errorf("tried %d times in the hour before, and %d in that after", before, tries)
				}
				if passes > 2*full || passes < full/2 {
					t.Errorf("looked %d times in the hour before, and %d in that after", full, passes)
				}
				if n := count(rec, memory.OpAllContainers, ""); n > 2 {
					t.Errorf("looked around %d times", n)
				}
				r.dev.Put("/etc/a", "drift")
				later(time.Second)
				r.content("/etc/a", "1")
				r.dev.Heal()
				later(time.Hour)
				r.content("/etc/b", "1")
				if st := f.last(); !st.ConvergedAt(1) {
					t.Errorf("%s, state %s", outcomes(st), st.State)
				}
			})
		})
		t.Run("operations "+jump.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				_, f, h, stop := r.running()
				offer(t, h, intent(1, preset(score.Reviewed, manifest("m", file("a", "/etc/a", "1")))))
				later(time.Second)
				op := interpret.Operation{ID: "first", Verb: interpret.VerbInstall, Plan: f.plan(t, h).ID, Expires: time.Now().Add(time.Hour)}
				again := func() interpret.Receipt {
					t.Helper()
					if err := h.Operation(op, "d"); err != nil {
						t.Fatal(err)
					}
					later(time.Second)
					return f.answer(t, "first")
				}
				if got := again(); got.Result != interpret.ResultDone {
					t.Fatalf("%+v", got)
				}
				set()
				f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}) // what may be forgotten is, now
				r.dev.Put("/etc/a", "drift")
				rec := r.dev.Record()
				if got := again(); got.Result != interpret.ResultDone || len(got.Actions) != 1 {
					t.Errorf("asked again: %+v", got)
				}
				stop()
				set()
				r.restart()
				_, f, h, _ = r.running()
				later(time.Hour)
				if got := again(); got.Result != interpret.ResultDone || len(got.Actions) != 1 {
					t.Errorf("asked again after a restart: %+v", got)
				}
				if n := len(rec.Mutations()); n > 0 {
					t.Errorf("done again: %v", rec.Mutations())
				}
			})
		})
	}
}
