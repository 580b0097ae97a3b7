package agent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/connection"
	fileKind "github.com/continuo-fleet/continuo/interpret/file"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// A line is a kind that could cut the device off: it has a value on the device, and the fleet
// is reached over good ones only.
type line struct {
	Value  string     `json:"value"`
	Reload []score.ID `json:"reloadOn,omitempty"`
}

func (line) Kind() score.Kind             { return "line" }
func (line) Check(*score.Report)          {}
func (line) Claims() []score.Resource     { return []score.Resource{"line"} }
func (line) Confirmation() score.Confirm  { return score.Confirm{} }
func (line) RestartTriggers() []score.ID  { return nil }
func (l line) ReloadTriggers() []score.ID { return l.Reload }

// wire is the device of a line.
type wire struct {
	value, before string
	open          bool // a checkpoint
	dead          bool // who made it was killed
	log           []string
	fail          error  // of a reload
	crash         func() // in a reload; may be nil
	kept          func() // when a checkpoint was committed; may be nil
}

type lineState struct {
	Value string `json:"value"`
}

func (lineState) Exists() bool                     { return true }
func (lineState) OwnedBy() topology.Mark           { return "" }
func (lineState) Conditions() interpret.Conditions { return interpret.Conditions{} }

type lines struct{}

func (lines) Observe(_ context.Context, w *wire, _ line) (lineState, error) {
	return lineState{w.value}, nil
}

func (lines) Diff(s line, o lineState) []interpret.Change {
	if s.Value == o.Value {
		return nil
	}
	return []interpret.Change{{Field: "value", Have: o.Value, Want: s.Value, Effect: interpret.Mutate}}
}

func (lines) Apply(_ context.Context, w *wire, s line, t interpret.Task) error {
	if t.Has(interpret.FieldRestart) {
		w.log = append(w.log, "restart")
	}
	if t.Has("value") {
		w.log = append(w.log, "set "+s.Value)
		w.value = s.Value
		return nil
	}
	if t.Has(interpret.FieldReload) {
		w.log = append(w.log, "reload")
		if w.crash != nil {
			w.crash()
		}
		return w.fail
	}
	return nil
}

func (lines) Remove(context.Context, *wire, line) error { return nil }

func (lines) Checkpoint(_ context.Context, w *wire, _ line, t interpret.Task) (topology.Checkpoint, error) {
	if !t.Has("value") {
		return nil, nil
	}
	w.before, w.open = w.value, true
	return checkpoint{w}, nil
}

type checkpoint struct{ w *wire }

func (c checkpoint) Commit(context.Context) error {
	c.w.open = false
	if c.w.kept != nil {
		c.w.kept()
	}
	return nil
}

func (c checkpoint) Rollback(context.Context) error {
	if c.w.dead {
		return errors.New("the dead do nothing")
	}
	c.w.open, c.w.value = false, c.w.before
	c.w.log = append(c.w.log, "back")
	return nil
}

// lineRig is a rig whose device has a line besides.
func lineRig(t *testing.T) (*rig, *wire) {
	r, w := newRig(t), &wire{value: "good"}
	r.bindLine(w)
	return r, w
}

func (r *rig) bindLine(w *wire) {
	r.runner.Table = interpret.Bind(r.dev, fileKind.Kind, func(*memory.Device) interpret.Binding {
		return interpret.Of[line, lineState, *wire, *wire](lines{}, w, w)
	})
	r.runner.Reach = func(context.Context) error {
		if w.value == "bad" {
			return errors.New("no answer")
		}
		return nil
	}
}

// A change that cuts the device off is taken back, and not tried again soon (cases 104).
func TestChangeThatCutsOffIsTakenBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, w := lineRig(t)
		wish := func(value string) score.Manifest {
			return manifest("m", score.Score{ID: "l", Spec: line{Value: value}})
		}
		r.want(r.apply(intent(1, wish("better"))), "m/l=changed")
		if w.open {
			t.Error("the checkpoint was not committed")
		}
		began := time.Now()
		st := r.apply(intent(2, wish("bad")))
		r.want(st, "m/l=rolled_back/connectivity")
		if w.value != "better" || w.open || st.State != interpret.StateRolledBack {
			t.Errorf("it is %q, open %v, state %s", w.value, w.open, st.State)
		}
		if took := time.Since(began); took < time.Minute || took > 2*time.Minute {
			t.Errorf("the proof took %s, its window is 1m", took)
		}
		w.log = nil
		for range 10 {
			time.Sleep(10 * time.Minute)
			r.want(r.apply(intent(2, wish("bad"))), "m/l=rolled_back/connectivity")
		}
		if len(w.log) > 0 {
			t.Errorf("it was cut off again within hours: %v", w.log)
		}
		r.want(r.apply(intent(3, wish("best"))), "m/l=changed")
	})
}

// A removal that cuts the device off is taken back, and not tried again soon either, whether it is no longer named or
// asked for in words (cases 104).
func TestRemovalThatCutsOffIsTakenBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.runner.Table = interpret.Bind(r.dev, fileKind.Kind, connection.Ethernet[*memory.Device])
		alone := true // the one way to the fleet
		r.runner.Reach = func(context.Context) error {
			if alone && r.dev.Carries("eth0") != "uplink" {
				return errors.New("no answer")
			}
			return nil
		}
		rest, uplink := file("f", "/etc/f", "x"), score.Score{ID: "l", Spec: score.Ethernet{Name: "uplink", Interface: "eth0"}}
		r.want(r.apply(intent(1, manifest("m", uplink, rest))), "m/f=changed m/l=changed")
		rec := r.dev.Record()
		for range 10 {
			st := r.apply(intent(2, manifest("m", rest)))
			if len(st.Orphans) != 1 || st.Orphans[0].Code != interpret.Code(topology.CodeConnectivity) {
				t.Fatalf("orphans are %+v", st.Orphans)
			}
			time.Sleep(10 * time.Minute)
		}
		removals := 0
		for _, c := range rec.Mutations() {
			if c.Op == memory.OpRemoveConnection {
				removals++
			}
		}
		if removals != 1 || r.dev.Carries("eth0") != "uplink" || r.dev.CheckpointOpen() {
			t.Errorf("it was removed %d times, eth0 has %q, open %v", removals, r.dev.Carries("eth0"), r.dev.CheckpointOpen())
		}
		uplink.Decommission = true
		r.want(r.apply(intent(3, manifest("m", uplink, rest))), "m/f=unchanged m/l=rolled_back/connectivity")
		alone = false
		if st := r.apply(intent(4, manifest("m", rest))); len(st.Orphans) != 1 { // too early
			t.Errorf("orphans are %+v", st.Orphans)
		}
		time.Sleep(6 * time.Hour)
		if st := r.apply(intent(4, manifest("m", rest))); len(st.Orphans) != 0 || r.dev.Carries("eth0") != "" {
			t.Errorf("orphans are %+v, eth0 has %q", st.Orphans, r.dev.Carries("eth0"))
		}
	})
}

// What was proven once is kept without proof while nothing is reached anyway: a device comes back from a restart by itself.
func TestProvenWishNeedsNoFleet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, w := lineRig(t)
		m := manifest("m", score.Score{ID: "l", Spec: line{Value: "better"}})
		r.want(r.apply(intent(1, m)), "m/l=changed")
		reach := r.runner.Reach
		r.runner.Reach = func(context.Context) error { return errors.New("offline") }
		w.value = "unset" // as after a boot
		r.want(r.apply(intent(1, m)), "m/l=changed")
		if w.value != "better" || w.open {
			t.Errorf("it is %q, open %v", w.value, w.open)
		}
		// Reached before and not any more afterwards: it is taken back, also what was proven once.
		w.value = "by hand"
		r.runner.Reach = func(context.Context) error {
			if w.value == "by hand" {
				return nil
			}
			return errors.New("no answer")
		}
		r.want(r.apply(intent(1, m)), "m/l=rolled_back/connectivity")
		if w.value != "by hand" {
			t.Errorf("it is %q", w.value)
		}
		r.runner.Reach = reach
	})
}

// The agent is killed inside the window: at the next start the change is taken back, which is said, and not tried again soon.
func TestKilledInsideTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, w := lineRig(t)
		m := manifest("m", score.Score{ID: "l", Spec: line{Value: "better"}})
		r.runner.Reach = func(context.Context) error {
			r.disk, w.dead = r.disk.Crash(store.LoseAll), true
			panic("killed")
		}
		_, _ = r.runner.Apply(t.Context(), intent(1, m))
		if w.value != "better" || !w.open {
			t.Fatalf("it is %q, open %v", w.value, w.open)
		}
		r.start()
		r.bindLine(w)
		r.runner.Checkpoints = w
		if err := r.runner.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			r.want(r.apply(intent(1, m)), "m/l=rolled_back/connectivity")
			time.Sleep(time.Hour)
		}
		if w.value != "good" || w.open || r.store.IsOpen("line") {
			t.Errorf("it is %q, open %v, in the books %v", w.value, w.open, r.store.IsOpen("line"))
		}
		time.Sleep(6 * time.Hour)
		r.want(r.apply(intent(1, m)), "m/l=changed")
	})
}

// The power goes inside the window, or the device boots itself because it has no network. Then nothing on the device tells
// any more that something was tried: the books do, and it is not tried again soon, however often the device starts (cases 104).
func TestPowerCutInsideTheWindow(t *testing.T) {
	better := func() score.Manifest {
		return manifest("m", score.Score{ID: "l", Spec: line{Value: "better"}})
	}
	ends := map[string]func(r *rig, stop func()) error{
		"power cut":    func(r *rig, _ func()) error { r.disk = r.disk.Crash(store.LoseAll); panic("power cut") },
		"orderly boot": func(_ *rig, stop func()) error { stop(); return errors.New("not yet") },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, w := lineRig(t)
				ctx, stop := context.WithCancel(t.Context())
				r.runner.Reach = func(context.Context) error { return end(r, stop) }
				_, _ = r.runner.Apply(ctx, intent(1, better()))
				boot := func() {
					t.Helper()
					w.value, w.open, w.log = "good", false, nil
					r.restart()
					r.bindLine(w)
					r.runner.Boot = "another"
					if err := r.runner.Recover(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				for range 3 {
					boot()
					for range 3 {
						r.want(r.apply(intent(1, better())), "m/l=rolled_back/connectivity")
						time.Sleep(time.Hour)
					}
					if len(w.log) > 0 || r.store.IsOpen("line") {
						t.Fatalf("it was done: %v, in the books %v", w.log, r.store.IsOpen("line"))
					}
				}
				time.Sleep(6 * time.Hour)
				r.want(r.apply(intent(1, better())), "m/l=changed")
				boot() // what was proved is forgotten
				r.want(r.apply(intent(1, better())), "m/l=changed")
			})
		})
	}
}

// The power goes when it is proved, and before the books say so: what is kept is not called taken back.
func TestPowerCutAfterTheProof(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, w := lineRig(t)
		in := intent(1, manifest("m", score.Score{ID: "l", Spec: line{Value: "better"}}))
		w.kept = func() { r.disk, w.dead = r.disk.Crash(store.LoseAll), true; panic("power cut") }
		_, _ = r.runner.Apply(t.Context(), in)
		w.kept, w.dead = nil, false
		r.restart()
		r.bindLine(w)
		if err := r.runner.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.want(r.apply(in), "m/l=changed") // what was interrupted is restarted, as always
		if len(r.store.Notes("tried/")) > 0 {
			t.Errorf("the books still have %v", r.store.Notes("tried/"))
		}
	})
}

// Who stands before the device may try it again.
func TestAPersonTriesAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, w := lineRig(t)
		in := intent(1, manifest("m", score.Score{ID: "l", Spec: line{Value: "better"}}))
		r.cutPower(w, in)
		st, err := r.runner.Confirm(t.Context(), in, "by-hand")
		if err != nil {
			t.Fatal(err)
		}
		r.want(st, "m/l=changed")
	})
}

// A new wish is tried at once, also after a power cut in the window of the one before.
func TestPowerCutHoldsBackThatWishAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, w := lineRig(t)
		r.cutPower(w, intent(1, manifest("m", score.Score{ID: "l", Spec: line{Value: "bad"}})))
		r.want(r.apply(intent(2, manifest("m", score.Score{ID: "l", Spec: line{Value: "better"}}))), "m/l=changed")
		r.cutPower(w, intent(3, manifest("m", score.Score{ID: "l", Spec: line{Value: "bad"}})))
		again := manifest("m", score.Score{ID: "l", Spec: line{Value: "bad"}})
		again.Metadata.Generation = 4 // somebody says it once more
		r.want(r.apply(intent(4, again)), "m/l=rolled_back/connectivity")
		if len(w.log) == 0 {
			t.Error("it was not tried")
		}
	})
}

// What was proved once and is made true again is so at the next start, because a device must not be without its firewall for
// hours after a power cut; but not at every start, if that is what cuts the power.
func TestPowerCutWhileMadeTrueAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, w := lineRig(t)
		in := intent(1, manifest("m", score.Score{ID: "l", Spec: line{Value: "better"}}))
		r.want(r.apply(in), "m/l=changed")
		w.value = "by hand"
		r.cutPower(w, in)
		r.want(r.apply(in), "m/l=changed")
		w.value = "by hand"
		r.cutPower(w, in)
		r.cutPower(w, in)
		r.want(r.apply(in), "m/l=rolled_back/connectivity")
		if len(w.log) > 0 {
			t.Errorf("a third time it was done: %v", w.log)
		}
		time.Sleep(7 * time.Hour)
		r.want(r.apply(in), "m/l=changed")
	})
}

// A change that needs no window is finished after a power cut.
func TestPowerCutWithoutAWindow(t *testing.T) {
	conf := func(content string) agent.Intent {
		return intent(uint64(len(content)), manifest("m", file("conf", "/etc/l.conf", content), score.Score{ID: "l", Spec: line{Value: "good", Reload: []score.ID{"conf"}}}))
	}
	bubble(t, func(t *testing.T) {
		r, w := lineRig(t)
		r.want(r.apply(conf("1")), "m/conf=changed m/l=changed")
		w.crash = func() { r.disk = r.disk.Crash(store.LoseAll); panic("power cut") }
		_, _ = r.runner.Apply(t.Context(), conf("22"))
		w.crash, w.log = nil, nil
		r.restart()
		r.bindLine(w)
		if err := r.runner.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.want(r.apply(conf("22")), "m/conf=unchanged m/l=changed")
	})
}

// The power goes in the window of a removal.
func TestPowerCutInTheWindowOfARemoval(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		bind := func() {
			r.runner.Table = interpret.Bind(r.dev, fileKind.Kind, connection.Ethernet[*memory.Device])
			r.runner.Reach = func(context.Context) error { return nil }
		}
		bind()
		rest, uplink := file("f", "/etc/f", "x"), score.Score{ID: "l", Spec: score.Ethernet{Name: "uplink", Interface: "eth0"}}
		r.want(r.apply(intent(1, manifest("m", uplink, rest))), "m/f=changed m/l=changed")
		r.runner.Reach = func(context.Context) error { r.disk = r.disk.Crash(store.LoseAll); panic("power cut") }
		_, _ = r.runner.Apply(t.Context(), intent(2, manifest("m", rest)))
		if _, err := r.dev.Recover(t.Context()); err != nil { // as a boot does
			t.Fatal(err)
		}
		for range 2 {
			r.restart()
			bind()
			if err := r.runner.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			rec := r.dev.Record()
			for range 3 {
				if st := r.apply(intent(2, manifest("m", rest))); len(st.Orphans) != 1 || st.Orphans[0].Code != interpret.Code(topology.CodeConnectivity) {
					t.Fatalf("orphans are %+v", st.Orphans)
				}
				time.Sleep(time.Hour)
			}
			if n := len(rec.Mutations()); n > 0 {
				t.Errorf("the device was changed: %v", rec.Mutations())
			}
		}
		time.Sleep(6 * time.Hour)
		if st := r.apply(intent(2, manifest("m", rest))); len(st.Orphans) != 0 || r.dev.Carries("eth0") != "" {
			t.Errorf("orphans are %+v, eth0 has %q", st.Orphans, r.dev.Carries("eth0"))
		}
	})
}

// cutPower plays in until something is proved, cuts the power then, and starts the next agent.
func (r *rig) cutPower(w *wire, in agent.Intent) {
	r.t.Helper()
	was := w.value
	r.runner.Reach = func(context.Context) error {
		if !w.open { // before the change
			return nil
		}
		r.disk, w.dead = r.disk.Crash(store.LoseAll), true
		panic("power cut")
	}
	_, _ = r.runner.Apply(r.t.Context(), in)
	if !w.open {
		r.t.Fatal("there was no window")
	}
	w.value, w.open, w.dead, w.log = was, false, false, nil
	r.restart()
	r.bindLine(w)
	if err := r.runner.Recover(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// Recover is part of topology.Recoverer.
func (w *wire) Recover(ctx context.Context) ([]topology.Resource, error) {
	if w.dead = false; !w.open {
		return nil, nil
	}
	return []topology.Resource{"line"}, checkpoint{w}.Rollback(ctx)
}

// Without anything to reach, what could cut the device off is not done.
func TestNoProofNoChange(t *testing.T) {
	r, w := lineRig(t)
	r.runner.Reach = nil
	r.want(r.apply(intent(1, manifest("m", score.Score{ID: "l", Spec: line{Value: "better"}}))), "m/l=refused/no_proof")
	if w.value != "good" || w.open {
		t.Errorf("it is %q, open %v", w.value, w.open)
	}
}

// The agent is told to stop inside the window: what was there comes back.
func TestStopInsideTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := lineRig(t)
		ctx, stop := context.WithCancel(t.Context())
		r.runner.Reach = func(context.Context) error { stop(); return errors.New("not yet") }
		if _, err := r.runner.Apply(ctx, intent(1, manifest("m", score.Score{ID: "l", Spec: line{Value: "better"}}))); err != nil {
			t.Fatal(err)
		}
		if w.value != "good" || w.open {
			t.Errorf("it is %q, open %v", w.value, w.open)
		}
	})
}

// A change of one score makes another read its configuration again, once, also after a crash between the two (H22, G15).
func TestReloadOn(t *testing.T) {
	conf := func(content string) []score.Score {
		return []score.Score{file("conf", "/etc/l.conf", content), {ID: "l", Spec: line{Value: "good", Reload: []score.ID{"conf"}}}}
	}
	r, w := lineRig(t)
	w.value = "old"
	r.want(r.apply(intent(1, manifest("m", conf("1")...))), "m/conf=changed m/l=changed")
	w.log = nil
	r.want(r.apply(intent(1, manifest("m", conf("1")...))), "m/conf=unchanged m/l=unchanged")
	if len(w.log) > 0 {
		t.Fatalf("nothing changed, and yet %v", w.log)
	}
	st := r.apply(intent(2, manifest("m", conf("2")...)))
	r.want(st, "m/conf=changed m/l=changed")
	if s := st.Manifests[0].Scores[1]; len(w.log) != 1 || w.log[0] != "reload" || s.Cause != interpret.CauseDependency {
		t.Errorf("got %v, cause %s", w.log, s.Cause)
	}
	r.want(r.apply(intent(2, manifest("m", conf("2")...))), "m/conf=unchanged m/l=unchanged")
	// It fails, and is made again: never a restart.
	w.fail = topology.Faultf(topology.CodeJobFailed, "no")
	r.want(r.apply(intent(3, manifest("m", conf("3")...))), "m/conf=changed m/l=failed/job_failed")
	w.fail, w.log = nil, nil
	r.restart()
	r.bindLine(w)
	r.want(r.apply(intent(3, manifest("m", conf("3")...))), "m/conf=unchanged m/l=changed")
	if len(w.log) != 1 || w.log[0] != "reload" {
		t.Errorf("after a failure: %v", w.log)
	}
	r.want(r.apply(intent(3, manifest("m", conf("3")...))), "m/conf=unchanged m/l=unchanged")
}

// Each try of what could cut the device off takes its link down, also one that fails: there is a pause from the first, which grows
// to an hour.
func TestFailureOfWhatCouldCutOffIsNotHurried(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, w := lineRig(t)
		w.value, w.fail = "better", topology.Faultf(topology.CodeJobFailed, "wrong password")
		m := manifest("m", file("conf", "/etc/l.conf", "1"), score.Score{ID: "l", Spec: line{Value: "better", Reload: []score.ID{"conf"}}})
		tries := func(during time.Duration) int {
			w.log = nil
			for began := time.Now(); time.Since(began) < during; {
				r.apply(intent(1, m))
				time.Sleep(10 * time.Second)
			}
			return len(w.log)
		}
		if n := tries(50 * time.Second); n != 1 {
			t.Errorf("within a minute it was tried %d times", n)
		}
		if n := tries(time.Hour); n > 6 { // after 1, 2, 4, 8, 16, 32 minutes
			t.Errorf("within the next hour it was tried %d times", n)
		}
		if n := tries(24 * time.Hour); n < 23 || n > 25 {
			t.Errorf("within the next day it was tried %d times", n)
		}
	})
}

// The same holds for what somebody else changes again and again: making it true again takes the link down, too.
func TestContestedLinkIsNotHurried(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, w := lineRig(t)
		m := manifest("m", score.Score{ID: "l", Spec: line{Value: "better"}})
		r.apply(intent(1, m))
		w.log = nil
		for range 60 {
			w.value = "by hand"
			r.apply(intent(1, m))
			time.Sleep(10 * time.Second)
		}
		if n := len(w.log); n > 9 { // five at once, then after 1, 2, 4 minutes
			t.Errorf("within ten minutes it was made true again %d times", n)
		}
	})
}
