package standard_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/service"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// An openrc is a service manager of another family: scripts in one folder, links of run levels in another, processes
// known by their pid files. It shares nothing with the device in memory but the interface.
type openrc struct {
	plainServices
	scripts  map[string]script // /etc/init.d
	runlevel map[string]bool   // /etc/runlevels/default
	pids     map[string]int    // /run/openrc
	last     int
	calls    []string
}

// plainServices is what a service manager says to what it has no idea of: it starts and stops, and that is all.
type plainServices struct{}

var errPlain = topology.Faultf(topology.CodeNotSupported, "this service manager knows nothing of that")

func (plainServices) Log(context.Context, string, string) (string, error)   { return "", nil }
func (plainServices) Controllers(context.Context, string) ([]string, error) { return nil, nil }
func (plainServices) Lingers(context.Context, string) (bool, error)         { return false, nil }
func (plainServices) RemoveDropIn(context.Context, string, string) error    { return errPlain }
func (plainServices) Unmask(context.Context, string) error                  { return errPlain }
func (plainServices) SetLinger(context.Context, string, bool) error         { return errPlain }
func (plainServices) Reload(context.Context, string) error                  { return errPlain }
func (plainServices) RunOnce(context.Context, string, string) error         { return errPlain }

type script struct {
	text string
	mark topology.Mark
}

func newOpenRC() *openrc {
	return &openrc{scripts: map[string]script{}, runlevel: map[string]bool{}, pids: map[string]int{}}
}

func (o *openrc) Services() topology.Services { return o }

func (o *openrc) Service(_ context.Context, unit string) (topology.ServiceState, error) {
	s, there := o.scripts[unit]
	pid := o.pids[unit]
	st := topology.ServiceState{Load: topology.NotFound, Active: "inactive", Sub: "dead", Definition: topology.FileState{Type: topology.Absent}}
	if there {
		sum := sha256.Sum256([]byte(s.text))
		st.Load, st.Enabled, st.Type, st.Source = topology.Loaded, "disabled", "simple", score.UnitDir+unit
		st.Definition = topology.FileState{Type: topology.Regular, Mode: 0o644, SHA256: topology.Sum(hex.EncodeToString(sum[:])), Mark: s.mark}
	}
	if o.runlevel[unit] {
		st.Enabled = "enabled"
	}
	if pid > 0 {
		st.Active, st.Sub, st.MainPID, st.Invocation = "active", "running", pid, fmt.Sprint(pid)
	}
	return st, nil
}

func (o *openrc) did(what, unit string) error {
	o.calls = append(o.calls, what)
	if _, there := o.scripts[unit]; !there {
		return topology.Faultf(topology.CodeInvalid, "there is no script %s", unit)
	}
	return nil
}

func (o *openrc) Define(_ context.Context, d topology.Definition) error {
	o.scripts[d.Unit] = script{string(d.Text), d.Mark}
	return o.did("define", d.Unit)
}

func (o *openrc) Undefine(_ context.Context, unit string) error {
	o.calls = append(o.calls, "undefine")
	delete(o.scripts, unit)
	delete(o.runlevel, unit)
	delete(o.pids, unit)
	return nil
}

func (o *openrc) SetEnabled(_ context.Context, unit string, on bool) error {
	delete(o.runlevel, unit)
	if on {
		o.runlevel[unit] = true
	}
	return o.did("enable", unit)
}

func (o *openrc) Start(_ context.Context, unit string, _ bool) error {
	if o.pids[unit] == 0 {
		o.last++
		o.pids[unit] = o.last
	}
	return o.did("start", unit)
}

func (o *openrc) Stop(_ context.Context, unit string) error {
	delete(o.pids, unit)
	return o.did("stop", unit)
}

func (o *openrc) Restart(_ context.Context, unit string, _ bool) error {
	o.last++
	o.pids[unit] = o.last
	return o.did("restart", unit)
}

// TestSwap: the service kind does the same, in the same order, and reports the same words, on a service manager of
// another family; nothing of it was written for one (H21).
func TestSwap(t *testing.T) {
	dev, rc := memory.New(), newOpenRC()
	tables := map[string]*interpret.Table{"memory": interpret.Bind(dev, service.Kind), "openrc": interpret.Bind(rc, service.Kind)}
	edited := kiosk()
	edited.UnitFile += "# second\n"
	off := edited
	off.Enabled, off.State = new(false), score.Stopped
	trigger := &interpret.Change{Field: interpret.FieldRestart, Have: "a", Want: "b", Effect: interpret.Disrupt}
	for _, step := range []struct {
		name    string
		spec    score.Service
		restart *interpret.Change
		hands   func()
		want    string // outcome, fields, calls
	}{
		{"from nothing", kiosk(), nil, nil, "changed [unitFile create enabled mutate state mutate] [define enable start]"},
		{"again", kiosk(), nil, nil, "unchanged [] []"},
		{"trigger", kiosk(), trigger, nil, "changed [restartOn disrupt] [restart]"},
		{"edited", edited, nil, nil, "changed [unitFile disrupt] [define restart]"},
		{"stopped by hand", edited, nil, func() { dev.StopUnit("kiosk.service"); delete(rc.pids, "kiosk.service") }, "changed [state mutate] [start]"},
		{"disabled by hand", edited, nil, func() { dev.Disable("kiosk.service"); delete(rc.runlevel, "kiosk.service") }, "changed [enabled mutate] [enable]"},
		{"off", off, nil, nil, "changed [enabled mutate state disrupt] [stop enable]"},
		{"still off", off, nil, nil, "unchanged [] []"},
		{"on", edited, nil, nil, "changed [enabled mutate state mutate] [enable start]"},
		{"no such unit", score.Service{Unit: "other.service", State: score.Running}, nil, nil, "failed [] []"},
	} {
		if step.hands != nil {
			step.hands()
		}
		var states []string
		for _, name := range []string{"memory", "openrc"} {
			rc.calls = nil
			rec := dev.Record()
			st, err := tables[name].Play(t.Context(), interpret.Wish{Score: score.Score{ID: "x", Spec: step.spec}, Restart: step.restart}, &open{})
			if err != nil {
				t.Fatal(err)
			}
			calls := rc.calls
			if name == "memory" {
				words := map[memory.Op]string{memory.OpDefine: "define", memory.OpSetEnabled: "enable", memory.OpStart: "start", memory.OpStop: "stop", memory.OpRestart: "restart"}
				for _, op := range ops(rec) {
					calls = append(calls, words[op])
				}
			}
			if got := fmt.Sprint(st.Outcome, " ", fields(st), " ", calls); got != step.want {
				t.Errorf("%s on %s: got %s (%s), want %s", step.name, name, got, st.Message, step.want)
			}
			o := read[service.Observed](t, st)
			states = append(states, fmt.Sprint(o.Load, o.Active, o.Sub, o.Enabled, o.SHA256, o.Mode, o.Source, o.MainPID > 0, st.Conditions.Good()))
		}
		if states[0] != states[1] && !strings.Contains(step.want, "failed") {
			t.Errorf("%s: in memory it is %s, with OpenRC %s", step.name, states[0], states[1])
		}
	}
	for name, table := range tables {
		rc.calls = nil
		if st, err := table.Remove(t.Context(), score.Score{ID: "x", Spec: edited}, interpret.CauseAbsent, &open{}); err != nil || st.Outcome != interpret.Changed {
			t.Errorf("removed from %s: %s, %v", name, st.Message, err)
		}
		if name == "openrc" && (!slices.Equal(rc.calls, []string{"undefine"}) || len(rc.scripts)+len(rc.pids) > 0) {
			t.Errorf("after removal: %v, %+v", rc.calls, rc)
		}
	}
}
