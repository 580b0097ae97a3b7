package pi

import (
	"context"
	"time"

	sdbus "github.com/coreos/go-systemd/v22/dbus"

	"github.com/continuo-fleet/continuo/topology"
)

// lookAgain is how often a job that gives no sign is looked at: its end may have been
// announced while systemd executed itself anew.
const lookAgain = time.Second

type order func(l *sdbus.Conn, ctx context.Context, unit, mode string, done chan<- string) (int, error)

var (
	start   order = (*sdbus.Conn).StartUnitContext
	stop    order = (*sdbus.Conn).StopUnitContext
	restart order = (*sdbus.Conn).RestartUnitContext
	reload  order = (*sdbus.Conn).ReloadUnitContext
)

// job gives an order, once nobody else has one under way, and waits for its end. The end
// of ctx ends the waiting, not the job. Before is the invocation that the unit had so far.
func (s *services) job(ctx context.Context, verb, unit string, give order, before string) error {
	if err := s.reload.loadAll(ctx); err != nil {
		return err
	}
	if _, err := s.yield(ctx, verb, unit); err != nil {
		return err
	}
	var id int
	done := make(chan string, 16) // never blocks the sender, whoever stops listening
	err := s.bus.do(ctx, func(ctx context.Context, l *link) (err error) {
		id, err = give(l.systemd, ctx, unit, "replace", done)
		return err
	})
	if err != nil {
		return busFault(verb, unit, err)
	}
	s.given.Store(unit, uint32(id))
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		select {
		case result := <-done:
			return s.verdict(ctx, verb, unit, result, before)
		case <-ctx.Done():
			return topology.Faultf(topology.FaultOf(ctx.Err()).Code, "cannot wait for systemd to %s %s: %v", verb, unit, ctx.Err())
		case <-ticker.C:
			u, err := s.ask(ctx, unit)
			if err != nil {
				return err
			}
			if id != 0 && u.job != uint32(id) {
				select {
				case result := <-done:
					return s.verdict(ctx, verb, unit, result, before)
				default: // its end was missed: what became of the unit tells
					return s.verdict(ctx, verb, unit, "", before)
				}
			}
		}
	}
}

// verdict makes a fault of the result of a job.
func (s *services) verdict(ctx context.Context, verb, unit, result, before string) error {
	if result == "done" {
		return nil
	}
	u, err := s.ask(ctx, unit)
	if err != nil {
		return err
	}
	switch {
	case result == "" && u.Active != "failed" && (u.Active == "active") == (verb != "stop"):
		return nil
	case result == "" && verb == "run" && u.Active == "inactive" && u.Result == "success":
		return nil
	case u.Load != topology.Loaded:
		if err := u.usable(verb, unit); err != nil {
			return err
		}
	case u.Result == "start-limit-hit", verb != "stop" && result == "failed" && before != "" && before == u.Invocation:
		// Systemd keeps the result of the last run, if that failed, as that of the unit:
		// that nothing ran is how a limit shows then.
		return startLimit(verb, unit)
	case result == "dependency":
		return topology.Faultf(topology.CodeJobFailed, "cannot %s %s: a unit that it needs failed; systemctl list-dependencies %s shows which", verb, unit, unit)
	case result == "skipped":
		return topology.Faultf(topology.CodeJobFailed, "cannot %s %s: a condition of the unit does not hold", verb, unit)
	case result == "canceled":
		return topology.Faultf(topology.CodeJobFailed, "cannot %s %s: another order overtook this one", verb, unit)
	case result == "timeout":
		return topology.Faultf(topology.CodeJobFailed, "cannot %s %s: it did not get there in time (result timeout)", verb, unit)
	}
	return topology.Faultf(topology.CodeJobFailed, "cannot %s %s: result %s, exit code %d; journalctl -u %s has its words", verb, unit, u.Result, u.ExitCode, unit)
}

func startLimit(verb, unit string) error {
	return topology.Faultf(topology.CodeStartLimit,
		"cannot %s %s: it was started too often and is left alone until something about it is new; systemctl reset-failed %s lifts that", verb, unit, unit)
}

// Start starts a unit that is not running. One that systemd is about to restart by itself
// is started now if there is something new about it, and else left to systemd.
func (s *services) Start(ctx context.Context, unit string, reset bool) error {
	u, waited, err := s.idle(ctx, "start", unit)
	if err != nil {
		return err
	}
	if err := u.usable("start", unit); err != nil {
		return err
	}
	switch {
	case u.Active == "active" && waited: // somebody else started it, just now
		return s.watch(ctx, "start", unit)
	case u.Active == "active":
		return nil
	case u.Result == "start-limit-hit" && !reset:
		return startLimit("start", unit)
	}
	if u.waits() && !reset {
		back, err := s.spare(ctx, unit, u)
		if back || err != nil {
			return err
		}
	}
	give := start
	if u.waits() {
		give = restart // a start would only wait for its turn
	}
	return s.launch(ctx, "start", unit, give, reset, u.Invocation)
}

// Restart is Stop and Start as one job.
func (s *services) Restart(ctx context.Context, unit string, reset bool) error {
	u, _, err := s.idle(ctx, "restart", unit)
	if err != nil {
		return err
	}
	if err := u.usable("restart", unit); err != nil {
		return err
	}
	if u.Result == "start-limit-hit" && !reset {
		return startLimit("restart", unit)
	}
	return s.launch(ctx, "restart", unit, restart, reset, u.Invocation)
}

// waits: it ended, and systemd is about to start it again by itself, as far as can be
// seen. Nobody asked for its end.
func (u unitState) waits() bool {
	return u.Sub == "auto-restart" || u.Sub == "auto-restart-queued" || u.Active == "deactivating" && u.job == 0
}

// spare leaves a unit that waits to systemd, and tells whether it is back. An order would
// cut short the pause that the unit has between its starts, and make systemd forget how
// often it had to start it. One that ends again and again is a fault; one that stays down
// needs an order after all. A start of its own that is under way is waited for.
func (s *services) spare(ctx context.Context, unit string, was unitState) (back bool, err error) {
	ticker := time.NewTicker(s.settle)
	defer ticker.Stop()
	u := was
	for range 4 {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false, topology.Faultf(topology.FaultOf(ctx.Err()).Code, "cannot wait for systemd to restart %s: %v", unit, ctx.Err())
		}
		if _, err := s.yield(ctx, "start", unit); err != nil {
			return false, err
		}
		now, err := s.ask(ctx, unit)
		if err != nil {
			return false, err
		}
		switch {
		case now.Restarts > was.Restarts+1:
			return false, now.exited(unit)
		case now.Active == "active" && u.Active == "active":
			return true, nil
		case now.Active == "inactive", now.Active == "failed":
			return false, nil
		}
		u = now
	}
	if u.waits() {
		return false, u.exited(unit)
	}
	return u.Active == "active", nil
}

// launch starts a unit and watches it for the settle time.
func (s *services) launch(ctx context.Context, verb, unit string, give order, reset bool, before string) error {
	if reset {
		if err := s.reset(ctx, unit); err != nil {
			return err
		}
	}
	if err := s.job(ctx, verb, unit, give, before); err != nil {
		return err
	}
	return s.watch(ctx, verb, unit)
}

// watch looks at a unit whose start is done until the settle time is over. It looks only
// when systemd says that something about it changed, and at both ends.
func (s *services) watch(ctx context.Context, verb, unit string) error {
	over := time.NewTimer(s.settle)
	defer over.Stop()
	changed, stop := s.changes(ctx, unit)
	defer stop()
	first, err := s.ask(ctx, unit)
	for now, last := first, false; ; {
		if err != nil {
			return err
		}
		if err := now.ended(verb, unit, first, last); err != nil {
			return err
		}
		if last || now.Type == "oneshot" {
			return nil
		}
		select {
		case _, ok := <-changed:
			if !ok {
				changed = nil // the connection broke; the end will tell
			}
		case <-over.C:
			last = true
		case <-ctx.Done():
			return topology.Faultf(topology.FaultOf(ctx.Err()).Code, "cannot watch %s after its start: %v", unit, ctx.Err())
		}
		now, err = s.ask(ctx, unit)
	}
}

// ended is a fault if a unit that was started does not run any more, or not the same
// run of it. What stops just now is judged when it has stopped, or at the last look.
func (u unitState) ended(verb, unit string, first unitState, last bool) error {
	again := u.Restarts > first.Restarts || u.Invocation != first.Invocation
	switch {
	case u.Result == "start-limit-hit":
		return startLimit(verb, unit)
	case u.Active == "deactivating" && !last && !again:
		return nil
	case (u.Active == "active" || u.Active == "reloading" || u.Active == "refreshing") && !again:
		return nil
	case u.Type == "oneshot" && u.Active == "inactive" && u.Result == "success":
		return nil
	case u.Active == "activating" && u.Type == "oneshot" && !again:
		return nil
	}
	return u.exited(unit)
}

func (u unitState) exited(unit string) error {
	return topology.Faultf(topology.CodeExited, "%s started and ended at once: result %s, exit code %d, %d restarts; journalctl -u %s has its words",
		unit, u.Result, u.ExitCode, u.Restarts, unit)
}

// Reload makes a running unit read its configuration again.
func (s *services) Reload(ctx context.Context, unit string) error {
	u, _, err := s.idle(ctx, "reload", unit)
	if err != nil {
		return err
	}
	if err := u.usable("reload", unit); err != nil {
		return err
	}
	switch {
	case !u.CanReload:
		return topology.Faultf(topology.CodeInvalid, "cannot reload %s: it has no ExecReload= and is not of Type=notify-reload", unit)
	case u.Active != "active":
		return topology.Faultf(topology.CodeJobFailed, "cannot reload %s: it is %s", unit, u.Active)
	}
	return s.job(ctx, "reload", unit, reload, "")
}

// Stop stops a unit, also one that is still starting.
func (s *services) Stop(ctx context.Context, unit string) error {
	u, _, err := s.idle(ctx, "stop", unit)
	if err != nil {
		return err
	}
	if u.Active == "inactive" || u.Active == "failed" {
		if u.Load == topology.NotFound {
			return u.usable("stop", unit)
		}
		return nil
	}
	if err := s.job(ctx, "stop", unit, stop, ""); err != nil || u.Active != "activating" {
		return err
	}
	// A start that is broken off counts as a failure of the unit. It was none.
	return s.reset(ctx, unit)
}

// reset drops the memory of a failure, if there is one.
func (s *services) reset(ctx context.Context, unit string) error {
	err := s.bus.do(ctx, func(ctx context.Context, l *link) error { return l.systemd.ResetFailedUnitContext(ctx, unit) })
	if err != nil && errorName(err) != "org.freedesktop.systemd1.NoSuchUnit" {
		return busFault("reset", unit, err)
	}
	return nil
}
