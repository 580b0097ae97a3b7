package conform

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

// A SnapshotBench is a file system whose files can be read together.
type SnapshotBench struct {
	FileBench
	Snapshots topology.Snapshots
}

// Snapshots is the suite of reading many files as they were at one time (X53).
func Snapshots(t *testing.T, bench func(*testing.T) SnapshotBench) { suite(t, bench, snapshotTests) }

// tree makes a small tree and reads all of it.
func (b SnapshotBench) tree(t *testing.T) topology.Snapshot {
	t.Helper()
	b.write(t, topology.FileWrite{Path: b.path("d/sub/f"), Content: []byte("one\n"), Mode: 0o640, Owner: b.Owner, Group: b.Group, Mark: "m/s"})
	b.put(t, b.path("d/g"), "two\n")
	hands(t, b.Hands.Symlink("g", b.path("d/l")))
	s := b.Snapshots.Snapshot()
	for _, p := range []string{"d", "d/sub", "d/sub/f", "d/g", "d/l", "d/no", "d/no/no"} {
		_, err := s.Look(t.Context(), b.path(p))
		ok(t, err)
	}
	for p, want := range map[string]string{"d": "g l sub", "d/sub": "f"} {
		names, more, err := s.Entries(t.Context(), b.path(p), 10)
		ok(t, err)
		equal(t, "entries of "+p, strings.Join(names, " "), want)
		equal(t, "more", more, 0)
	}
	for p, want := range map[string]string{"d/sub/f": "one\n", "d/g": "two\n"} {
		content, err := s.Content(t.Context(), b.path(p), 4)
		ok(t, err)
		equal(t, "content of "+p, string(content), want)
	}
	return s
}

var snapshotTests = []test[SnapshotBench]{
	{"what is there", func(t *testing.T, b SnapshotBench) {
		s := b.tree(t)
		for _, name := range []string{"d", "d/sub/f", "d/g", "d/l", "d/no"} {
			got, err := s.Look(t.Context(), b.path(name))
			ok(t, err)
			want := b.state(t, b.path(name))
			want.SHA256, want.Mark = "", ""
			if want.Type == topology.Directory || want.Type == topology.Symlink {
				got.Size = want.Size // what a file system makes of it
			}
			equal(t, name, got, want)
		}
		ok(t, s.Settle(t.Context()))
	}},
	{"bounded", func(t *testing.T, b SnapshotBench) {
		b.tree(t)
		s := b.Snapshots.Snapshot()
		_, err := s.Content(t.Context(), b.path("d/g"), 3)
		fails(t, err, topology.CodeInvalid)
		names, more, err := s.Entries(t.Context(), b.path("d"), 2)
		ok(t, err)
		equal(t, "names", strings.Join(names, " "), "g l")
		equal(t, "more", more, 1)
		ok(t, s.Settle(t.Context()))
	}},
	{"what is no file, and no directory", func(t *testing.T, b SnapshotBench) {
		b.tree(t)
		hands(t, b.Hands.Pipe(b.path("d/p")))
		s := b.Snapshots.Snapshot()
		st, err := s.Look(t.Context(), b.path("d/p"))
		ok(t, err)
		equal(t, "type", st.Type, topology.Special)
		for p, code := range map[string]topology.Code{"d/p": topology.CodeNotRegular, "d": topology.CodeNotRegular, "d/l": topology.CodeSymlink} {
			_, err := s.Content(t.Context(), b.path(p), 10)
			fails(t, err, code)
		}
		for p, code := range map[string]topology.Code{"d/p": topology.CodeNotRegular, "d/g": topology.CodeNotRegular, "d/l": topology.CodeSymlink} {
			_, _, err := s.Entries(t.Context(), b.path(p), 10)
			fails(t, err, code)
		}
		if _, err := s.Content(t.Context(), b.path("d/no"), 10); err == nil {
			t.Error("what is not there has a content")
		}
		if _, _, err := s.Entries(t.Context(), b.path("d/no"), 10); err == nil {
			t.Error("what is not there has entries")
		}
		_, err = s.Look(t.Context(), b.Dir+"/../x")
		fails(t, err, topology.CodeInvalid)
		hands(t, b.Hands.Symlink(b.path("d"), b.path("way")))
		_, err = s.Look(t.Context(), b.path("way/g"))
		fails(t, err, topology.CodeSymlink)
		_, err = s.Content(t.Context(), b.path("way/g"), 10)
		fails(t, err, topology.CodeSymlink)
		ok(t, s.Settle(t.Context()))
	}},
	{"others may work beside it", func(t *testing.T, b SnapshotBench) {
		b.put(t, b.path("f"), "one")
		s := b.Snapshots.Snapshot()
		_, err := s.Look(t.Context(), b.Dir) // and not what is in it
		ok(t, err)
		_, err = s.Content(t.Context(), b.path("f"), 10)
		ok(t, err)
		b.put(t, b.path("beside"), "x")
		ok(t, s.Settle(t.Context()))
	}},
	{"whatever changes meanwhile is told", func(t *testing.T, b SnapshotBench) {
		for name, change := range meanwhile {
			t.Run(name, func(t *testing.T) {
				b := b
				b.Dir = b.path(strings.ReplaceAll(name, " ", "-"))
				hands(t, b.Hands.Directory(b.Dir))
				s := b.tree(t)
				change(t, b)
				fails(t, s.Settle(t.Context()), topology.CodeChanged)
			})
		}
	}},
	{"what changes between two looks is told at once", func(t *testing.T, b SnapshotBench) {
		s := b.tree(t)
		b.put(t, b.path("d/g"), "owt\n")
		_, err := s.Content(t.Context(), b.path("d/g"), 10)
		fails(t, err, topology.CodeChanged)
	}},
	{"canceled", func(t *testing.T, b SnapshotBench) {
		s := b.tree(t)
		_, err := s.Look(canceled(t), b.path("d"))
		fails(t, err, topology.CodeCanceled)
		fails(t, s.Settle(canceled(t)), topology.CodeCanceled)
	}},
}

// meanwhile is what somebody does to the tree after it was read.
var meanwhile = map[string]func(*testing.T, SnapshotBench){
	"rewritten at the same size": func(t *testing.T, b SnapshotBench) { b.put(t, b.path("d/g"), "owt\n") },
	"longer":                     func(t *testing.T, b SnapshotBench) { b.put(t, b.path("d/g"), "two\n\n") },
	"replaced by the same": func(t *testing.T, b SnapshotBench) {
		b.write(t, topology.FileWrite{Path: b.path("d/g"), Content: []byte("two\n"), Mode: 0o644})
	},
	"removed": func(t *testing.T, b SnapshotBench) { b.gone(t, "d/g") },
	"swapped for a symlink": func(t *testing.T, b SnapshotBench) {
		b.gone(t, "d/g")
		hands(t, b.Hands.Symlink("sub/f", b.path("d/g")))
	},
	"swapped for a pipe": func(t *testing.T, b SnapshotBench) { b.gone(t, "d/g"); hands(t, b.Hands.Pipe(b.path("d/g"))) },
	"another mode": func(t *testing.T, b SnapshotBench) {
		ok(t, b.Files.SetAttributes(t.Context(), topology.FileWrite{Path: b.path("d/g"), Mode: 0o600}))
	},
	"another owner": func(t *testing.T, b SnapshotBench) {
		ok(t, b.Files.SetAttributes(t.Context(), topology.FileWrite{Path: b.path("d/g"), Mode: 0o644, Owner: b.Owner}))
	},
	"another name of it":      func(t *testing.T, b SnapshotBench) { hands(t, b.Hands.Link(b.path("d/g"), b.path("another"))) },
	"a file added":            func(t *testing.T, b SnapshotBench) { b.put(t, b.path("d/sub/new"), "") },
	"a file added at the top": func(t *testing.T, b SnapshotBench) { b.put(t, b.path("d/new"), "") },
	"what was not there is":   func(t *testing.T, b SnapshotBench) { b.put(t, b.path("d/no"), "") },
	"the link leads elsewhere": func(t *testing.T, b SnapshotBench) {
		ok(t, b.Files.MakeSymlink(t.Context(), topology.SymlinkWrite{Path: b.path("d/l"), Target: "sub/f", Replaces: "g"}))
	},
	"its parent is another": func(t *testing.T, b SnapshotBench) {
		b.dropSub(t)
		b.write(t, topology.FileWrite{Path: b.path("d/sub/f"), Content: []byte("one\n"), Mode: 0o640, Owner: b.Owner, Group: b.Group})
	},
	"its parent is gone": func(t *testing.T, b SnapshotBench) { b.dropSub(t) },
	"its parent is a link": func(t *testing.T, b SnapshotBench) {
		b.dropSub(t)
		b.write(t, topology.FileWrite{Path: b.path("else/f"), Content: []byte("one\n"), Mode: 0o640})
		hands(t, b.Hands.Symlink(b.path("else"), b.path("d/sub")))
	},
	"the rights of its parent": func(t *testing.T, b SnapshotBench) {
		ok(t, b.Files.MakeDirectory(t.Context(), topology.DirectoryWrite{Path: b.path("d/sub"), Mode: 0o700}))
	},
}

func (b SnapshotBench) gone(t *testing.T, name string) {
	t.Helper()
	ok(t, b.Files.RemoveFile(t.Context(), b.path(name)))
}

func (b SnapshotBench) dropSub(t *testing.T) {
	t.Helper()
	b.gone(t, "d/sub/f")
	ok(t, b.Files.RemoveDirectory(t.Context(), b.path("d/sub")))
}
