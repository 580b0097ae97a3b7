package conform

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// An EventBench tells about changes of files and, for all of Events, of services and
// containers.
type EventBench struct {
	FileBench
	Events     topology.Events
	Services   *ServiceBench
	Containers *ContainerBench
}

// Events is the suite of what tells about changes. A device may miss some by contract;
// these it may not, or drift is found by the slow safety pass only.
func Events(t *testing.T, bench func(*testing.T) EventBench) {
	suite(t, bench, slices.Concat(fileEventTests, unitEventTests))
}

// FileEvents is the part of Events for a device that has files alone.
func FileEvents(t *testing.T, bench func(*testing.T) EventBench) { suite(t, bench, fileEventTests) }

// watch starts to watch, and returns where changes arrive.
func (b EventBench) watch(t *testing.T, resources ...topology.Resource) <-chan topology.Resource {
	ctx, cancel := context.WithCancel(t.Context())
	seen, done := make(chan topology.Resource, 1000), make(chan error, 1)
	go func() { done <- b.Events.Watch(ctx, resources, func(r topology.Resource) { seen <- r }) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("a watch goes on although its context has ended")
		}
	})
	return seen
}

// told does something until a change of r arrives: the first of its kind may come
// before the watch has begun.
func told(t *testing.T, seen <-chan topology.Resource, r topology.Resource, do func() error) {
	t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(200*time.Millisecond)
	defer tick.Stop()
	for {
		hands(t, do())
		select {
		case got := <-seen:
			if got == r {
				return
			}
		case <-tick.C:
		case <-deadline:
			t.Fatalf("nobody told that %s has changed", r)
		}
	}
}

// quiet takes what has arrived, until nothing comes for a moment.
func quiet(seen <-chan topology.Resource) {
	for {
		select {
		case <-seen:
		case <-time.After(300 * time.Millisecond):
			return
		}
	}
}

var fileEventTests = []test[EventBench]{
	{"file", func(t *testing.T, b EventBench) {
		p := b.path("d/f")
		b.write(t, topology.FileWrite{Path: p, Content: []byte("x"), Mode: 0o644})
		r, other := topology.Resource("file:"+p), topology.Resource("file:"+b.path("d/not-there-yet"))
		seen := b.watch(t, r, other)
		told(t, seen, r, func() error { return b.Hands.Put(p, "edited", 0o644) })
		told(t, seen, r, func() error { return b.Files.WriteFile(t.Context(), topology.FileWrite{Path: p, Mode: 0o644}) })
		told(t, seen, other, func() error { return b.Hands.Put(b.path("d/not-there-yet"), "new", 0o644) })
		told(t, seen, r, func() error {
			if err := b.Files.RemoveFile(t.Context(), p); err != nil {
				return err
			}
			return b.Hands.Put(p, "back", 0o644)
		})
	}},
	{"says when it begins to see", func(t *testing.T, b EventBench) {
		p := b.path("begin/f")
		b.write(t, topology.FileWrite{Path: p, Content: []byte("x"), Mode: 0o644})
		r := topology.Resource("file:" + p)
		seen := b.watch(t, r)
		arrives := func(want topology.Resource) {
			t.Helper()
			for deadline := time.After(patience); ; {
				select {
				case got := <-seen:
					if got == want {
						return
					}
				case <-deadline:
					t.Fatalf("nobody told of %q", want)
				}
			}
		}
		arrives("")
		hands(t, b.Hands.Put(p, "edited", 0o644)) // once
		arrives(r)
	}},
	{"directory that is made later", func(t *testing.T, b EventBench) {
		p := b.path("later/f")
		seen := b.watch(t, topology.Resource("file:"+p))
		told(t, seen, topology.Resource("file:"+p), func() error {
			return b.Files.WriteFile(t.Context(), topology.FileWrite{Path: p, Content: []byte("x"), Mode: 0o644})
		})
	}},
}

var unitEventTests = []test[EventBench]{
	{"unit (H25, H62)", func(t *testing.T, b EventBench) {
		s := *b.Services
		u := s.unit(t, "watched.service")
		s.define(t, u, runs)
		s.start(t, u)
		r := topology.Resource("unit:" + u)
		seen := b.watch(t, r)
		told(t, seen, r, func() error { return s.Services.Restart(t.Context(), u, true) })
		quiet(seen)
		hands(t, s.Hands.Kill(u))
		told(t, seen, r, func() error { return nil })
		told(t, seen, r, func() error {
			return s.Services.Define(t.Context(), topology.Definition{Unit: u, Text: []byte(runs + "# new\n"), Mark: "m/s"})
		})
	}},
	{"container (H25)", func(t *testing.T, b EventBench) {
		k := *b.Containers
		c := k.config(t, k.Runs, "watched")
		k.run(t, c)
		r := topology.Resource("container:" + c.Name)
		seen := b.watch(t, r)
		told(t, seen, r, func() error { return k.Containers.Restart(t.Context(), c.Name) })
		quiet(seen)
		hands(t, k.Hands.Kill(c.Name))
		told(t, seen, r, func() error { return nil })
	}},
}
