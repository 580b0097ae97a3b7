package main

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
)

// Who waits for a generation hears that it was rolled back and why, and not only that something failed on the way.
func TestPublishWaitsForRollback(t *testing.T) {
	b := newBench(t)
	b.up("--device", "pi-1")
	pi := b.device("pi-1")
	first := strings.Replace(good, "preset: converge", "onFailure: rollBack, minReady: 1s", 1)
	if code, out, errs := b.run("publish", b.write("first.yaml", first), "--confirm", "--wait"); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	if code, out, errs := b.run("rollback-check", "pi-1"); code != 0 || !strings.Contains(out, "every rollback that is declared could be done") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	pi.mem.Mkdir("/etc/taken")
	second := strings.Replace(first, "content: hello", "content: changed", 1) + strings.ReplaceAll(file("a", `mode: "0644"`), "/etc/a", "/etc/taken")
	code, out, errs := b.run("publish", b.write("second.yaml", second), "--confirm", "--wait")
	if code != 1 || !strings.Contains(out, "rolled back: the content of generation 2 failed at ") || !strings.Contains(out, ", and generation 1 is in force; a: not_regular: ") || !strings.Contains(out, "pi-1    failed") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if got, _ := pi.mem.Read("/etc/kiosk.conf"); got != "hello" {
		t.Errorf("the device has %q", got)
	}

	// When the cause is gone the same content is still not tried, which is said, and what is said helps.
	pi.mem.Delete("/etc/taken")
	code, out, errs = b.run("publish", b.write("second.yaml", second), "--confirm", "--wait")
	if code != 1 || !strings.Contains(errs, "nothing differs from what is published") || !strings.Contains(out, "change the manifest, if only by extensions: {example.org: {attempt: 2}}") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	again := strings.Replace(second, "spec:\n", "extensions: {example.org: {attempt: 2}}\nspec:\n", 1)
	if code, out, errs = b.run("publish", b.write("again.yaml", again), "--confirm", "--wait"); code != 0 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

func TestSettled(t *testing.T) {
	failed := func(change ...func(*interpret.DeviceStatus)) fleet.DeviceState {
		st := &interpret.DeviceStatus{Generation: 2, State: interpret.StateFailed, Manifests: []interpret.ManifestStatus{
			{Name: "other", State: interpret.StateConverged}, {Name: "m", Generation: 2, State: interpret.StateFailed},
		}}
		for _, c := range change {
			c(st)
		}
		return fleet.DeviceState{Desired: 2, Verdict: fleet.Failed, Status: st}
	}
	back := map[string]bool{"m": true, "other": true}
	tests := []struct {
		name  string
		state fleet.DeviceState
		back  map[string]bool
		want  bool
	}{
		{"failed", failed(), nil, true},
		{"failed, and is to roll back", failed(), back, false},
		{"rolled back", failed(func(st *interpret.DeviceStatus) { st.Manifests[1].RolledBack = &interpret.Rollback{} }), back, true},
		{"cannot roll back", failed(func(st *interpret.DeviceStatus) { st.Problems = []interpret.Problem{{Code: "no_rollback"}} }), back, true},
		{"another one failed", failed(), map[string]bool{"other": true}, true},
		{"refused, so that it is not played", failed(func(st *interpret.DeviceStatus) { st.Generation = 1 }), back, true},
		{"an older one failed", fleet.DeviceState{Desired: 1, Verdict: fleet.Failed}, nil, false},
		{"on its way", fleet.DeviceState{Desired: 2, Verdict: fleet.Converging}, nil, false},
		{"converged before", fleet.DeviceState{Desired: 2, Verdict: fleet.Converged, Status: &interpret.DeviceStatus{Generation: 1}}, nil, false},
		{"converged", fleet.DeviceState{Desired: 2, Verdict: fleet.Converged, Status: &interpret.DeviceStatus{Generation: 2}}, nil, true},
		{"waits for a person", fleet.DeviceState{Desired: 2, Verdict: fleet.Pending}, back, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := settled(tt.state, 2, tt.back); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
