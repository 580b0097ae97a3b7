package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// copied tells which files of an old directory its upgrade copies.
func copied(name string) bool {
	return strings.HasPrefix(name, "ledger.") || strings.HasPrefix(name, "journal.") || strings.HasPrefix(name, intentFolder+"/")
}

// upgraded tells whether the directory has a ledger of this format.
func upgraded(files map[string][]byte) bool {
	for slot := range 2 {
		if f := files[ledgerFile(slot)]; len(f) > 12 && binary.LittleEndian.Uint32(f[8:]) == version {
			return true
		}
	}
	return false
}

// hasCopy holds the copy against the directory as it was.
func hasCopy(t *testing.T, was, is map[string][]byte) {
	t.Helper()
	for name, content := range was {
		if kept, ok := is["v1/"+name]; copied(name) && (!ok || !bytes.Equal(kept, content)) {
			t.Errorf("the copy of %s is missing or not the same", name)
		}
	}
	for name := range is {
		if rest, ok := strings.CutPrefix(name, "v1/"); ok && was[rest] == nil {
			t.Errorf("%s is in the copy and never was in the directory", rest)
		}
	}
}

// Every way to write the first time.
var firstChanges = map[string]func(s *Store) error{
	"begin":   func(s *Store) error { return s.Begin(withAuthority(entry("first", "m", 9), "plan:1")) },
	"accept":  func(s *Store) error { return s.Accept(Intent{"d.main.pi-7", 9, "digest9", []byte("nine")}) },
	"notes":   func(s *Store) error { return s.SetNotes(map[string]string{"op/1": "x"}) },
	"good":    func(s *Store) error { return s.KeepGood("m", Good{1, "x", []byte("body")}) },
	"receipt": func(s *Store) error { return s.SaveReceipt(ReceiptFile{"op-1", clock, []byte("body")}) },
	"backup": func(s *Store) error {
		_, err := s.SaveBackup(Backup{Path: "/etc/first"}, []byte("first"))
		return err
	},
}

// The first change makes the directory one of this format and keeps a copy of what
// was there. The power goes after every step of it: the books are those of before
// or after, and there is no ledger of this format without a whole copy beside it,
// with which the earlier version goes on as it was.
func TestUpgrade(t *testing.T) { // cases 130
	for _, dir := range []string{"testdata/state/v1", "testdata/state/v1-all"} {
		was := readTree(t, dir)
		golden, err := os.ReadFile(dir + ".golden")
		must(t, err)
		cuts := 0
		for what, change := range firstChanges {
			whole, _ := openMem(t, memOf(was))
			must(t, change(whole))
			after := view(t, whole)
			files := whole.fs.(*Mem).Files()
			if !upgraded(files) || after == string(golden) {
				t.Errorf("%s of %s did not upgrade it", what, dir)
			}
			hasCopy(t, was, files)
			inMap(t, files)
			before := whole.fs.(*Mem).Stats()
			must(t, whole.Repair())
			reopen(t, whole)
			if now := whole.fs.(*Mem).Stats(); now != before {
				t.Errorf("%s: the upgrade goes on: %+v, before %+v", what, now, before)
			}
			for stop := 0; ; stop++ {
				m := memOf(was)
				m.Fault = func(st Step) error {
					if st.N > stop && st.Op != "read" {
						return ErrStopped
					}
					return nil
				}
				s, _ := openMem(t, m)
				if change(s) == nil {
					break
				}
				for loss := range losses {
					cuts++
					at := fmt.Sprintf("%s of %s cut after step %d, loss %d", what, dir, stop, loss)
					next := m.Crash(loss)
					files := next.Files()
					s, rec := openMem(t, next)
					if got := view(t, s); got != string(golden) && got != after || slices.ContainsFunc(rec.Findings, func(f Finding) bool { return f.Code != CodeTorn }) {
						t.Fatalf("%s:\n%s\nfindings %v", at, got, rec.Findings)
					}
					if upgraded(files) {
						hasCopy(t, was, files)
					}
					must(t, change(s))
					must(t, s.Repair())
					hasCopy(t, was, next.Files())
					s = reopen(t, s)
					if got := view(t, s); got != after {
						t.Fatalf("%s, done again:\n%s\nwant\n%s", at, got, after)
					}
					back := NewMem()
					for name, content := range next.Files() {
						if rest, ok := strings.CutPrefix(name, "v1/"); ok {
							back.Put(rest, content)
						} else if strings.HasPrefix(name, backupFolder) && was[name] != nil {
							back.Put(name, content)
						}
					}
					old, rec := openMem(t, back)
					if got := view(t, old); got != string(golden) || len(rec.Findings) > 0 {
						t.Fatalf("%s, copy put back:\n%s\nfindings %v", at, got, rec.Findings)
					}
					if t.Failed() {
						t.Fatal(at)
					}
				}
			}
		}
		if cuts < 100 {
			t.Errorf("only %d cuts", cuts)
		}
	}
}

// Any one step of the upgrade fails: the change is refused, the books say what they
// said, and it can be done again.
func TestEveryStepOfAnUpgradeFails(t *testing.T) { // cases 43, 130
	const dir = "testdata/state/v1-all"
	was := readTree(t, dir)
	golden, err := os.ReadFile(dir + ".golden")
	must(t, err)
	change := firstChanges["begin"]
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EROFS} {
		for bad := 1; ; bad++ {
			m, hit := memOf(was), false
			m.Fault = func(st Step) error {
				if st.N == bad && st.Op != "read" && !hit {
					hit = true
					return errno
				}
				return nil
			}
			s, _ := openMem(t, m)
			err := change(s)
			if !hit {
				if bad < 20 {
					t.Errorf("only %d steps", bad)
				}
				break
			}
			if got := view(t, s); !errors.Is(err, errno) || got != string(golden) {
				t.Fatalf("%v at step %d: %v\n%s", errno, bad, err, got)
			}
			must(t, change(s))
			hasCopy(t, was, m.Files())
			inMap(t, m.Files())
			reopen(t, s)
		}
	}
}

// An upgrade after an earlier one that was taken back: the copies do not mix.
func TestSecondUpgrade(t *testing.T) {
	was := readTree(t, "testdata/state/v1")
	m := memOf(was)
	m.Put("v1/ledger.0", []byte("of another time"))
	m.Put("v1/intent/gone.0", []byte("of another time"))
	s, _ := openMem(t, m)
	must(t, s.SetNotes(map[string]string{"a": "b"}))
	hasCopy(t, was, m.Files())
}

// On a real directory, whose folders are made one in another.
func TestUpgradeOnDisk(t *testing.T) {
	const dir = "testdata/state/v1-all"
	root := filepath.Join(t.TempDir(), "state")
	must(t, os.CopyFS(root, os.DirFS(dir)))
	s, _ := mustOpen(t, Dir(root))
	must(t, s.Begin(apply(entry("first", "m", 9))))
	hasCopy(t, readTree(t, dir), readTree(t, root))
	inMap(t, readTree(t, root))
	reopen(t, s)
}

// A directory of an earlier format is damaged in every way: as with this one, it
// is known or said to be lost, and the copy is taken before anything is altered.
func TestEveryDamageOfAnOldFormat(t *testing.T) {
	const dir = "testdata/state/v1-all"
	files := readTree(t, dir)
	knew, err := os.ReadFile(dir + ".golden")
	must(t, err)
	n := 0
	for name, content := range files {
		if !copied(name) || len(content) < headSize+10 {
			continue
		}
		for kind, damaged := range damages(name, content) {
			n++
			at := name + ": " + kind
			m := memOf(files)
			m.Put(name, damaged)
			s, rec := openMem(t, m)
			got := view(t, s)
			if got != string(knew) && !rec.Lost() && !cutAtRecord(name, content, damaged) || rec.Newer {
				t.Fatalf("%s: findings %v\n%s\nknew\n%s", at, rec.Findings, got, knew)
			}
			must(t, s.SetNotes(map[string]string{"a": "b"}))
			if is := m.Files(); damaged != nil && !bytes.Equal(is["v1/"+name], damaged) || !upgraded(is) {
				t.Fatalf("%s: no copy of the damaged file, or no upgrade", at)
			}
			must(t, s.SetNotes(map[string]string{"a": ""}))
			again, _ := openMem(t, m.Crash(LoseAll))
			if told := view(t, again); told != got {
				t.Fatalf("%s: told\n%s\nand after the upgrade\n%s", at, got, told)
			}
		}
	}
	if n < 1000 {
		t.Errorf("only %d damages", n)
	}
}
