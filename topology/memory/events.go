package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/topology"
)

type events struct{ d *Device }

// A watcher collects what changed until its goroutine has time for it: nobody who
// changes the device ever waits for a watcher.
type watcher struct {
	want    []topology.Resource
	pending []topology.Resource
	wake    chan struct{} // holds one
}

func (e events) Watch(ctx context.Context, resources []topology.Resource, changed func(topology.Resource)) error {
	w := &watcher{want: slices.Clone(resources), wake: make(chan struct{}, 1)}
	e.d.hands(func() { e.d.watchers[w] = true })
	defer e.d.hands(func() { delete(e.d.watchers, w) })
	changed("")
	for {
		select {
		case <-ctx.Done():
			return topology.FaultOf(ctx.Err())
		case <-w.wake:
		}
		var news []topology.Resource
		e.d.hands(func() { news, w.pending = w.pending, nil })
		for _, r := range news {
			changed(r)
		}
	}
}

// changed tells everyone who waits that resources have changed. The lock is held.
func (d *Device) changed(resources ...topology.Resource) {
	close(d.moved)
	d.moved = make(chan struct{})
	for _, r := range resources {
		if path, ok := strings.CutPrefix(string(r), "file:"); ok {
			d.manager.mark(path)
			if name, ok := unitOfPath(path); ok {
				resources = append(resources, unitResource(name))
			}
		}
	}
	for _, r := range resources {
		if name, ok := strings.CutPrefix(string(r), "unit:"); ok {
			resources = append(resources, containerResource(strings.TrimSuffix(name, ".service")))
		}
	}
	for w := range d.watchers {
		for _, r := range resources {
			for _, want := range w.want {
				if !sameUnit(want, r) || slices.Contains(w.pending, want) {
					continue
				}
				w.pending = append(w.pending, want)
				select {
				case w.wake <- struct{}{}:
				default:
				}
			}
		}
	}
}
