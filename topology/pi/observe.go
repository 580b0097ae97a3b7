package pi

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/topology"
)

// observe returns what systemd knows of a unit, after what is on disk was loaded.
func (s *services) observe(ctx context.Context, unit string) (unitState, error) {
	if err := checkUnit(unit); err != nil {
		return unitState{}, err
	}
	if s.reload.debts.Owed(unit) {
		s.readAnew(ctx, unit)
	}
	if err := s.reload.load(ctx, unit); err != nil {
		return unitState{}, err
	}
	u, err := s.ask(ctx, unit)
	if err == nil && s.reload.debts.Owed(u.names...) { // under another name
		if err = s.reload.load(ctx, u.names...); err == nil {
			u, err = s.ask(ctx, unit)
		}
	}
	if err != nil {
		return u, err
	}
	if s.reload.debts.Deferred(unit) && u.Load == topology.Loaded && isGone(cmp.Or(u.sourcePath, u.Source)) {
		// What is loaded is nothing but a memory, until the end of the batch.
		u.Load, u.Enabled, u.Source, u.sourcePath = topology.NotFound, "", "", ""
	}
	if u.Stale = u.Stale && !s.reload.deceived(); !u.Stale {
		return u, nil
	}
	// Somebody changed the definition and did not reload. A unit that stays stale, for
	// whatever reason, costs no reload on every look.
	if !s.reload.worthwhile(unit) {
		return u, nil
	}
	s.reload.need(unit)
	if err := s.reload.load(ctx, unit); err != nil {
		return unitState{}, err
	}
	u, err = s.ask(ctx, unit)
	u.Stale = u.Stale && !s.reload.deceived()
	s.reload.helped(unit, err != nil || !u.Stale)
	return u, err
}

// readAnew lets systemd read a unit that it has not loaded, which takes no reload: the question does it. What
// it has read is compared with the disk, as systemd finds what is new by the times of directories.
func (s *services) readAnew(ctx context.Context, unit string) {
	marks := s.reload.debts.Marks()
	err := s.bus.do(ctx, func(ctx context.Context, l *link) error {
		return l.calls.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").
			CallWithContext(ctx, "org.freedesktop.systemd1.Manager.GetUnit", 0, unit).Err
	})
	if errorName(err) != "org.freedesktop.systemd1.NoSuchUnit" {
		return
	}
	u, err := s.ask(ctx, unit)
	if err != nil || u.Load != topology.Loaded || u.Source != s.dir+unit {
		return
	}
	dir := s.dropInDir(unit)
	for _, name := range s.list(dir) {
		if strings.HasSuffix(name, ".conf") && name[0] != '.' && !slices.Contains(u.dropIns, dir+"/"+name) {
			return
		}
	}
	s.reload.debts.Forgive(unit, marks)
}

// isGone reports whether there is certainly nothing at p.
func isGone(p string) bool {
	_, err := os.Lstat(p)
	return errors.Is(err, fs.ErrNotExist)
}

// letGo lets the manager forget a unit whose definition is gone at the end of a batch, with all others, and
// without one at the next look. If there is another definition of it, that comes to light at the next look.
func (s *services) letGo(ctx context.Context, unit string) (batch bool) {
	for _, dir := range s.reload.dirs {
		if !isGone(dir + unit) {
			return false
		}
	}
	s.reload.debts.Defer(unit)
	return topology.Finally(ctx, s.reload, s.reload.finish)
}
