package pi

import (
	"context"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/continuo-fleet/continuo/internal/unitfiles"
	"github.com/continuo-fleet/continuo/topology"
)

// Where systemd, and podman's generator, read definitions.
var unitDirs = []string{
	"/etc/systemd/system/", "/run/systemd/system/", "/usr/local/lib/systemd/system/", "/usr/lib/systemd/system/", "/lib/systemd/system/",
	"/etc/systemd/system.control/", "/etc/containers/systemd/", "/run/containers/systemd/", "/usr/share/containers/systemd/",
}

// userUnitDirs is where the service managers of users read definitions, but for their own folders.
var userUnitDirs = []string{"/etc/systemd/user/", "/run/systemd/user/", "/usr/local/lib/systemd/user/", "/usr/lib/systemd/user/"}

// reloadMark says, to the next process after this one was killed, that a definition was
// written and not yet loaded. It is below /run because a boot loads everything.
const reloadMark = "/run/continuo/reload-needed"

// A reloader has systemd read its definitions again: once, before anything that depends
// on them, however many were written. In a batch it waits until the others of the batch have
// written theirs as well, and what can wait is done at the end of it.
type reloader struct {
	bus     *bus
	dirs    []string // where its service manager, or a generator of it, reads definitions
	note    string   // path of reloadMark
	debts   unitfiles.Debts
	running chan struct{} // holds one token

	mu       sync.Mutex
	linked   uint64          // the marks when links were changed last; 0: not since the last reload
	stubborn map[string]bool // units that are stale after a reload, too
}

func newReloader(b *bus, dirs []string, note string) *reloader {
	r := &reloader{bus: b, dirs: dirs, note: note, running: make(chan struct{}, 1), stubborn: map[string]bool{}}
	if !b.below {
		if _, err := os.Lstat(note); err == nil {
			r.debts.Add(unitfiles.Every)
		}
	}
	return r
}

type unitKey struct{}

// about returns a context whose changes of files are about one unit, which their paths do not tell for sure.
func about(ctx context.Context, unit string) context.Context {
	return context.WithValue(ctx, unitKey{}, unit)
}

// mark notes that p is about to change. NeedDaemonReload of a unit is not enough: systemd
// does not see a drop-in directory that is new, and a clock that was set back deceives it.
func (r *reloader) mark(ctx context.Context, p string) {
	if r.bus.below {
		return
	}
	for _, d := range r.dirs {
		below, ok := strings.CutPrefix(p, d)
		if !ok {
			continue
		}
		unit, known := ctx.Value(unitKey{}).(string)
		switch {
		case known:
		case strings.Contains(d, "/containers/"):
			unit = unitfiles.Every // the text tells what its unit is called
		default:
			unit = unitfiles.Unit(below)
		}
		r.need(unit)
		topology.Finally(ctx, r, r.finish)
		return
	}
}

func (r *reloader) need(unit string) { r.owe(func() { r.debts.Add(unit) }) }

// relinked notes that a unit was enabled or disabled. Nothing but a boot depends on that. Systemd calls all units
// stale until the next reload after it.
func (r *reloader) relinked(ctx context.Context, unit string) {
	r.owe(func() {
		r.debts.AddLater(unit)
		r.linked = r.debts.Marks()
	})
	topology.Finally(ctx, r, r.finish)
}

func (r *reloader) owe(add func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, owed := r.debts.Any()
	add()
	if owed || os.MkdirAll(path.Dir(r.note), 0o755) != nil {
		return
	}
	if f, err := os.OpenFile(r.note, os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_ = f.Close()
	}
}

// load has systemd read a unit again, under all its names, if that is owed.
func (r *reloader) load(ctx context.Context, names ...string) error {
	if _, any := r.debts.Any(); !any {
		return nil
	}
	batch := topology.Finally(ctx, r, r.finish)
	return r.settle(ctx, func() bool { return r.debts.Owed(names...) || !batch && r.debts.Deferred(names...) })
}

// loadAll has systemd read again all that an order may depend on: units start others.
func (r *reloader) loadAll(ctx context.Context) error {
	batch := topology.Finally(ctx, r, r.finish)
	return r.settle(ctx, func() bool {
		now, atAll := r.debts.Any()
		return now || !batch && atAll
	})
}

// finish pays what is owed at the end of a batch. A manager that does not run reads everything when it starts.
func (r *reloader) finish(ctx context.Context) error {
	err := r.once(ctx, func() bool { _, atAll := r.debts.Any(); return atAll })
	if err != nil && topology.FaultOf(err).Code == topology.CodeUnavailable {
		return nil
	}
	return err
}

// settle reloads while owed says so, once all of a batch have written what they have.
func (r *reloader) settle(ctx context.Context, owed func() bool) error {
	if !owed() {
		return nil
	}
	if err := topology.Gather(ctx); err != nil {
		return busFault("reload", "the service manager", err)
	}
	return r.once(ctx, owed)
}

func (r *reloader) once(ctx context.Context, owed func() bool) error {
	select {
	case r.running <- struct{}{}:
		defer func() { <-r.running }()
	case <-ctx.Done():
		return busFault("reload", "the service manager", ctx.Err())
	}
	if !owed() {
		return nil // somebody else did
	}
	marks := r.debts.Marks()
	err := r.bus.doFor(ctx, reloadTimeout, func(ctx context.Context, l *link) error { return l.systemd.ReloadContext(ctx) })
	if err != nil {
		return busFault("reload", "the service manager", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.debts.Pay(marks)
	if r.linked <= marks {
		r.linked = 0
	}
	if _, owed := r.debts.Any(); !owed {
		_ = os.Remove(r.note)
	}
	return nil
}

// deceived reports whether systemd calls every unit stale because of links of ours.
func (r *reloader) deceived() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.linked > 0
}

// worthwhile reports whether a reload may help a unit that systemd calls stale.
func (r *reloader) worthwhile(unit string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.stubborn[unit]
}

// helped notes whether it did.
func (r *reloader) helped(unit string, yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if yes {
		delete(r.stubborn, unit)
	} else {
		r.stubborn[unit] = true
	}
}
