package store

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden of this format, if there is none yet")

// readTree reads a folder into memory.
func readTree(t *testing.T, root string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	must(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[strings.TrimPrefix(path, root+"/")], err = os.ReadFile(path)
		return err
	}))
	return files
}

// life1 made testdata/state/v1. It is frozen with it. testdata/state/v1-all was made
// by the last commit that wrote format 1, and has every kind of record of it.
func life1() []operation {
	a, b, c := entry("a", "m", 1), entry("b", "m", 1), entry("c", "n", 3)
	ops := []operation{
		accept("d.main.pi-7", 1),
		begin(apply(a), apply(b), apply(c)),
		end(Result{Resource: a.Resource, LastChanged: 1}, Result{Resource: b.Resource, LastChanged: 1}),
		accept("c.kiosk", 8),
		accept("d.main.pi-7", 2),
		begin(Action{Entry: entry("a", "m", 2), Verb: "apply"}, Action{Entry: b, Verb: "remove"}),
		end(Result{Resource: b.Resource, Release: true}),
		other("forget", func(s *Store) error { return s.Forget("c.kiosk") }),
		other("backup", func(s *Store) error {
			_, err := s.SaveBackup(Backup{Path: "/etc/c", Mode: 0o4640, UID: 7, GID: 8}, []byte("was here\n"))
			return err
		}),
		other("adopt", func(s *Store) error {
			e := entry("e", "m", 2)
			e.Provenance, e.Backup = Adopted, "c.20261129T183000Z.deadbeef"
			return s.Record(apply(e))
		}),
		other("fold", func(s *Store) error { return s.snapshot() }),
		end(Result{Resource: c.Resource, Revert: true}),
	}
	return append(ops, accept("d.main.pi-7", 3), begin(Action{Entry: entry("e", "n", 4), Verb: "apply", Take: true}))
}

// life2 made the golden of format 2: life1, and what format 2 brought.
func life2() []operation {
	return append(life1(),
		other("burn and begin", func(s *Store) error {
			return s.BeginWith(map[string]string{"op/7": "sha256:7"}, withAuthority(entry("a", "m", 5), "plan:7"), withAuthority(entry("z", "m", 5), "plan:7"))
		}),
		keepGood("m", 1), keepGood("m", 2), keepGood("n", 3), keepGood("gone", 1),
		receipt("op-7", "interrupted"), receipt("op-8", "done"),
		other("fold", func(s *Store) error { return s.snapshot() }),
		other("end and note", func(s *Store) error {
			return s.EndWith(map[string]string{"op/7": "", "condemned/m": "5"}, Result{Resource: "file:/etc/z", LastChanged: 5})
		}),
		other("drop", func(s *Store) error { return s.DropGood("gone") }),
		keepGood("n", 5),
	)
}

// goldens are the state directories of every format, as those who wrote it left
// them. They are never edited, only added to.
func goldens(t *testing.T) []string {
	t.Helper()
	golden, err := filepath.Glob("testdata/state/v*.golden")
	must(t, err)
	if len(golden) < 3 {
		t.Fatalf("only %v", golden)
	}
	for i := range golden {
		golden[i] = strings.TrimSuffix(golden[i], ".golden")
	}
	return golden
}

// State directories of every format are opened, not altered by it, say what they
// said, and can be gone on with.
func TestGoldenStateDirectories(t *testing.T) { // cases 130
	const current = "testdata/state/v2"
	if _, err := os.Stat(current); *update && os.IsNotExist(err) {
		files, knew := lived(t, life2())
		for name, content := range files {
			path := filepath.Join(current, name)
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must(t, os.WriteFile(path, content, 0o644))
		}
		must(t, os.WriteFile(current+".golden", []byte(knew), 0o644))
	}
	for _, dir := range goldens(t) {
		files := readTree(t, dir)
		want, err := os.ReadFile(dir + ".golden")
		must(t, err)
		m := memOf(files)
		s, rec := openMem(t, m)
		if got := view(t, s); got != string(want) || len(rec.Findings) > 0 {
			t.Errorf("%s says\n%s\nwant\n%s\nfindings %v", dir, got, want, rec.Findings)
		}
		must(t, s.Repair())
		must(t, s.Close())
		s, _ = openMem(t, m)
		if !maps.EqualFunc(m.Files(), files, bytes.Equal) || m.Stats().Steps > 0 {
			t.Errorf("%s was altered by opening", dir)
		}
		must(t, s.Begin(apply(entry("next", "m", 1))))
		must(t, s.Accept(Intent{"d", 1000, "x", nil}))
		reopen(t, s)
	}

	// A change of what is written, however small, is a new format.
	files, _ := lived(t, life2())
	golden := readTree(t, current)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !bytes.Equal(files[name], golden[name]) {
			t.Errorf("%s is written differently than format %d writes it", name, version)
		}
	}
}
