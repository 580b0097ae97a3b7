package pi

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/godbus/dbus/v5"

	"github.com/continuo-fleet/continuo/internal/atomicfile"
	"github.com/continuo-fleet/continuo/internal/nftables"
	"github.com/continuo-fleet/continuo/topology"
)

// events tells about changes, from inotify and from D-Bus.
type events struct {
	bus  *bus
	root string
}

const (
	busAgainMin = time.Second
	busAgainMax = time.Minute
)

// Watch calls changed until ctx ends.
func (e *events) Watch(ctx context.Context, resources []topology.Resource, changed func(topology.Resource)) error {
	w := watch{root: e.root, files: map[string][]topology.Resource{}, dirs: map[string]bool{}, keys: map[string][]topology.Resource{}}
	for _, r := range resources {
		w.add(r)
	}
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return topology.Faultf(topology.FaultOf(err).Code, "cannot watch files: %v; fs.inotify.max_user_instances may be too low", err)
	}
	defer n.Close()
	w.notify = n
	for p := range w.files {
		if err := w.cover(p); err != nil {
			return err
		}
	}

	filter, deaf := e.filter(resources)
	defer deaf()
	var heard *listener
	var stop func()
	defer func() {
		if stop != nil {
			stop()
		}
	}()
	again := time.NewTimer(0)
	defer again.Stop()
	wait, established := busAgainMin, false
	for {
		var signals <-chan struct{}
		if heard != nil {
			signals = heard.C
		}
		select {
		case <-ctx.Done():
			return topology.FaultOf(ctx.Err())
		case ev, ok := <-n.Events:
			if !ok {
				return topology.Faultf(topology.CodeUnavailable, "the watch of the files ended")
			}
			w.file(ev, changed)
		case err, ok := <-n.Errors:
			if !ok {
				return topology.Faultf(topology.CodeUnavailable, "the watch of the files ended")
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return topology.Faultf(topology.FaultOf(err).Code, "cannot watch files: %v", err)
			}
			w.all(w.files, changed)
		case <-again.C:
			if len(w.keys) > 0 && !e.bus.below {
				if heard, stop = e.listen(ctx, w); heard != nil {
					wait = busAgainMin
				} else {
					again.Reset(wait)
					wait = min(2*wait, busAgainMax)
				}
			}
			switch {
			case !established:
				established = true
				changed("")
			case heard != nil: // what happened meanwhile is not known
				w.all(w.keys, changed)
			}
		case _, ok := <-filter:
			if !ok {
				filter = nil // the safety pass sees what is not heard
			}
			changed(firewallResource)
		case _, ok := <-signals:
			if !ok {
				stop()
				heard, stop = nil, nil
				again.Reset(wait)
				continue
			}
			for key := range heard.take() {
				if key == everyUnit {
					w.all(w.keys, changed)
					break
				}
				for _, r := range w.keys[key] {
					changed(r)
				}
			}
		}
	}
}

// filter hears of the firewall, if it is watched and can be heard.
func (e *events) filter(resources []topology.Resource) (<-chan struct{}, func()) {
	if e.root == "" && slices.Contains(resources, firewallResource) {
		if l, err := nftables.Listen(firewallTable); err == nil {
			return l.C, l.Close
		}
	}
	return nil, func() {}
}

// listen subscribes to what D-Bus says about the watched things; nil: there is no bus.
func (e *events) listen(ctx context.Context, w watch) (*listener, func()) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	l, err := e.bus.link(ctx)
	if err != nil {
		return nil, nil
	}
	heard, stop, err := l.listen(ctx, w.key, w.matches()...)
	if err != nil {
		return nil, nil
	}
	return heard, stop
}

// A watch is the things that one call of Watch is about.
type watch struct {
	root   string
	notify *fsnotify.Watcher
	files  map[string][]topology.Resource // by path
	dirs   map[string]bool                // all that are above them
	keys   map[string][]topology.Resource // by object path on the bus
}

const (
	hostPath  = "/org/freedesktop/hostname1"
	everyUnit = "*"
	// networkKey stands for all connections: which of them a change of an interface is about, only a look tells.
	networkKey = "network"
)

func (w watch) add(r topology.Resource) {
	kind, name, _ := strings.Cut(string(r), ":")
	file := func(p string) {
		w.files[p] = append(w.files[p], r)
		for dir := path.Dir(p); !w.dirs[dir]; dir = path.Dir(dir) {
			w.dirs[dir] = true
		}
	}
	unit := func(unit string) {
		w.keys[string(unitPath(unit))] = append(w.keys[string(unitPath(unit))], r)
	}
	switch kind {
	case "file":
		file(name)
	case "unit":
		if _, of, ok := strings.Cut(name, "/"); ok { // of a user, whose manager is not on this bus
			file(userUnitDirs[0] + of)
			break
		}
		unit(name)
		file(unitDir + name)
	case "container":
		unit(unitOf(name))
		file(definitionFile(name))
	case "job":
		unit(name + ".service")
	case "hostname":
		w.keys[hostPath] = append(w.keys[hostPath], r)
	case "timeSync":
		file(localtime)
		file(timesyncFile)
		unit(timesyncUnit)
	case "connection":
		w.keys[networkKey] = append(w.keys[networkKey], r)
	}
}

// cover watches the directory of p, or the nearest one above it that is there. It
// watches directories because files get replaced.
func (w watch) cover(p string) error {
	below, dir := "", path.Dir(p)
	for tries := 0; ; below, dir = dir, path.Dir(dir) {
		err := w.notify.Add(filepath.Join(w.root, dir))
		for err == nil && below != "" && tries < 3 && w.there(below) { // made just before: nobody will tell of it
			tries++
			below, dir = "", path.Dir(p)
			err = w.notify.Add(filepath.Join(w.root, dir))
		}
		if err == nil || dir == "/" {
			if errors.Is(err, fsnotify.ErrClosed) {
				return topology.Faultf(topology.CodeUnavailable, "the watch of the files ended")
			}
			return nil
		}
		if f := topology.FaultOf(err); f.Code == topology.CodeNoSpace {
			return topology.Faultf(f.Code, "cannot watch %s: %v; fs.inotify.max_user_watches is too low", dir, err)
		}
	}
}

func (w watch) there(p string) bool {
	_, err := os.Lstat(filepath.Join(w.root, p))
	return err == nil
}

// file tells about an event in a watched directory.
func (w watch) file(ev fsnotify.Event, changed func(topology.Resource)) {
	p := ev.Name
	if w.root != "" {
		p = "/" + strings.TrimPrefix(strings.TrimPrefix(p, filepath.Clean(w.root)), "/")
	}
	if atomicfile.IsTemp(path.Base(p)) {
		return
	}
	for _, r := range w.files[p] {
		changed(r)
	}
	if !w.dirs[p] || !ev.Has(fsnotify.Create|fsnotify.Remove|fsnotify.Rename) {
		return
	}
	// A directory on the way came or went: everything below may have.
	for below, rs := range w.files {
		if strings.HasPrefix(below, p+"/") {
			_ = w.cover(below)
			for _, r := range rs {
				changed(r)
			}
		}
	}
}

func (w watch) all(of map[string][]topology.Resource, changed func(topology.Resource)) {
	for _, rs := range of {
		for _, r := range rs {
			changed(r)
		}
	}
}

// manyUnits is where one rule for all units is better than one for each: the bus bounds
// the rules of a connection.
const manyUnits = 100

func (w watch) matches() []string {
	const properties = "type='signal',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged'"
	rules := []string{"type='signal',interface='org.freedesktop.systemd1.Manager',member='UnitFilesChanged'"}
	if _, ok := w.keys[networkKey]; ok {
		rules = append(rules, networkMatches...)
	}
	if len(w.keys) > manyUnits {
		rules = append(rules, properties+",path_namespace='/org/freedesktop/systemd1/unit'", properties+",path='"+hostPath+"'")
		return rules
	}
	for p := range w.keys {
		if p == networkKey {
			continue
		}
		rules = append(rules, properties+",path='"+p+"'")
	}
	return rules
}

// key returns what a signal is about, if it is watched.
func (w watch) key(s *dbus.Signal) string {
	switch s.Name {
	case propertiesChanged:
		if _, ok := w.keys[string(s.Path)]; ok {
			return string(s.Path)
		}
	case "org.freedesktop.systemd1.Manager.UnitFilesChanged":
		return everyUnit
	}
	if _, ok := w.keys[networkKey]; ok && ofNetwork(s) {
		return networkKey
	}
	return ""
}
