package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// remove takes the directory away under an open store.
func remove(t *testing.T, fs FS) {
	t.Helper()
	if m, ok := fs.(*Mem); ok {
		m.RemoveAll()
		return
	}
	must(t, os.RemoveAll(fs.String()))
}

func TestDirectoryRemovedWhileRunning(t *testing.T) { // cases 122
	onBoth(t, func(t *testing.T, fs FS) {
		s, _ := mustOpen(t, fs)
		must(t, s.Accept(Intent{"d", 3, "x", []byte("body")}))
		must(t, s.Begin(apply(entry("a", "m", 3)), apply(entry("b", "m", 3))))
		must(t, s.End(Result{Resource: "file:/etc/a"}))
		must(t, s.SetNotes(map[string]string{"op/1": "x"}))
		must(t, s.KeepGood("m", Good{1, "one", []byte("1")}))
		must(t, s.SaveReceipt(ReceiptFile{"op-1", clock, nil}))
		must(t, s.Check())
		remove(t, fs)
		if err := s.Check(); !errors.Is(err, ErrGone) {
			t.Fatalf("check: %v", err)
		}
		must(t, s.End(Result{Resource: "file:/etc/b"})) // the next write makes it again
		must(t, s.Check())
		f := s.Findings()
		if len(f) != 1 || f[0].Code != CodeRebuilt || !f[0].Lost || s.Findings() != nil {
			t.Fatalf("findings %v", f)
		}
		if err := s.Accept(Intent{"d", 2, "w", nil}); !errors.Is(err, ErrRegressed) {
			t.Fatalf("the mark went with the directory: %v", err)
		}
		if _, ok, err := s.Intent("d"); ok || err != nil {
			t.Fatalf("envelope: %v %v", ok, err)
		}
		must(t, s.Accept(Intent{"d", 3, "x", []byte("body")})) // the same one is written again
		if _, ok, err := s.Good("m"); ok || err != nil {
			t.Fatalf("good version: %v %v", ok, err)
		}
		must(t, s.KeepGood("m", Good{1, "one", []byte("1")})) // as well
		if _, ok, err := s.Receipt("op-1"); ok || err != nil {
			t.Fatalf("receipt: %v %v", ok, err)
		}
		must(t, s.SaveReceipt(ReceiptFile{"op-1", clock, nil}))
		if _, ok := s.Note("op/1"); !ok {
			t.Fatal("a note went with the directory")
		}
		before := view(t, s)
		if after := view(t, reopen(t, s)); after != before {
			t.Fatalf("before:\n%s\nafter:\n%s", before, after)
		}
	})
}

func TestRepairAfterRemoval(t *testing.T) { // cases 122
	onBoth(t, func(t *testing.T, fs FS) {
		s, _ := mustOpen(t, fs)
		must(t, s.Record(apply(entry("a", "m", 3))))
		remove(t, fs)
		must(t, s.Repair())
		if f := s.Findings(); len(f) != 1 || f[0].Lost {
			t.Fatalf("findings %v", f)
		}
		if s = reopen(t, s); len(s.Entries()) != 1 {
			t.Fatal("the ledger was not written again")
		}
	})
}

func TestJournalRemovedWhileRunning(t *testing.T) {
	onBoth(t, func(t *testing.T, fs FS) {
		s, _ := mustOpen(t, fs)
		must(t, s.Record(apply(entry("a", "m", 1))))
		must(t, fs.Remove(journalFile(s.slot)))
		if err := s.Check(); !errors.Is(err, ErrGone) {
			t.Fatalf("check: %v", err)
		}
		must(t, s.Record(apply(entry("b", "m", 1))))
		if f := s.Findings(); len(f) != 1 || f[0].Code != CodeRebuilt || f[0].Lost {
			t.Fatalf("findings %v", f)
		}
		if s = reopen(t, s); len(s.Entries()) != 2 {
			t.Fatal("lost")
		}
	})
}

// A directory that somebody put in the place of the open one is not written
// over: it may know more than the memory.
func TestDirectoryExchangedWhileRunning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	s, _ := mustOpen(t, Dir(path))
	must(t, s.Record(apply(entry("a", "m", 1))))
	must(t, os.Rename(path, path+".old"))
	second, _ := mustOpen(t, Dir(path))
	must(t, second.Record(apply(entry("b", "n", 1))))
	if err := s.Record(apply(entry("c", "m", 1))); !errors.Is(err, ErrLocked) {
		t.Fatalf("somebody else's: %v", err)
	}
	must(t, second.Close())
	err := s.Record(apply(entry("c", "m", 1)))
	if !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "restart the agent") {
		t.Fatalf("other state: %v", err)
	}
	must(t, s.Close())
	s, _ = mustOpen(t, Dir(path))
	if e := s.Entries(); len(e) != 1 || e[0].Score != "b" {
		t.Fatalf("entries %v", e)
	}
}

// What a killed agent was writing is swept, what only looks like it is not.
func TestLeftOversAreSwept(t *testing.T) { // cases 27
	path := filepath.Join(t.TempDir(), "state")
	s, _ := mustOpen(t, Dir(path))
	must(t, s.Accept(Intent{"d", 1, "x", nil}))
	must(t, s.Close())
	const temp = ".continuo-ABCDEFGHIJKLMNOP-7"
	for _, name := range []string{temp, "intent/" + temp, ".continuo-notes"} {
		must(t, os.WriteFile(filepath.Join(path, name), []byte("half"), 0o600))
	}
	mustOpen(t, Dir(path))
	for _, folder := range []string{path, filepath.Join(path, "intent")} {
		files, err := os.ReadDir(folder)
		must(t, err)
		for _, f := range files {
			if f.Name() == temp {
				t.Errorf("%s is left in %s", temp, folder)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(path, ".continuo-notes")); err != nil {
		t.Error(err)
	}
}

// A directory that others could read is made private, and one that cannot be
// made is a sentence.
func TestDirectoryItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	must(t, os.Mkdir(path, 0o755))
	mustOpen(t, Dir(path))
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", info.Mode())
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, _, err := Open(Dir(file), Options{}); err == nil || !strings.HasPrefix(err.Error(), "cannot create state directory: ") {
		t.Errorf("got %v", err)
	}
}

// Opening leaves an existing directory as it was, to the timestamps.
func TestOpenAltersNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	s, _ := mustOpen(t, Dir(path))
	for _, op := range script() {
		must(t, op.do(s))
	}
	must(t, s.Close())
	stamps := func() (out []string) {
		must(t, filepath.WalkDir(path, func(p string, d os.DirEntry, walkErr error) error {
			must(t, walkErr)
			info, err := d.Info()
			must(t, err)
			out = append(out, p+" "+info.ModTime().String()+" "+info.Mode().String())
			return nil
		}))
		return out
	}
	before := stamps()
	s, _ = mustOpen(t, Dir(path))
	_ = view(t, s)
	must(t, s.Close())
	if after := stamps(); !slices.Equal(before, after) {
		t.Errorf("before %q\nafter %q", before, after)
	}
}

// The directory goes, and the first that is written then is one of the new things.
func TestAnyWriteMakesTheDirectoryAgain(t *testing.T) { // cases 122
	for what, do := range map[string]func(s *Store) error{
		"notes":   func(s *Store) error { return s.SetNotes(map[string]string{"op/2": "y"}) },
		"good":    func(s *Store) error { return s.KeepGood("m", Good{1, "one", nil}) },
		"drop":    func(s *Store) error { return s.DropGood("m") },
		"receipt": func(s *Store) error { return s.SaveReceipt(ReceiptFile{"op-1", clock, nil}) },
	} {
		onBoth(t, func(t *testing.T, fs FS) {
			s, _ := mustOpen(t, fs)
			must(t, s.BeginWith(map[string]string{"op/1": "x"}, apply(entry("a", "m", 1))))
			must(t, s.KeepGood("m", Good{1, "one", nil}))
			remove(t, fs)
			must(t, do(s))
			must(t, s.DropGood("m"))
			s = reopen(t, s)
			if _, ok := s.Note("op/1"); !ok || len(s.OpenActions()) != 1 {
				t.Errorf("%s: the books were not written again", what)
			}
		})
	}
}

// Folders and pipes in the place of files stop nobody.
func TestNotFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	s, _ := mustOpen(t, Dir(path))
	must(t, s.Record(apply(entry("a", "m", 1))))
	must(t, s.Close())
	must(t, os.Remove(filepath.Join(path, "journal.1")))
	must(t, os.Mkdir(filepath.Join(path, "journal.1"), 0o700))
	must(t, os.Symlink("/etc/passwd", filepath.Join(path, "ledger.0")))
	s, rec := mustOpen(t, Dir(path))
	if !rec.Lost() || rec.Fresh {
		t.Errorf("recovered %+v", rec)
	}
	must(t, s.Record(apply(entry("b", "m", 1))))
}
