package pi

import (
	"context"
	"strconv"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/continuo-fleet/continuo/topology"
)

// overtakeAfter is how long a start, or a restart, that somebody else asked for may be in
// the way of an order that is not a start. What starts without end would else be there
// for good.
const overtakeAfter = 10 * time.Second

// foreign reports whether somebody else has an order for a unit under way: a person at a
// terminal, whose command would fail if it were overtaken, or systemd.
func (s *services) foreign(unit string, u unitState) bool {
	given, _ := s.given.Load(unit)
	return u.job != 0 && given != u.job
}

// idle observes a unit for which nobody else has an order under way, and tells whether
// it had to wait for that.
func (s *services) idle(ctx context.Context, verb, unit string) (unitState, bool, error) {
	u, err := s.observe(ctx, unit)
	if err != nil || !s.foreign(unit, u) {
		return u, false, err
	}
	waited, err := s.yield(ctx, verb, unit)
	if err != nil {
		return u, waited, err
	}
	u, err = s.observe(ctx, unit)
	return u, waited, err
}

// yield waits until the orders of somebody else for a unit are done, and tells whether it
// had to. A stop is waited for to its end, as the unit would have to be anyway; anything
// else for overtakeAfter, and then it counts as ours: a start joins it, others break it off.
func (s *services) yield(ctx context.Context, verb, unit string) (waited bool, err error) {
	u, err := s.ask(ctx, unit)
	if err != nil || !s.foreign(unit, u) {
		return false, err
	}
	changed, stop := s.changes(ctx, unit)
	defer stop()
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for began := time.Now(); ; {
		if u, err = s.ask(ctx, unit); err != nil || !s.foreign(unit, u) {
			return true, err
		}
		if time.Since(began) >= overtakeAfter {
			stops, err := s.stops(ctx, unit, u.job)
			if err != nil {
				return true, err
			}
			if !stops {
				s.given.Store(unit, u.job)
				return true, nil
			}
		}
		select {
		case _, ok := <-changed:
			if !ok {
				changed = nil // the connection broke; the ticker will tell
			}
		case <-ticker.C:
		case <-ctx.Done():
			return true, topology.Faultf(topology.FaultOf(ctx.Err()).Code,
				"cannot %s %s: an order of somebody else for it is not done yet; systemctl list-jobs shows it: %v", verb, unit, ctx.Err())
		}
	}
}

// stops reports whether a job stops its unit. One that has ended meanwhile does not.
func (s *services) stops(ctx context.Context, unit string, job uint32) (bool, error) {
	var kind dbus.Variant
	err := s.bus.do(ctx, func(ctx context.Context, l *link) error {
		path := dbus.ObjectPath("/org/freedesktop/systemd1/job/" + strconv.FormatUint(uint64(job), 10))
		return l.calls.Object("org.freedesktop.systemd1", path).
			CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, "org.freedesktop.systemd1.Job", "JobType").Store(&kind)
	})
	if err != nil && errorName(err) != "org.freedesktop.DBus.Error.UnknownObject" {
		return false, busFault("read the job of", unit, err)
	}
	return kind.Value() == "stop", nil
}

// changes gives a token when systemd says that something about a unit changed, until stop
// is called. The channel is nil if there is nobody to listen to, and closed when the
// connection breaks: it hurries a look and is never the only reason for one.
func (s *services) changes(ctx context.Context, unit string) (changed <-chan struct{}, stop func()) {
	l, err := s.bus.link(ctx)
	if err != nil {
		return nil, func() {}
	}
	path := unitPath(unit)
	heard, stop, err := l.listen(ctx, func(s *dbus.Signal) string {
		if s.Path == path && s.Name == propertiesChanged {
			return unit
		}
		return ""
	}, matchUnit(unit))
	if err != nil {
		return nil, func() {}
	}
	return heard.C, stop
}
