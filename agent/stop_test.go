package agent_test

import (
	"context"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// An agent that is told to stop in the middle of what a person confirmed leaves no more to do than one that is killed:
// what it had begun is finished by the next one without being asked again, and nothing else is done (X58, X56).
func TestStopInTheMiddleOfWhatWasConfirmed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, stop := r.running()
		late := file("late", "/etc/late", "1", "app")
		offer(t, h, intent(1, preset(score.Reviewed, manifest("m", service("app", "app.service"), late))))
		later(time.Second)
		r.dev.Before(func(ctx context.Context, c memory.Call) error {
			if c.Op == memory.OpStart {
				<-ctx.Done() // it is slow to come up
				return ctx.Err()
			}
			return nil
		})
		op := interpret.Operation{ID: "cut", Verb: interpret.VerbInstall, Plan: f.plan(t, h).ID, Expires: time.Now().Add(time.Hour)}
		if err := h.Operation(op, "d"); err != nil {
			t.Fatal(err)
		}
		later(time.Second)
		stop()
		r.dev.Before(nil)
		r.restart()
		_, f, _, _ = r.running()
		later(time.Minute)
		if got := f.answer(t, "cut"); got.Result != interpret.ResultInterrupted {
			t.Errorf("%+v", got)
		}
		r.want(f.last(), "m/app=unchanged m/late=pending/pending_confirm")
		r.gone("/etc/late")
		if n := len(r.store.OpenActions()); n > 0 {
			t.Errorf("%d actions are open", n)
		}
	})
}
