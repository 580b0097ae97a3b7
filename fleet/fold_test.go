package fleet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
)

func TestFold(t *testing.T) { // H12, cases 118, 132, 134
	at := func(generation uint64, state interpret.State, change ...func(*interpret.DeviceStatus)) *interpret.DeviceStatus {
		st := &interpret.DeviceStatus{Generation: generation, State: state, Phase: interpret.PhaseIdle}
		for _, c := range change {
			c(st)
		}
		return st
	}
	says := func(o interpret.Outcome, message string) func(*interpret.DeviceStatus) {
		return func(st *interpret.DeviceStatus) {
			st.Manifests = []interpret.ManifestStatus{{Name: "m", Scores: []interpret.ScoreStatus{{ID: "ok", Outcome: interpret.Unchanged}, {ID: "s", Outcome: o, Message: message}}}}
		}
	}
	refused := func(code interpret.Code) func(*interpret.DeviceStatus) {
		return func(st *interpret.DeviceStatus) { st.Problems = []interpret.Problem{{Code: code, Message: "because"}} }
	}
	tests := []struct {
		name    string
		desired uint64
		status  *interpret.DeviceStatus
		live    fleet.Liveness
		want    fleet.Verdict
		reason  string
	}{
		{"converged", 3, at(3, interpret.StateConverged), fleet.Live, fleet.Converged, ""},
		{"converged, nobody listens", 3, at(3, interpret.StateConverged), fleet.Unheard, fleet.Converged, ""},
		{"converged, silent", 3, at(3, interpret.StateConverged), fleet.Silent, fleet.Stale, "no heartbeat"},
		{"failed, silent", 3, at(3, interpret.StateFailed), fleet.Silent, fleet.Stale, "no heartbeat"},
		{"published, not accepted yet", 4, at(3, interpret.StateConverged), fleet.Live, fleet.Converging, "generation 3, and 4"},
		{"a pass is under way", 3, at(3, interpret.StateConverged, func(st *interpret.DeviceStatus) { st.Phase = interpret.PhaseRunning }), fleet.Live, fleet.Converging, "under way"},
		{"waiting", 3, at(3, interpret.StateConverging, says(interpret.Waiting, "for x")), fleet.Live, fleet.Converging, "m/s is waiting: for x"},
		{"not up yet", 3, at(3, interpret.StateConverging, func(st *interpret.DeviceStatus) {
			no := false
			st.Manifests = []interpret.ManifestStatus{{Name: "m", Scores: []interpret.ScoreStatus{
				{ID: "a", Outcome: interpret.Waiting, Message: "for s"},
				{ID: "s", Outcome: interpret.Changed, Message: "port 80 is closed", Conditions: interpret.Conditions{Healthy: &no}},
			}}}
		}), fleet.Live, fleet.Converging, "m/s is not up yet: port 80 is closed"},
		{"rolled back", 3, at(3, interpret.StateRolledBack, says(interpret.RolledBack, "generation 2 is in force")), fleet.Live, fleet.Failed, "m/s is rolled_back: generation 2 is in force"},
		{"pending", 3, at(3, interpret.StatePending, says(interpret.Pending, "approval")), fleet.Live, fleet.Pending, "approval"},
		{"pending, of what is left over", 3, at(3, interpret.StatePending, func(st *interpret.DeviceStatus) {
			st.Orphans = []interpret.Orphan{{Resource: "file:/etc/a", Code: interpret.CodeOrphaned}, {Resource: "file:/etc/b", Manifest: "m", Score: "b", Code: interpret.CodeBrake, Message: "too many"}}
		}), fleet.Live, fleet.Pending, "file:/etc/b of m/b is left over: too many"},
		{"drifted", 3, at(3, interpret.StateDrifted, says(interpret.Drifted, "mode")), fleet.Live, fleet.Drifted, "mode"},
		{"unsupported", 3, at(3, interpret.StateUnsupported, says(interpret.Unsupported, "no podman")), fleet.Live, fleet.Unsupported, "no podman"},
		{"partial", 3, at(3, interpret.StatePartial, says(interpret.Conflict, "foreign")), fleet.Live, fleet.Failed, "foreign"},
		{"failed", 3, at(3, interpret.StateFailed, says(interpret.Failed, "disk full")), fleet.Live, fleet.Failed, "disk full"},
		{"refused what is published", 4, at(3, interpret.StateConverged, refused("untrusted")), fleet.Live, fleet.Failed, "did not accept generation 4: because"},
		{"refused what is older, and was published once", 4, at(3, interpret.StateConverged, refused("generation_regressed")), fleet.Live, fleet.Converging, "and 4 is published"},
		{"the store came back from a backup", 2, at(3, interpret.StateConverged, refused("control_plane_regressed")), fleet.Live, fleet.Failed, "did not accept generation 2: because"},
		{"refused an older one, that is published", 2, at(3, interpret.StateConverged, refused("generation_regressed")), fleet.Live, fleet.Failed, "did not accept generation 2: because"},
		{"refused another of the same generation", 4, at(3, interpret.StateConverged, refused("equivocation")), fleet.Live, fleet.Converging, "and 4 is published"},
		{"refused what was deleted since", 0, at(3, interpret.StateConverged, refused("untrusted")), fleet.Live, fleet.Pending, "any more"},
		{"refused something else", 3, at(3, interpret.StateConverged, refused("untrusted")), fleet.Live, fleet.Converged, ""},
		{"a problem that is no refusal", 4, at(3, interpret.StateConverged, refused("link")), fleet.Live, fleet.Converging, "and 4 is published"},
		{"the store is behind the device", 37, at(42, interpret.StateConverged), fleet.Live, fleet.Pending, "publish again"},
		{"deleted while the device holds it", 0, at(42, interpret.StateConverged), fleet.Live, fleet.Pending, "any more"},
		{"nothing published, idle", 0, at(0, interpret.StateNoIntent), fleet.Live, fleet.Unknown, "nothing is published"},
		{"nothing at all", 0, nil, fleet.Unheard, fleet.Unknown, "nothing is published"},
		{"nothing at all, silent", 0, nil, fleet.Silent, fleet.Unknown, "never reported"},
		{"published, never seen", 1, nil, fleet.Unheard, fleet.Unknown, "never reported"},
		{"published, never reported, alive", 1, nil, fleet.Live, fleet.Converging, "not reported yet"},
		{"published, never seen, silent", 1, nil, fleet.Silent, fleet.Stale, ""},
		{"a state of a later version", 3, at(3, "levitating"), fleet.Live, fleet.Unknown, "levitating"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, reason := fleet.Fold(fleet.DeviceState{Desired: tt.desired, Status: tt.status, Liveness: tt.live})
			if got != tt.want || !strings.Contains(reason, tt.reason) || tt.want == fleet.Converged && reason != "" {
				t.Errorf("got %s (%s), want %s (%s)", got, reason, tt.want, tt.reason)
			}
		})
	}
	// What a device refused before is no answer to what is published since, until it has looked at that.
	published := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		reported, heard time.Duration // after the publication
		want            fleet.Verdict
	}{
		{-time.Hour, -time.Minute, fleet.Converging},
		{-time.Hour, time.Second, fleet.Converging},
		{-time.Hour, 10 * time.Second, fleet.Failed},
		{time.Millisecond, -time.Minute, fleet.Failed},
	} {
		s := fleet.DeviceState{Desired: 4, Published: published, Status: at(3, interpret.StateConverged, refused("untrusted")), ReportedAt: published.Add(tt.reported), LastHeard: published.Add(tt.heard), Liveness: fleet.Live}
		if v, reason := fleet.Fold(s); v != tt.want {
			t.Errorf("reported %s and heard %s after the publication: %s (%s)", tt.reported, tt.heard, v, reason)
		}
	}
	if v, _ := fleet.Fold(fleet.DeviceState{Desired: 3, Status: at(3, interpret.StateConverged), Liveness: fleet.Live, Heartbeat: fleet.Heartbeat{Conflict: "hold"}}); v != fleet.Failed {
		t.Errorf("two agents of one name are %s", v)
	}
	if v, reason := fleet.Fold(fleet.DeviceState{Desired: 3, Unreadable: "bytes", Liveness: fleet.Live}); v != fleet.Unknown || !strings.Contains(reason, "bytes") {
		t.Errorf("an unreadable status is %s (%s)", v, reason)
	}
}
