package conform

import (
	"context"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// fileObstacles are things in the place of a file, or on the way to it, that stay as they are.
var fileObstacles = []test[FileBench]{
	{"symbolic link (28, 30)", func(t *testing.T, b FileBench) {
		target := b.path("target")
		b.put(t, target, "new") // the very content that will be wanted
		before := b.state(t, target)
		for name, to := range map[string]string{"link": target, "dangling": b.path("usb/not-mounted"), "itself": b.path("itself")} {
			hands(t, b.Hands.Symlink(to, b.path(name)))
			for range 2 {
				st := b.state(t, b.path(name))
				equal(t, "type", st.Type, topology.Symlink)
				equal(t, "target", st.Target, to)
				b.refused(t, b.path(name), topology.CodeSymlink)
				_, err := b.Files.Content(t.Context(), b.path(name), 100)
				fails(t, err, topology.CodeSymlink)
			}
		}
		equal(t, "state of the target", b.state(t, target), before)
		b.names(t, b.Dir, "dangling", "itself", "link", "target")
	}},
	{"symbolic link on the way (146)", func(t *testing.T, b FileBench) {
		hands(t, b.Hands.Directory(b.path("elsewhere")))
		b.put(t, b.path("elsewhere/f"), "old")
		hands(t, b.Hands.Symlink(b.path("elsewhere"), b.path("way")))
		for _, name := range []string{"way/f", "way/new", "way/deeper/new"} {
			_, err := b.Files.File(t.Context(), b.path(name))
			fails(t, err, topology.CodeSymlink)
			b.refused(t, b.path(name), topology.CodeSymlink)
		}
		b.content(t, b.path("elsewhere/f"), "old")
		b.names(t, b.path("elsewhere"), "f")
	}},
	{"pipe (33)", func(t *testing.T, b FileBench) {
		p := b.path("pipe")
		hands(t, b.Hands.Pipe(p))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		done := make(chan struct{})
		go func() { // a topology that opens the pipe hangs here, and no context can help it
			defer close(done)
			if st, err := b.Files.File(ctx, p); err != nil || st.Type != topology.Special {
				t.Errorf("got %v, %v", st, err)
			}
			w := topology.FileWrite{Path: p, Content: []byte("x"), Mode: 0o644}
			for _, err := range []error{b.Files.WriteFile(ctx, w), b.Files.SetAttributes(ctx, w), b.Files.RemoveFile(ctx, p)} {
				if topology.FaultOf(err).Code != topology.CodeNotRegular {
					t.Errorf("got %v, want not_regular", err)
				}
			}
			if _, err := b.Files.Content(ctx, p, 10); topology.FaultOf(err).Code != topology.CodeNotRegular {
				t.Errorf("got %v, want not_regular", err)
			}
		}()
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			t.Fatal("a pipe in the place of a file blocks")
		}
		equal(t, "type", b.state(t, p).Type, topology.Special)
	}},
	{"directory", func(t *testing.T, b FileBench) {
		hands(t, b.Hands.Directory(b.path("d")))
		equal(t, "type", b.state(t, b.path("d")).Type, topology.Directory)
		b.refused(t, b.path("d"), topology.CodeNotRegular)
		b.put(t, b.path("f"), "x")
		_, err := b.Files.File(t.Context(), b.path("f/below"))
		fails(t, err, topology.CodeNotRegular)
		fails(t, b.Files.WriteFile(t.Context(), topology.FileWrite{Path: b.path("f/below"), Mode: 0o644}), topology.CodeNotRegular)
		b.names(t, b.Dir, "d", "f")
	}},
	{"mount point (24)", func(t *testing.T, b FileBench) {
		p := b.path("hosts")
		b.put(t, p, "old")
		hands(t, b.Hands.MountPoint(p, true))
		after(t, func(context.Context) { _ = b.Hands.MountPoint(p, false) })
		fails(t, b.Files.WriteFile(t.Context(), topology.FileWrite{Path: p, Content: []byte("new"), Mode: 0o644}), topology.CodeMountPoint)
		fails(t, b.Files.RemoveFile(t.Context(), p), topology.CodeMountPoint)
		b.content(t, p, "old")
		b.names(t, b.Dir, "hosts")
	}},
	{"immutable (40)", func(t *testing.T, b FileBench) {
		p := b.path("d/f")
		hands(t, b.Hands.Directory(b.path("d")))
		b.put(t, p, "old")
		for _, flagged := range []string{p, b.path("d")} {
			hands(t, b.Hands.Immutable(flagged, true))
			after(t, func(context.Context) { _ = b.Hands.Immutable(flagged, false) })
			fails(t, b.Files.WriteFile(t.Context(), topology.FileWrite{Path: p, Content: []byte("new"), Mode: 0o644}), topology.CodeImmutable)
			fails(t, b.Files.RemoveFile(t.Context(), p), topology.CodeImmutable)
			if flagged == p {
				fails(t, b.Files.SetAttributes(t.Context(), topology.FileWrite{Path: p, Mode: 0o600}), topology.CodeImmutable)
			}
			b.content(t, p, "old")
			b.names(t, b.path("d"), "f")
			hands(t, b.Hands.Immutable(flagged, false))
		}
		b.write(t, topology.FileWrite{Path: p, Content: []byte("new"), Mode: 0o644})
	}},
	{"full file system (43)", func(t *testing.T, b FileBench) {
		dir, undo, err := b.Hands.Limited("full")
		hands(t, err)
		defer undo()
		fails(t, b.Files.WriteFile(t.Context(), topology.FileWrite{Path: dir + "/there", Content: make([]byte, 1<<20), Mode: 0o644}), topology.CodeNoSpace)
		b.content(t, dir+"/there", "old")
	}},
	{"read-only file system", func(t *testing.T, b FileBench) {
		dir, undo, err := b.Hands.Limited("read-only")
		hands(t, err)
		defer undo()
		b.refused(t, dir+"/there", topology.CodeReadOnly)
		fails(t, b.Files.WriteFile(t.Context(), topology.FileWrite{Path: dir + "/new", Mode: 0o644}), topology.CodeReadOnly)
		b.content(t, dir+"/there", "old")
		b.names(t, dir, "there")
	}},
	{"file system without owners (25)", func(t *testing.T, b FileBench) {
		dir, undo, err := b.Hands.Limited("no-owners")
		hands(t, err)
		defer undo()
		w := topology.FileWrite{Path: dir + "/there", Content: []byte("new"), Mode: 0o600, Owner: b.Owner}
		for range 2 {
			fails(t, b.Files.WriteFile(t.Context(), w), topology.CodeNotSupported)
		}
		b.content(t, dir+"/there", "old")
		b.names(t, dir, "there")
	}},
}
