package pi

import (
	"context"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
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
// on them, however many were written.
type reloader struct {
	bus     *bus
	dirs    []string      // where its service manager, or a generator of it, reads definitions
	note    string        // path of reloadMark
	marked  atomic.Uint64 // counts marks
	clean   atomic.Uint64 // marks that were there when the last reload began
	running chan struct{} // holds one token

	mu       sync.Mutex
	stubborn map[string]bool // units that are stale after a reload, too
}

func newReloader(b *bus, dirs []string, note string) *reloader {
	r := &reloader{bus: b, dirs: dirs, note: note, running: make(chan struct{}, 1), stubborn: map[string]bool{}}
	if !b.below {
		if _, err := os.Lstat(note); err == nil {
			r.marked.Store(1)
		}
	}
	return r
}

// mark notes that p is about to change. NeedDaemonReload of a unit is not enough: systemd
// does not see a drop-in directory that is new.
func (r *reloader) mark(p string) {
	if r.bus.below {
		return
	}
	for _, d := range r.dirs {
		if strings.HasPrefix(p, d) {
			r.need()
			return
		}
	}
}

func (r *reloader) need() {
	if r.marked.Add(1) == r.clean.Load()+1 && os.MkdirAll(path.Dir(r.note), 0o755) == nil {
		if f, err := os.OpenFile(r.note, os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			_ = f.Close()
		}
	}
}

// settle reloads if anything was marked since the last reload.
func (r *reloader) settle(ctx context.Context) error {
	if r.marked.Load() == r.clean.Load() {
		return nil
	}
	select {
	case r.running <- struct{}{}:
		defer func() { <-r.running }()
	case <-ctx.Done():
		return busFault("reload", "the service manager", ctx.Err())
	}
	marks := r.marked.Load()
	if marks == r.clean.Load() {
		return nil // somebody else did
	}
	err := r.bus.doFor(ctx, reloadTimeout, func(ctx context.Context, l *link) error { return l.systemd.ReloadContext(ctx) })
	if err != nil {
		return busFault("reload", "the service manager", err)
	}
	r.clean.Store(marks)
	if r.marked.Load() == marks {
		_ = os.Remove(r.note)
	}
	return nil
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
