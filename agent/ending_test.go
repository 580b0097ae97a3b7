package agent_test

import (
	"context"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

// Nothing is begun while the machine is being shut down: what systemd stops then is no drift, and an action that was cut off
// would be taken for a crash after the boot.
func TestNothingBeginsWhileTheMachineEnds(t *testing.T) {
	r := newRig(t)
	in := intent(1, version(1, manifest("m", service("s", "s.service"), file("f", "/etc/f", "1"))))
	r.want(r.apply(in), "m/f=changed m/s=changed")
	ending := true
	r.runner.Ending = func(context.Context) bool { return ending }
	r.dev.StopUnit("s.service")
	r.want(r.apply(in), "m/f=unchanged m/s=waiting")
	if open := r.store.OpenActions(); len(open) > 0 {
		t.Errorf("begun: %v", open)
	}
	r.apply(intent(2, version(2, manifest("m"))))
	if _, there := r.dev.Read("/etc/f"); !there {
		t.Error("something was removed")
	}
	ending = false
	r.want(r.apply(in), "m/f=unchanged m/s=changed")
}

// The same when the machine cannot be asked any more, because the agent was told to stop while it looked: what it would begin
// then fails at once, stays open, and is taken for a crash after the boot.
func TestNothingBeginsAfterAStop(t *testing.T) {
	svc, f := service("s", "s.service"), file("f", "/etc/f", "1")
	gone := f
	gone.Decommission = true
	for name, scores := range map[string][]score.Score{
		"something is corrected": {svc, f}, "something is decommissioned": {gone}, "something is collected": {f},
	} {
		r := newRig(t)
		r.apply(intent(1, preset(score.Converge, manifest("m", svc, f))))
		if len(scores) == 2 {
			r.dev.StopUnit("s.service")
		}
		rec := r.dev.Record()
		ctx, stop := context.WithCancel(t.Context())
		asked := false
		r.runner.Ending = func(context.Context) bool { asked = true; stop(); return false }
		if _, err := r.runner.Apply(ctx, intent(2, preset(score.Converge, manifest("m", scores...)))); err != nil {
			t.Fatal(err)
		}
		if open := r.store.OpenActions(); !asked || len(open) > 0 || len(rec.Mutations()) > 0 {
			t.Errorf("%s: asked %v, begun %v, called %v", name, asked, open, rec.Mutations())
		}
	}
}
