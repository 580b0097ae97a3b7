package conform

import (
	"fmt"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

func (b FileBench) mkdir(t *testing.T, w topology.DirectoryWrite) {
	t.Helper()
	ok(t, b.Files.MakeDirectory(t.Context(), w))
}

// noDirectory wants all changes of a directory at p to fail with a code.
func (b FileBench) noDirectory(t *testing.T, p string, code topology.Code) {
	t.Helper()
	fails(t, b.Files.MakeDirectory(t.Context(), topology.DirectoryWrite{Path: p, Mode: 0o700}), code)
	fails(t, b.Files.RemoveDirectory(t.Context(), p), code)
}

var directoryTests = []test[FileBench]{
	{"directory made", func(t *testing.T, b FileBench) {
		p := b.path("a/b/c")
		b.mkdir(t, topology.DirectoryWrite{Path: p, Mode: 0o2750, Owner: b.Owner, Group: b.Group, Mark: "m/s"})
		for range 2 {
			st := b.state(t, p)
			equal(t, "type", st.Type, topology.Directory)
			equal(t, "mode", st.Mode, 0o2750)
			equal(t, "owner", st.Owner, b.Owner)
			equal(t, "group", st.Group, b.Group)
			equal(t, "mark", st.Mark, "m/s")
			equal(t, "mode of the parent", b.state(t, b.path("a/b")).Mode, 0o755)
			b.mkdir(t, topology.DirectoryWrite{Path: p, Mode: 0o2750, Mark: "m/s"}) // owner and group are left as they are
		}
	}},
	{"directory changed (38)", func(t *testing.T, b FileBench) {
		p := b.path("d")
		hands(t, b.Hands.Directory(p))
		b.put(t, p+"/f", "x")
		b.mkdir(t, topology.DirectoryWrite{Path: p, Mode: 0o3771, Owner: b.Owner, Group: b.Group, Mark: "m/s"})
		st := b.state(t, p)
		equal(t, "mode", st.Mode, 0o3771)
		equal(t, "owner", st.Owner, b.Owner)
		equal(t, "mark", st.Mark, "m/s")
		b.content(t, p+"/f", "x")
		b.mkdir(t, topology.DirectoryWrite{Path: p, Mode: 0o755})
		equal(t, "mark after a change without one", b.state(t, p).Mark, "")
	}},
	{"directory: accounts", func(t *testing.T, b FileBench) {
		for _, w := range []topology.DirectoryWrite{{Path: b.path("d"), Owner: "nobody-has-this-name"}, {Path: b.path("d"), Group: "nobody-has-this-name"}} {
			fails(t, b.Files.MakeDirectory(t.Context(), w), topology.CodeNoAccount)
		}
		b.names(t, b.Dir)
	}},
	{"directory removed", func(t *testing.T, b FileBench) {
		p := b.path("d")
		hands(t, b.Hands.Directory(p))
		b.put(t, p+"/f", "x")
		for range 2 {
			fails(t, b.Files.RemoveDirectory(t.Context(), p), topology.CodeForeign)
		}
		b.content(t, p+"/f", "x")
		ok(t, b.Files.RemoveFile(t.Context(), p+"/f"))
		for range 2 {
			ok(t, b.Files.RemoveDirectory(t.Context(), p))
		}
		ok(t, b.Files.RemoveDirectory(t.Context(), b.path("no/such")))
		b.names(t, b.Dir)
	}},
	{"entries", func(t *testing.T, b FileBench) {
		p := b.path("d")
		hands(t, b.Hands.Directory(p))
		names, more, err := b.Files.Entries(t.Context(), p, 3)
		ok(t, err)
		equal(t, "entries of an empty directory", fmt.Sprint(names, more), "[] 0")
		for _, n := range []string{"c", "a", "caf\u00e9 \U0001F680", ".hidden", "b"} { // 45
			b.put(t, p+"/"+n, "x")
		}
		hands(t, b.Hands.Directory(p+"/sub"))
		b.put(t, p+"/sub/deeper", "x")
		names, more, err = b.Files.Entries(t.Context(), p, 3)
		ok(t, err)
		equal(t, "entries", fmt.Sprint(names, more), "[.hidden a b] 3")
		names, more, err = b.Files.Entries(t.Context(), p, 100)
		ok(t, err)
		equal(t, "entries", fmt.Sprint(names, more), "[.hidden a b c caf\u00e9 \U0001F680 sub] 0")
		_, _, err = b.Files.Entries(t.Context(), p+"/a", 3)
		fails(t, err, topology.CodeNotRegular)
		if _, _, err = b.Files.Entries(t.Context(), b.path("no"), 3); err == nil {
			t.Error("what is not there has entries")
		}
	}},
	{"something else in the place of a directory (28, 30, 33)", func(t *testing.T, b FileBench) {
		b.put(t, b.path("f"), "x")
		hands(t, b.Hands.Directory(b.path("far")))
		hands(t, b.Hands.Symlink(b.path("far"), b.path("link")))
		hands(t, b.Hands.Symlink(b.path("usb/not-mounted"), b.path("dangling")))
		hands(t, b.Hands.Pipe(b.path("pipe")))
		far := b.state(t, b.path("far"))
		for name, code := range map[string]topology.Code{
			"f": topology.CodeNotRegular, "pipe": topology.CodeNotRegular, "link": topology.CodeSymlink, "dangling": topology.CodeSymlink,
			"link/new": topology.CodeSymlink, "f/new": topology.CodeNotRegular,
		} {
			b.noDirectory(t, b.path(name), code)
			_, _, err := b.Files.Entries(t.Context(), b.path(name), 1)
			fails(t, err, code, topology.CodeUnknown)
		}
		equal(t, "state behind the link", b.state(t, b.path("far")), far)
		b.names(t, b.path("far"))
		b.names(t, b.Dir, "dangling", "f", "far", "link", "pipe")
	}},
	{"directory: immutable (40)", func(t *testing.T, b FileBench) {
		p := b.path("up/d")
		hands(t, b.Hands.Directory(b.path("up")))
		hands(t, b.Hands.Directory(p))
		for _, flagged := range []string{p, b.path("up")} {
			hands(t, b.Hands.Immutable(flagged, true))
			after(t, immobile(b, flagged))
			fails(t, b.Files.RemoveDirectory(t.Context(), p), topology.CodeImmutable)
			if flagged == p {
				fails(t, b.Files.MakeDirectory(t.Context(), topology.DirectoryWrite{Path: p, Mode: 0o700}), topology.CodeImmutable)
			} else {
				fails(t, b.Files.MakeDirectory(t.Context(), topology.DirectoryWrite{Path: b.path("up/new"), Mode: 0o700}), topology.CodeImmutable)
			}
			hands(t, b.Hands.Immutable(flagged, false))
		}
		b.names(t, b.path("up"), "d")
		b.mkdir(t, topology.DirectoryWrite{Path: p, Mode: 0o700})
	}},
	{"directory: mount point (24)", func(t *testing.T, b FileBench) {
		p := b.path("d")
		hands(t, b.Hands.Directory(p))
		hands(t, b.Hands.MountPoint(p, true))
		after(t, unmounted(b, p))
		fails(t, b.Files.RemoveDirectory(t.Context(), p), topology.CodeMountPoint)
		b.mkdir(t, topology.DirectoryWrite{Path: p, Mode: 0o711}) // what is mounted there has rights as any other
		equal(t, "mode", b.state(t, p).Mode, 0o711)
	}},
	{"directory: file system without owners (25)", func(t *testing.T, b FileBench) {
		dir, undo, err := b.Hands.Limited("no-owners")
		hands(t, err)
		defer undo()
		for range 2 {
			fails(t, b.Files.MakeDirectory(t.Context(), topology.DirectoryWrite{Path: dir + "/new", Mode: 0o700, Owner: b.Owner}), topology.CodeNotSupported)
		}
		b.names(t, dir, "there")
	}},
	{"directory: read-only file system", func(t *testing.T, b FileBench) {
		dir, undo, err := b.Hands.Limited("read-only")
		hands(t, err)
		defer undo()
		fails(t, b.Files.MakeDirectory(t.Context(), topology.DirectoryWrite{Path: dir + "/new", Mode: 0o700}), topology.CodeReadOnly)
		fails(t, b.Files.MakeSymlink(t.Context(), topology.SymlinkWrite{Path: dir + "/new", Target: "x", Replaces: "absent"}), topology.CodeReadOnly)
		b.names(t, dir, "there")
	}},
	{"directory: canceled", func(t *testing.T, b FileBench) {
		ctx := canceled(t)
		hands(t, b.Hands.Directory(b.path("d")))
		hands(t, b.Hands.Symlink("x", b.path("l")))
		fails(t, b.Files.MakeDirectory(ctx, topology.DirectoryWrite{Path: b.path("new"), Mode: 0o700}), topology.CodeCanceled)
		fails(t, b.Files.RemoveDirectory(ctx, b.path("d")), topology.CodeCanceled)
		fails(t, b.Files.MakeSymlink(ctx, topology.SymlinkWrite{Path: b.path("new"), Target: "x", Replaces: "absent"}), topology.CodeCanceled)
		fails(t, b.Files.RemoveSymlink(ctx, b.path("l")), topology.CodeCanceled)
		_, _, err := b.Files.Entries(ctx, b.path("d"), 1)
		fails(t, err, topology.CodeCanceled)
		b.names(t, b.Dir, "d", "l")
	}},
}
