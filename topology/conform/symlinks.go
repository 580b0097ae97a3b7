package conform

import (
	"context"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

func immobile(b FileBench, p string) func(context.Context) {
	return func(context.Context) { _ = b.Hands.Immutable(p, false) }
}

func unmounted(b FileBench, p string) func(context.Context) {
	return func(context.Context) { _ = b.Hands.MountPoint(p, false) }
}

func (b FileBench) symlink(t *testing.T, p, target, replaces string) {
	t.Helper()
	ok(t, b.Files.MakeSymlink(t.Context(), topology.SymlinkWrite{Path: p, Target: target, Replaces: replaces}))
	st := b.state(t, p)
	equal(t, "type", st.Type, topology.Symlink)
	equal(t, "target", st.Target, target)
}

var symlinkTests = []test[FileBench]{
	{"symlink made, changed and removed", func(t *testing.T, b FileBench) {
		p := b.path("a/link")
		b.put(t, b.path("target"), "x")
		before := b.state(t, b.path("target"))
		b.symlink(t, p, b.path("target"), "absent")
		b.symlink(t, p, "../caf\u00e9 \U0001F680", b.path("target")) // relative, nowhere, and bytes (30, 45)
		b.symlink(t, p, p, "../caf\u00e9 \U0001F680")
		b.names(t, b.path("a"), "link")
		for range 2 {
			ok(t, b.Files.RemoveSymlink(t.Context(), p))
			b.names(t, b.path("a"))
		}
		ok(t, b.Files.RemoveSymlink(t.Context(), b.path("no/such")))
		equal(t, "state of the target", b.state(t, b.path("target")), before)
	}},
	{"where a path leads", func(t *testing.T, b FileBench) {
		hands(t, b.Hands.Directory(b.path("real")))
		hands(t, b.Hands.Directory(b.path("real/sub")))
		b.put(t, b.path("real/sub/f"), "x")
		for at, target := range map[string]string{
			"abs": b.path("real"), "rel": "real/sub", "up": "rel/..", "twice": b.path("abs"), "nowhere": b.path("no/../gone"), "loop": "loop",
		} {
			hands(t, b.Hands.Symlink(target, b.path(at)))
		}
		for at, want := range map[string]string{
			"real/sub/f": "real/sub/f", "abs": "real", "abs/sub/f": "real/sub/f", "rel/f": "real/sub/f", "up": "real", "up/sub": "real/sub",
			"twice/sub": "real/sub", "nowhere/x": "gone/x", "not/there": "not/there",
		} {
			got, err := b.Files.Resolve(t.Context(), b.path(at))
			ok(t, err)
			equal(t, "where "+at+" leads", got, b.path(want))
		}
		_, err := b.Files.Resolve(t.Context(), b.path("loop/x"))
		fails(t, err, topology.CodeSymlink)
	}},
	{"symlink replaced only while it is what was seen", func(t *testing.T, b FileBench) {
		p := b.path("link")
		want := func(replaces string, code topology.Code) {
			t.Helper()
			fails(t, b.Files.MakeSymlink(t.Context(), topology.SymlinkWrite{Path: p, Target: "/new", Replaces: replaces}), code)
		}
		want("/old", topology.CodeChanged)
		b.names(t, b.Dir)
		hands(t, b.Hands.Symlink("/seen", p))
		want("absent", topology.CodeChanged)
		want("/old", topology.CodeChanged)
		want("/see", topology.CodeChanged)
		equal(t, "target", b.state(t, p).Target, "/seen")
		b.symlink(t, p, "/new", "/seen")
		b.names(t, b.Dir, "link")
	}},
	{"something else in the place of a symlink (33)", func(t *testing.T, b FileBench) {
		b.put(t, b.path("f"), "x")
		hands(t, b.Hands.Directory(b.path("d")))
		hands(t, b.Hands.Pipe(b.path("pipe")))
		hands(t, b.Hands.Symlink(b.path("d"), b.path("way")))
		for name, code := range map[string]topology.Code{
			"f": topology.CodeNotRegular, "d": topology.CodeNotRegular, "pipe": topology.CodeNotRegular,
			"way/new": topology.CodeSymlink, "f/new": topology.CodeNotRegular,
		} {
			for _, replaces := range []string{"absent", "/x"} {
				fails(t, b.Files.MakeSymlink(t.Context(), topology.SymlinkWrite{Path: b.path(name), Target: "/x", Replaces: replaces}), code)
			}
			fails(t, b.Files.RemoveSymlink(t.Context(), b.path(name)), code)
		}
		b.content(t, b.path("f"), "x")
		b.names(t, b.path("d"))
		b.names(t, b.Dir, "d", "f", "pipe", "way")
	}},
	{"symlink: immutable directory (40)", func(t *testing.T, b FileBench) {
		d := b.path("d")
		hands(t, b.Hands.Directory(d))
		hands(t, b.Hands.Symlink("/x", d+"/link"))
		hands(t, b.Hands.Immutable(d, true))
		after(t, immobile(b, d))
		fails(t, b.Files.MakeSymlink(t.Context(), topology.SymlinkWrite{Path: d + "/link", Target: "/y", Replaces: "/x"}), topology.CodeImmutable)
		fails(t, b.Files.MakeSymlink(t.Context(), topology.SymlinkWrite{Path: d + "/new", Target: "/y", Replaces: "absent"}), topology.CodeImmutable)
		fails(t, b.Files.RemoveSymlink(t.Context(), d+"/link"), topology.CodeImmutable)
		b.names(t, d, "link")
	}},
	{"symlink: file system without owners, and without links (25)", func(t *testing.T, b FileBench) {
		dir, undo, err := b.Hands.Limited("no-owners")
		hands(t, err)
		defer undo()
		for range 2 {
			fails(t, b.Files.MakeSymlink(t.Context(), topology.SymlinkWrite{Path: dir + "/new", Target: "x", Replaces: "absent"}), topology.CodeNotSupported)
		}
		b.names(t, dir, "there")
	}},
}
