package agent_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// looking lets an agent see what else is on the device.
func looking(r *rig) func(*agent.Config) {
	return func(c *agent.Config) { c.Containers = r.dev.Containers() }
}

// What others made is told, touched by nobody, and is not told any more when a manifest names it (X92).
func TestUnmanagedIsToldAndLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.dev.RunByHand("theirs", "localhost/app:1")
		r.dev.RunByHand("another", "localhost/app:1")
		rec := r.dev.Record()
		_, f, h, _ := r.running(looking(r))
		want := func(st interpret.DeviceStatus, state interpret.State, names ...score.Resource) {
			t.Helper()
			if !slices.Equal(st.Unmanaged, names) || st.UnmanagedMore != 0 || len(st.Problems) > 0 || st.State != state {
				t.Fatalf("it is %s, problems %v, unmanaged %v; want %s and %v", st.State, st.Problems, st.Unmanaged, state, names)
			}
		}
		later(time.Second)
		want(f.last(), interpret.StateNoIntent, "container:another", "container:theirs")
		offer(t, h, intent(1, manifest("m", container("web", "web"))))
		later(time.Second)
		want(f.last(), interpret.StateConverged, "container:another", "container:theirs")

		offer(t, h, intent(2, manifest("m", container("web", "web"), container("x", "theirs"))))
		later(time.Second)
		st := f.last()
		r.want(st, "m/web=unchanged m/x=conflict/foreign")
		want(st, interpret.StatePartial, "container:another")
		got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbAdopt, Manifest: "m", Scores: []score.ID{"x"}})
		if got.Result != interpret.ResultRefused || len(got.Actions) != 1 || got.Actions[0].Code != interpret.Code(topology.CodeForeign) {
			t.Errorf("a container was taken over: %+v", got)
		}
		for _, c := range rec.Mutations() {
			if c.Resource == "container:theirs" || c.Resource == "container:another" {
				t.Errorf("%v", c)
			}
		}
	})
}

// To look around wakes the container runtime: it is done at the start, at most once an hour beside a full pass, and when
// somebody asks for a plan. That it fails is no problem of the device (X92, H40).
func TestLookingAroundIsRare(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		rec := r.dev.Record()
		asked := func(most, least int) {
			t.Helper()
			if n := count(rec, memory.OpAllContainers, ""); n > most || n < least {
				t.Fatalf("asked %d times, want %d to %d", n, least, most)
			}
			rec.Reset()
		}
		_, f, h, _ := r.running(looking(r))
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"), container("web", "web"))))
		later(50 * time.Minute)
		asked(1, 1)
		r.dev.RunByHand("theirs", "localhost/app:1")
		later(24 * time.Hour)
		asked(24, 20)
		if st := f.last(); !slices.Equal(st.Unmanaged, []score.Resource{"container:theirs"}) {
			t.Errorf("unmanaged is %v", st.Unmanaged)
		}
		r.dev.RemoveByHand("theirs")
		f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan})
		asked(2, 1) // the hour may be over just then
		if st := f.last(); len(st.Unmanaged) > 0 {
			t.Errorf("unmanaged is %v", st.Unmanaged)
		}
		r.dev.Fail(memory.OpAllContainers, "", topology.Faultf(topology.CodeUnavailable, "podman hangs"))
		later(2 * time.Hour)
		r.dev.Heal()
		if st := f.last(); len(st.Problems) > 0 || st.State != "" && st.State != interpret.StateConverged {
			t.Errorf("it is %s, problems %v", st.State, st.Problems)
		}
	})
}

// A status has a size: fifty are named, the others counted.
func TestManyUnmanaged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		for i := range 60 {
			r.dev.RunByHand(fmt.Sprintf("c%02d", i), "localhost/app:1")
		}
		_, f, h, _ := r.running(looking(r))
		offer(t, h, intent(1, manifest("m", container("x", "c00"))))
		later(time.Second)
		if st := f.last(); len(st.Unmanaged) != 50 || st.Unmanaged[0] != "container:c01" || st.UnmanagedMore != 9 {
			t.Errorf("%v and %d more", st.Unmanaged, st.UnmanagedMore)
		}
	})
}
