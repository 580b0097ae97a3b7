package conform

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

// A FileBench is a file system to test.
type FileBench struct {
	Files topology.Files
	// Dir is an empty directory for this case alone.
	Dir string
	// Owner and Group are accounts other than the agent's, by name, and their numbers.
	Owner, Group string
	UID, GID     uint32
	Hands        FileHands
}

// FileHands act on the files of a device as somebody else.
type FileHands interface {
	Put(path, content string, mode uint32) error
	Read(path string) (string, error)
	List(dir string) ([]string, error)        // names, without "." and ".."
	Identity(path string) (string, error)     // changes if the file is replaced or its content written
	Symlink(target, path string) error        // the target need not exist
	Directory(path string) error              //
	Pipe(path string) error                   // a named pipe without a reader or writer
	Link(path, another string) error          // a hard link
	Immutable(path string, on bool) error     // the flag that even root respects
	MountPoint(path string, on bool) error    // something is mounted on the file
	SetACL(path string) error                 // gives another account a right of its own
	ACL(path string) (string, error)          // in any form that can be compared
	Run(path string) (stop func(), err error) // makes the file a program that runs
	// Limited returns a directory on a file system with a limit, which holds a file "there" with
	// the content "old": "full", "read-only", or "no-owners" (as vfat).
	Limited(limit string) (dir string, undo func(), err error)
}

func (b FileBench) path(name string) string { return path.Join(b.Dir, name) }

// state is the state of a file, which must be had.
func (b FileBench) state(t *testing.T, p string) topology.FileState {
	t.Helper()
	st, err := b.Files.File(t.Context(), p)
	ok(t, err)
	return st
}

// content wants the file to have a content.
func (b FileBench) content(t *testing.T, p, want string) {
	t.Helper()
	got, err := b.Hands.Read(p)
	hands(t, err)
	equal(t, "content of "+p, got, want)
}

// names wants a directory to hold these and nothing else.
func (b FileBench) names(t *testing.T, dir string, want ...string) {
	t.Helper()
	got, err := b.Hands.List(dir)
	hands(t, err)
	equal(t, "content of "+dir, strings.Join(got, " "), strings.Join(want, " "))
}

func (b FileBench) put(t *testing.T, p, content string) {
	t.Helper()
	hands(t, b.Hands.Put(p, content, 0o644))
}

func (b FileBench) write(t *testing.T, w topology.FileWrite) {
	t.Helper()
	ok(t, b.Files.WriteFile(t.Context(), w))
}

// refused wants all three changes of the file at p to fail with a code.
func (b FileBench) refused(t *testing.T, p string, code topology.Code) {
	t.Helper()
	w := topology.FileWrite{Path: p, Content: []byte("new"), Mode: 0o600}
	fails(t, b.Files.WriteFile(t.Context(), w), code)
	fails(t, b.Files.SetAttributes(t.Context(), w), code)
	fails(t, b.Files.RemoveFile(t.Context(), p), code)
}

func sum(s string) topology.Sum { return topology.SumOf([]byte(s)) }

// Files is the suite of a file system.
func Files(t *testing.T, bench func(*testing.T) FileBench) {
	suite(t, bench, slices.Concat(fileTests, fileObstacles, fileHygiene, sourceTests, directoryTests, symlinkTests))
}

var fileTests = []test[FileBench]{
	{"absent", func(t *testing.T, b FileBench) {
		for _, p := range []string{b.path("no"), b.path("no/such/file")} {
			equal(t, "type", b.state(t, p).Type, topology.Absent)
			if _, err := b.Files.Content(t.Context(), p, 10); err == nil {
				t.Errorf("%s has a content", p)
			}
			ok(t, b.Files.RemoveFile(t.Context(), p))
			if err := b.Files.SetAttributes(t.Context(), topology.FileWrite{Path: p, Mode: 0o644}); err == nil {
				t.Errorf("%s, which does not exist, has new attributes", p)
			}
			equal(t, "type", b.state(t, p).Type, topology.Absent)
		}
	}},
	{"written (H60)", func(t *testing.T, b FileBench) {
		p := b.path("a/b/c")
		b.write(t, topology.FileWrite{Path: p, Content: []byte("hello\n"), Mode: 0o640, Owner: b.Owner, Group: b.Group, Mark: "m/s"})
		want := topology.FileState{
			Type: topology.Regular, Size: 6, SHA256: sum("hello\n"), Mode: 0o640,
			UID: b.UID, GID: b.GID, Owner: b.Owner, Group: b.Group, Links: 1, Mark: "m/s",
		}
		equal(t, "state", b.state(t, p), want)
		b.content(t, p, "hello\n")
		got, err := b.Files.Content(t.Context(), p, 6)
		ok(t, err)
		equal(t, "content", string(got), "hello\n")
		if _, err := b.Files.Content(t.Context(), p, 5); err == nil {
			t.Error("more was read than the limit allows")
		}
		dir := b.state(t, b.path("a"))
		equal(t, "type of the parent", dir.Type, topology.Directory)
		equal(t, "mode of the parent", dir.Mode, 0o755)
	}},
	{"replaced only while it is what was seen (G37)", func(t *testing.T, b FileBench) {
		p := b.path("seen/f")
		seen := func(replaces topology.Sum, content string, code topology.Code) {
			t.Helper()
			w := topology.FileWrite{Path: p, Content: []byte(content), Mode: 0o644, Replaces: replaces}
			if code == "" {
				b.write(t, w)
				return
			}
			fails(t, b.Files.WriteFile(t.Context(), w), code)
		}
		seen(sum("1"), "2", topology.CodeChanged)
		equal(t, "type", b.state(t, p).Type, topology.Absent)
		seen("absent", "1", "")
		seen("absent", "2", topology.CodeChanged)
		seen(sum("0"), "2", topology.CodeChanged)
		b.content(t, p, "1")
		seen(sum("1"), "2", "")
		seen(b.state(t, p).Is(), "3", "")
		b.content(t, p, "3")
		b.names(t, b.path("seen"), "f")
	}},
	{"empty", func(t *testing.T, b FileBench) {
		p := b.path("empty")
		b.write(t, topology.FileWrite{Path: p, Mode: 0o644})
		st := b.state(t, p)
		equal(t, "type", st.Type, topology.Regular)
		equal(t, "sha256", st.SHA256, sum(""))
	}},
	{"rewritten", func(t *testing.T, b FileBench) {
		p := b.path("f")
		b.write(t, topology.FileWrite{Path: p, Content: []byte("one"), Mode: 0o600, Owner: b.Owner, Group: b.Group, Mark: "m/one"})
		b.write(t, topology.FileWrite{Path: p, Content: []byte("two"), Mode: 0o644, Mark: "m/two"})
		st := b.state(t, p)
		equal(t, "sha256", st.SHA256, sum("two"))
		equal(t, "mode", st.Mode, 0o644)
		equal(t, "owner, which was left out", st.Owner, b.Owner)
		equal(t, "group, which was left out", st.Group, b.Group)
		equal(t, "mark", st.Mark, "m/two")
		b.write(t, topology.FileWrite{Path: p, Content: []byte("two"), Mode: 0o644})
		equal(t, "mark after a write without one", b.state(t, p).Mark, "")
	}},
	{"attributes (38)", func(t *testing.T, b FileBench) {
		p := b.path("f")
		b.put(t, p, "program")
		before, err := b.Hands.Identity(p)
		hands(t, err)
		w := topology.FileWrite{Path: p, Content: []byte("not written"), Mode: 0o4755, Owner: b.Owner, Group: b.Group, Mark: "m/s"}
		ok(t, b.Files.SetAttributes(t.Context(), w))
		for range 2 { // the change of owner must not have cleared the bit
			st := b.state(t, p)
			equal(t, "mode", st.Mode, 0o4755)
			equal(t, "owner", st.Owner, b.Owner)
			equal(t, "group", st.Group, b.Group)
			equal(t, "mark", st.Mark, "m/s")
		}
		b.content(t, p, "program")
		now, err := b.Hands.Identity(p)
		hands(t, err)
		equal(t, "identity", now, before)
		b.write(t, topology.FileWrite{Path: p, Content: []byte("new"), Mode: 0o6755, Owner: b.Owner, Group: b.Group})
		equal(t, "mode of a written file", b.state(t, p).Mode, 0o6755)
	}},
	{"accounts", func(t *testing.T, b FileBench) {
		p := b.path("f")
		b.write(t, topology.FileWrite{Path: p, Mode: 0o644, Owner: "54321", Group: "54322"})
		st := b.state(t, p)
		equal(t, "uid", st.UID, 54321)
		equal(t, "owner without a name", st.Owner, "54321")
		equal(t, "group without a name", st.Group, "54322")
		for _, w := range []topology.FileWrite{{Path: p, Owner: "nobody-has-this-name"}, {Path: p, Group: "nobody-has-this-name"}} {
			fails(t, b.Files.WriteFile(t.Context(), w), topology.CodeNoAccount)
			fails(t, b.Files.SetAttributes(t.Context(), w), topology.CodeNoAccount)
		}
		equal(t, "state", b.state(t, p), st)
		fails(t, b.Files.WriteFile(t.Context(), topology.FileWrite{Path: b.path("new"), Owner: "nobody-has-this-name"}), topology.CodeNoAccount)
		b.names(t, b.Dir, "f")
	}},
	{"removed", func(t *testing.T, b FileBench) {
		b.put(t, b.path("f"), "x")
		b.put(t, b.path("other"), "y")
		for range 2 {
			ok(t, b.Files.RemoveFile(t.Context(), b.path("f")))
			equal(t, "type", b.state(t, b.path("f")).Type, topology.Absent)
		}
		b.names(t, b.Dir, "other")
	}},
	{"names are bytes (45)", func(t *testing.T, b FileBench) {
		nfc, nfd := b.path("caf\u00e9 \U0001F680.txt"), b.path("cafe\u0301 \U0001F680.txt")
		b.write(t, topology.FileWrite{Path: nfc, Content: []byte("c"), Mode: 0o644})
		equal(t, "the other spelling", b.state(t, nfd).Type, topology.Absent)
		b.write(t, topology.FileWrite{Path: nfd, Content: []byte("d"), Mode: 0o644})
		ok(t, b.Files.RemoveFile(t.Context(), nfd))
		b.content(t, nfc, "c")
		b.names(t, b.Dir, path.Base(nfc))
	}},
	{"paths that are none", func(t *testing.T, b FileBench) {
		for _, p := range []string{"", "relative", b.Dir + "/../x", b.Dir + "//x", b.Dir + "/x/", b.Dir + "/x\x00y", b.path(strings.Repeat("n", 256)) + "/x"} {
			if err := b.Files.WriteFile(t.Context(), topology.FileWrite{Path: p, Content: []byte("x"), Mode: 0o644}); err == nil {
				t.Errorf("%q was written", p)
			} else {
				fails(t, err, topology.CodeInvalid)
			}
		}
		b.names(t, b.Dir)
	}},
	{"canceled", func(t *testing.T, b FileBench) {
		p := b.path("f")
		b.put(t, p, "old")
		ctx := canceled(t)
		w := topology.FileWrite{Path: p, Content: []byte("new"), Mode: 0o600}
		fails(t, b.Files.WriteFile(ctx, w), topology.CodeCanceled)
		fails(t, b.Files.SetAttributes(ctx, w), topology.CodeCanceled)
		fails(t, b.Files.RemoveFile(ctx, p), topology.CodeCanceled)
		_, err := b.Files.File(ctx, p)
		fails(t, err, topology.CodeCanceled)
		equal(t, "mode", b.state(t, p).Mode, 0o644)
		b.content(t, p, "old")
		b.names(t, b.Dir, "f")
	}},
}
