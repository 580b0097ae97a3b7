package memory

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// A unit is what the service manager remembers of a unit, besides its definition.
type unit struct {
	active, sub string
	persistent  bool // enabled for every boot
	wanted      bool // and so it was when the manager read everything
	runtime     bool // enabled until the next boot
	since       time.Time
	pid         int
	restarts    uint32
	result      string
	status      int
	invocation  string
	log         string
	ran         *topology.Run
}

// unit returns the memory of the service manager for a unit. The lock is held.
func (d *Device) unit(name string) *unit {
	u := d.units[name]
	if u == nil {
		u = &unit{active: "inactive", sub: "dead", result: "success"}
		d.units[name] = u
	}
	return u
}

// become moves a unit to another state.
func (d *Device) become(name string, u *unit, active, sub string) {
	if u.active != active {
		u.since = time.Now()
	}
	u.active, u.sub = active, sub
	d.changed(unitResource(name))
}

func (u *unit) up() bool { return u.active != "inactive" && u.active != "failed" }

type services struct{ d *Device }

func (s services) Service(ctx context.Context, name string) (topology.ServiceState, error) {
	if err := s.d.control.call(ctx, OpService, unitResource(name)); err != nil {
		return topology.ServiceState{}, err
	}
	if err := s.d.loads(ctx, name); err != nil {
		return topology.ServiceState{}, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	st, err := s.d.serviceState(name)
	if err == nil {
		if err = s.d.manages(name); err != nil {
			st.Load, st.Active, st.Sub, st.Enabled = topology.NotFound, "inactive", "dead", ""
		}
	}
	return st, err
}

func (d *Device) serviceState(name string) (topology.ServiceState, error) {
	def, u := d.load(name), &unit{active: "inactive", sub: "dead", result: "success"}
	if known := d.units[name]; known != nil {
		u = known
	}
	file, err := d.fileState(definedAt(name))
	if err != nil {
		return topology.ServiceState{}, err
	}
	st := topology.ServiceState{
		Load: def.load, Active: u.active, Sub: u.sub, Enabled: enabled(def, u), Type: def.typ, Remain: def.remain,
		Since: u.since, MainPID: u.pid, Restarts: u.restarts, Result: u.result, ExitCode: u.status,
		Invocation: u.invocation, Definition: file, Source: def.source, DropIns: d.dropIns(name),
		CanReload: def.reload || def.typ == "notify-reload", Limits: def.limits, Ran: u.ran,
	}
	if def.triggers != "" {
		st.Triggers = []string{def.triggers}
	}
	st.TriggeredBy = d.triggeredBy(name)
	return st, nil
}

// triggeredBy lists the active units that start a unit.
func (d *Device) triggeredBy(ref string) (out []string) {
	for other, u := range d.units {
		owner, name := "", ref
		if i := strings.IndexByte(ref, '/'); i >= 0 {
			owner, name = ref[:i+1], ref[i+1:]
		}
		if strings.HasPrefix(other, owner) && u.up() && d.load(other).triggers == name {
			out = append(out, strings.TrimPrefix(other, owner))
		}
	}
	slices.Sort(out)
	return out
}

func enabled(def definition, u *unit) string {
	switch {
	case def.load == topology.NotFound:
		return ""
	case def.load == topology.Masked:
		return "masked"
	case def.container != "":
		return "generated"
	case u.persistent:
		return "enabled"
	case u.runtime:
		return "enabled-runtime"
	case !def.install:
		return "static"
	}
	return "disabled"
}

func (s services) SetEnabled(ctx context.Context, name string, on bool) error {
	if err := s.d.control.call(ctx, OpSetEnabled, unitResource(name)); err != nil {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if err := s.d.manages(name); err != nil {
		return err
	}
	def := s.d.load(name)
	if err := usable(name, def); err != nil {
		return err
	}
	if on && (!def.install || def.container != "") {
		return topology.Faultf(topology.CodeInvalid, "cannot enable %s: it has no [Install] section", name)
	}
	u := s.d.unit(name)
	if u.persistent != on || u.runtime {
		s.d.manager.debts.AddLater(debtor(name))
		topology.Finally(ctx, s.d, s.d.finish)
	}
	u.persistent, u.runtime = on, false
	s.d.changed(unitResource(name))
	return nil
}

// usable reports why nothing can be done with a unit.
func usable(name string, def definition) error {
	switch def.load {
	case topology.NotFound:
		return topology.Faultf(topology.CodeInvalid, "unit %s does not exist", name)
	case topology.Masked:
		return masked(name)
	case topology.Loaded:
		return nil
	}
	return topology.Faultf(topology.CodeDefinition, "the definition of %s is not accepted: %s", name, def.load)
}

func masked(name string) error {
	return topology.Faultf(topology.CodeMasked, "%s is masked by an administrator", name)
}

func (s services) Start(ctx context.Context, name string, reset bool) error {
	if err := s.d.control.call(ctx, OpStart, unitResource(name)); err != nil {
		return err
	}
	return s.d.start(ctx, name, reset, false)
}

func (s services) Restart(ctx context.Context, name string, reset bool) error {
	if err := s.d.control.call(ctx, OpRestart, unitResource(name)); err != nil {
		return err
	}
	return s.d.start(ctx, name, reset, true)
}

// start starts a unit, in any case or if it does not run, and waits until that is done.
func (d *Device) start(ctx context.Context, name string, reset, again bool) error {
	if err := d.acts(ctx, name); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.manages(name); err != nil {
		return err
	}
	def, u := d.load(name), d.unit(name)
	if err := usable(name, def); err != nil {
		return err
	}
	if u.active == "active" && !again {
		return nil
	}
	if u.result == "start-limit-hit" && !reset {
		return topology.Faultf(topology.CodeStartLimit, "%s was started too often and failed; it is left alone until something about it is new", name)
	}
	if again {
		d.halt(name, u)
	}
	if !again && u.active == "activating" && u.sub == "start-pre" {
		return d.await(ctx, name, u)
	}
	u.restarts = 0
	d.launch(name, def, u)
	if u.active == "activating" && u.sub == "start-pre" {
		return d.await(ctx, name, u)
	}
	return outcome(name, def, u)
}

// await waits until a unit that is starting does so no more. The lock is held, but not
// while waiting.
func (d *Device) await(ctx context.Context, name string, u *unit) error {
	for u.active == "activating" {
		moved := d.moved
		d.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
		}
		d.mu.Lock()
		if err := ctx.Err(); err != nil {
			return topology.Faultf(topology.FaultOf(err).Code, "%s is still starting: %v", name, err)
		}
	}
	if u.active != "active" {
		return topology.Faultf(topology.CodeJobFailed, "%s was stopped while it was starting", name)
	}
	return nil
}

// outcome is what the settle time shows of a unit that was launched.
func outcome(name string, def definition, u *unit) error {
	switch {
	case u.active == "active", def.typ == "oneshot" && u.result == "success":
		return nil
	case def.typ == "oneshot":
		return topology.Faultf(topology.CodeJobFailed, "%s failed: %s, status %d", name, u.result, u.status)
	}
	return topology.Faultf(topology.CodeExited, "%s started and ended with status %d, %d restarts, result %s", name, u.status, u.restarts, u.result)
}

func (s services) Stop(ctx context.Context, name string) error {
	if err := s.d.control.call(ctx, OpStop, unitResource(name)); err != nil {
		return err
	}
	if err := s.d.acts(ctx, name); err != nil {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if err := s.d.manages(name); err != nil {
		return err
	}
	if u := s.d.units[name]; u != nil && u.up() {
		s.d.halt(name, u)
		return nil
	}
	if def := s.d.load(name); def.load == topology.NotFound {
		return usable(name, def)
	}
	return nil
}
