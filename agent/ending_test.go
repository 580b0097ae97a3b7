package agent_test

import (
	"context"
	"testing"
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
