package agent_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/connection"
	fileKind "github.com/continuo-fleet/continuo/interpret/file"
	firewallKind "github.com/continuo-fleet/continuo/interpret/firewall"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

var (
	uplink = score.Score{ID: "l", Spec: score.Ethernet{Name: "uplink", Interface: "eth0"}}
	shut   = score.Score{ID: "fw", Spec: score.Firewall{Input: score.InputDrop, Allow: []score.Allow{{Ports: []score.PortSpan{{First: 22}}}}}}
)

// netRig is a rig whose device has a network and a firewall; the fleet is reached while reach says so.
func netRig(t *testing.T) *rig {
	r := newRig(t)
	r.bindNet()
	return r
}

func (r *rig) bindNet() {
	r.runner.Table = interpret.Bind(r.dev, fileKind.Kind, connection.Ethernet[*memory.Device], firewallKind.Kind[*memory.Device])
	r.runner.Checkpoints = r.dev
	r.runner.Reach = func(context.Context) error { return nil }
}

// killed is the agent at its end: what it did not write down is lost.
func (r *rig) killed(in func()) {
	r.t.Helper()
	r.runner.Reach = func(context.Context) error {
		if !r.dev.CheckpointOpen() {
			return nil // it is asked before, too
		}
		r.disk = r.disk.Crash(store.LoseAll)
		for _, op := range []memory.Op{memory.OpRollbackFirewall, memory.OpRollbackNetwork} { // the dead do nothing
			r.dev.FailOnce(op, "", topology.Faultf(topology.CodeIO, "killed"))
		}
		panic("killed")
	}
	in()
}

// born is the next agent.
func (r *rig) born() {
	r.t.Helper()
	r.start()
	r.bindNet()
	if err := r.runner.Recover(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) shut() bool {
	st, err := r.dev.Firewall().Firewall(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return st.Present
}

// Two scores that could cut the device off are changed one after the other, whatever the lanes: with both under way, the
// proof of one says something about the other, and the innocent one is taken back with it (H36).
func TestOneChangeThatCouldCutOffAtATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := netRig(t)
		r.runner.Parallel = 4
		var open, most atomic.Int32
		r.runner.Reach = func(context.Context) error {
			most.Store(max(most.Load(), open.Add(1)))
			time.Sleep(time.Second)
			open.Add(-1)
			if r.dev.Carries("eth0") == "uplink" {
				return errors.New("no answer")
			}
			return nil
		}
		r.want(r.apply(intent(1, manifest("m", uplink, shut, file("f", "/etc/f", "x")))), "m/f=changed m/fw=changed m/l=rolled_back/connectivity")
		if most.Load() != 1 || !r.shut() || r.dev.Carries("eth0") != "" {
			t.Errorf("%d proofs at once, shut %v, eth0 has %q", most.Load(), r.shut(), r.dev.Carries("eth0"))
		}
	})
}

// What was never proved is no drift, whoever wrote the manifest: it is not kept without a proof at the second try.
func TestNoProofNoChangeTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, w := lineRig(t)
		m := manifest("m", score.Score{ID: "l", Spec: line{Value: "better"}})
		m.Metadata.Generation = 0
		r.runner.Reach = nil
		for range 3 {
			r.want(r.apply(intent(0, m)), "m/l=refused/no_proof")
			time.Sleep(24 * time.Hour)
		}
		r.runner.Reach = func(context.Context) error { return errors.New("no answer") }
		for range 3 {
			r.want(r.apply(intent(0, m)), "m/l=rolled_back/connectivity")
			time.Sleep(24 * time.Hour)
		}
		if w.value != "good" || w.open {
			t.Errorf("it is %q, open %v", w.value, w.open)
		}
	})
}

// A score whose decommission cuts the device off is not removed again with every pass.
func TestDecommissionThatCutsOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := netRig(t)
		r.want(r.apply(intent(1, manifest("m", uplink))), "m/l=changed")
		r.runner.Reach = func(context.Context) error {
			if r.dev.Carries("eth0") != "uplink" {
				return errors.New("no answer")
			}
			return nil
		}
		gone := uplink
		gone.Decommission = true
		rec := r.dev.Record()
		for range 10 {
			r.want(r.apply(intent(2, manifest("m", gone))), "m/l=rolled_back/connectivity")
			time.Sleep(10 * time.Minute)
		}
		removals := 0
		for _, c := range rec.Mutations() {
			if c.Op == memory.OpRemoveConnection {
				removals++
			}
		}
		if removals != 1 || r.dev.Carries("eth0") != "uplink" {
			t.Errorf("it was removed %d times, eth0 has %q", removals, r.dev.Carries("eth0"))
		}
	})
}

// The agent is killed while a removal is proved: the next one takes it back, says so, and does not try at once what may
// have made it stop.
func TestKilledInsideTheWindowOfARemoval(t *testing.T) {
	rest := file("f", "/etc/f", "x")
	gone := uplink
	gone.Decommission = true
	for name, tt := range map[string]struct {
		without score.Manifest
		want    string
	}{
		"no longer named": {manifest("m", rest), "m/f=unchanged"},
		"in words":        {manifest("m", rest, gone), "m/f=unchanged m/l=rolled_back/connectivity"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := netRig(t)
				r.want(r.apply(intent(1, manifest("m", uplink, rest))), "m/f=changed m/l=changed")
				r.killed(func() { _, _ = r.runner.Apply(t.Context(), intent(2, tt.without)) })
				r.born()
				if r.dev.Carries("eth0") != "uplink" || r.dev.CheckpointOpen() {
					t.Fatalf("eth0 has %q, open %v", r.dev.Carries("eth0"), r.dev.CheckpointOpen())
				}
				rec := r.dev.Record()
				for range 3 {
					st := r.apply(intent(2, tt.without))
					r.want(st, tt.want)
					if tt.want == "m/f=unchanged" && (len(st.Orphans) != 1 || st.Orphans[0].Code != interpret.Code(topology.CodeConnectivity)) {
						t.Errorf("orphans are %+v", st.Orphans)
					}
					time.Sleep(time.Hour)
				}
				if n := rec.Mutations(); len(n) > 0 {
					t.Errorf("tried again: %v", n)
				}
				time.Sleep(6 * time.Hour)
				if r.apply(intent(2, tt.without)); r.dev.Carries("eth0") != "" {
					t.Errorf("eth0 has %q hours later", r.dev.Carries("eth0"))
				}
			})
		})
	}
}

// The agent is killed while it sets again what the kernel forgot, which was proved before: the device does not stay open
// for hours because of that.
func TestKilledWhileAProvenWishIsMadeTrueAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := netRig(t)
		m := manifest("m", shut)
		r.want(r.apply(intent(1, m)), "m/fw=changed")
		r.dev.SetFirewallByHand(topology.FirewallState{}) // as after a boot
		r.killed(func() { _, _ = r.runner.Apply(t.Context(), intent(1, m)) })
		r.born()
		if r.want(r.apply(intent(1, m)), "m/fw=changed"); !r.shut() {
			t.Error("the device is open")
		}
	})
}

// What cannot be taken back is not done again and again.
func TestRollbackThatFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := netRig(t)
		r.runner.Reach = func(context.Context) error { return errors.New("no answer") }
		r.dev.Fail(memory.OpRollbackFirewall, "", topology.Faultf(topology.CodeIO, "the card is broken"))
		rec := r.dev.Record()
		for range 10 {
			st := r.apply(intent(1, manifest("m", shut)))
			if s, _ := scoreOf(st, "m", "fw"); s.Outcome != interpret.Failed || !strings.Contains(s.Message, "the card is broken") {
				t.Errorf("%s: %s", s.Outcome, s.Message)
			}
			time.Sleep(10 * time.Minute)
		}
		sets := 0
		for _, c := range rec.Mutations() {
			if c.Op == memory.OpSetFirewall {
				sets++
			}
		}
		if sets != 1 {
			t.Errorf("it was tried %d times within two hours", sets)
		}
	})
}

// A version of a manifest whose change of the network was taken back is not good: it goes back as a whole, once.
func TestCutOffCondemnsAVersion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := netRig(t)
		_, f, h, _ := r.running()
		offer(t, h, intent(1, version(1, manifest("m", file("f", "/etc/f", "1")))))
		later(time.Minute)
		if st := f.last(); !st.ConvergedAt(1) {
			t.Fatalf("the good one: %s", outcomes(st))
		}
		r.runner.Reach = func(context.Context) error {
			if r.shut() {
				return errors.New("no answer")
			}
			return nil
		}
		rec := r.dev.Record()
		offer(t, h, intent(2, version(2, manifest("m", file("f", "/etc/f", "2"), shut))))
		later(time.Hour)
		st := f.last()
		if m := st.Manifests[0]; st.State != interpret.StateRolledBack || m.RolledBack == nil || m.RolledBack.Score != "fw" {
			t.Fatalf("%s: %s %+v", st.State, outcomes(st), m.RolledBack)
		}
		r.content("/etc/f", "1")
		later(48 * time.Hour)
		sets := 0
		for _, c := range rec.Mutations() {
			if c.Op == memory.OpSetFirewall {
				sets++
			}
		}
		if sets != 1 || r.shut() {
			t.Errorf("it was tried %d times, shut %v", sets, r.shut())
		}
	})
}

// How a change is proved is nothing of the device: another way of that alone does nothing and reaches for nobody (H43).
func TestAnotherProofIsNoChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := netRig(t)
		r.want(r.apply(intent(1, manifest("m", uplink, shut))), "m/fw=changed m/l=changed")
		reached := 0
		r.runner.Reach = func(context.Context) error { reached++; return nil }
		e, fw := uplink.Spec.(score.Ethernet), shut.Spec.(score.Firewall)
		e.Confirm, fw.Confirm = &score.Confirm{Connect: "192.0.2.1:53"}, &score.Confirm{Within: score.Duration(time.Minute)}
		rec := r.dev.Record()
		r.want(r.apply(intent(2, manifest("m", score.Score{ID: "l", Spec: e}, score.Score{ID: "fw", Spec: fw}))), "m/fw=unchanged m/l=unchanged")
		if n := rec.Mutations(); len(n) > 0 || reached > 0 {
			t.Errorf("%v, reached %d times", n, reached)
		}
	})
}

// What crashes between its checkpoint and its proof is taken back at once, and the next change need not wait for its window.
func TestCrashUnderACheckpoint(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := netRig(t)
		r.runner.Reach = func(context.Context) error { panic("a bug") }
		began := time.Now()
		st := r.apply(intent(1, manifest("m", uplink, shut)))
		r.want(st, "m/fw=failed/panic m/l=failed/panic")
		if s, _ := scoreOf(st, "m", "fw"); !strings.Contains(s.Message, "a bug") || !strings.Contains(s.Message, "TestCrashUnderACheckpoint") {
			t.Errorf("message %q", s.Message)
		}
		if time.Since(began) > 0 || r.shut() || r.dev.Carries("eth0") != "" || r.dev.CheckpointOpen() {
			t.Errorf("after %s: shut %v, eth0 has %q, open %v", time.Since(began), r.shut(), r.dev.Carries("eth0"), r.dev.CheckpointOpen())
		}
	})
}

// To remove the firewall lets in more, and cuts nobody off: a device that reaches nobody can be rid of it.
func TestRemovalOfTheFirewallNeedsNoProof(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := netRig(t)
		rest := file("f", "/etc/f", "x")
		r.want(r.apply(intent(1, manifest("m", shut, rest))), "m/f=changed m/fw=changed")
		r.runner.Reach = nil
		if st := r.apply(intent(2, manifest("m", rest))); len(st.Orphans) != 0 || r.shut() {
			t.Errorf("shut %v, orphans are %+v", r.shut(), st.Orphans)
		}
	})
}
