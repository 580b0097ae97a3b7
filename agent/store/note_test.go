package store

import (
	"errors"
	"maps"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestNotes(t *testing.T) {
	onBoth(t, func(t *testing.T, fs FS) {
		s, _ := mustOpen(t, fs)
		must(t, s.SetNotes(map[string]string{"op/1": "a", "op/2": "b", "condemned/m": "c"}))
		must(t, s.SetNotes(map[string]string{"op/1": "", "op/2": "B", "never": ""}))
		s = reopen(t, s)
		if got := s.Notes("op/"); !maps.Equal(got, map[string]string{"op/2": "B"}) {
			t.Errorf("notes of op/: %v", got)
		}
		if v, ok := s.Note("condemned/m"); v != "c" || !ok {
			t.Errorf("condemned/m: %q %v", v, ok)
		}
		if _, ok := s.Note("op/1"); ok {
			t.Error("op/1 was deleted")
		}
		s.Notes("")["op/9"] = "changed by the caller"
		if _, ok := s.Note("op/9"); ok {
			t.Error("the caller changed the books")
		}
	})
}

func TestBoundsOfNotes(t *testing.T) {
	m := NewMem()
	s, _ := mustOpen(t, m)
	for _, notes := range []map[string]string{
		{"": "x"},
		{strings.Repeat("n", 257): "x"},
		{"n": strings.Repeat("v", 4097)},
	} {
		for what, err := range map[string]error{
			"set": s.SetNotes(notes), "begin": s.BeginWith(notes, apply(entry("a", "m", 1))), "end": s.EndWith(notes),
		} {
			if err == nil || !strings.HasPrefix(err.Error(), "cannot note ") {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	if m.Stats().Steps > 0 || len(s.Entries()) > 0 {
		t.Error("a refusal wrote")
	}
	must(t, s.SetNotes(map[string]string{strings.Repeat("n", 256): strings.Repeat("v", 4096)}))
	reopen(t, s)
}

// An operation id is burnt by the same write that begins its first action: there
// is no step between the two at which the power can go.
func TestBurnAndBeginAreOneWrite(t *testing.T) { // K13, X81
	burn := func(s *Store) error {
		return s.BeginWith(map[string]string{"op/7": "sha256:x"}, withAuthority(entry("a", "m", 1), "plan:7"), withAuthority(entry("b", "m", 1), "plan:7"))
	}
	for stop := 0; ; stop++ {
		m := NewMem()
		s, _ := mustOpen(t, m)
		must(t, s.Record(apply(entry("first", "m", 1)))) // the books are there
		from := m.Stats().Steps
		m.Fault = func(st Step) error {
			if st.Op != "read" && st.N > from+stop {
				return ErrStopped
			}
			return nil
		}
		err := burn(s)
		for loss := range losses {
			after, _ := openMem(t, m.Crash(loss))
			_, burnt := after.Note("op/7")
			open := after.OpenActions()
			if begun := len(open) > 0; begun != burnt || err == nil && !burnt || begun && (len(open) != 2 || open[1].Entry.Authority != "plan:7") {
				t.Fatalf("step %d, loss %d: burnt %v, open %+v", stop, loss, burnt, open)
			}
		}
		if err == nil {
			if st := m.Stats(); st.Steps-from != 2 {
				t.Errorf("%d steps for burn and begin", st.Steps-from)
			}
			return
		}
		if _, burnt := s.Note("op/7"); burnt || len(s.OpenActions()) > 0 {
			t.Fatalf("step %d: refused and in memory", stop)
		}
	}
}

// A batch that is refused burns nothing.
func TestRefusedBatchKeepsNotes(t *testing.T) { // K13, cases 128
	m := NewMem()
	s, _ := mustOpen(t, m)
	must(t, s.Record(apply(entry("a", "owner", 1))))
	before := m.Stats()
	var owned *OwnedError
	if err := s.BeginWith(map[string]string{"op/1": "x"}, apply(entry("a", "thief", 1))); !errors.As(err, &owned) {
		t.Fatal(err)
	}
	if err := s.EndWith(map[string]string{"op/1": "x"}, Result{Resource: "file:/etc/a"}); err == nil {
		t.Fatal("ended what was not begun")
	}
	if _, ok := s.Note("op/1"); ok || m.Stats() != before {
		t.Error("a refused batch set its notes")
	}
}

// Three set the same note while a write is under way, and wait together: each is
// judged by books that have those before it, so the last one is what counts.
func TestSameNoteAtTheSameTime(t *testing.T) {
	m := NewMem()
	s, _ := mustOpen(t, m)
	must(t, s.SetNotes(map[string]string{"n": "old"}))
	entered, leave, once := make(chan bool), make(chan bool), sync.Once{}
	m.Fault = func(st Step) error {
		if st.Op == "sync" {
			once.Do(func() { close(entered); <-leave })
		}
		return nil
	}
	var wg sync.WaitGroup
	set := func(v string) {
		wg.Go(func() {
			if err := s.SetNotes(map[string]string{"n": v}); err != nil {
				t.Error(err)
			}
		})
	}
	set("first")
	<-entered
	for n, v := range []string{"second", "first", "second", "first"} {
		set(v)
		waitFor(s, n+1)
	}
	close(leave)
	wg.Wait()
	again, _ := openMem(t, m.Crash(LoseAll))
	if v, _ := s.Note("n"); v != "first" || !maps.Equal(again.Notes(""), s.Notes("")) {
		t.Errorf("in memory %v, on disk %v", s.Notes(""), again.Notes(""))
	}
}

// waitFor waits until n requests wait.
func waitFor(s *Store, n int) {
	for waiting := -1; waiting < n; runtime.Gosched() {
		s.waitingMu.Lock()
		waiting = len(s.waiting)
		s.waitingMu.Unlock()
	}
}

// Authority is what allowed the last change: it is there from Begin, shown while
// the action is open, gone with a revert and kept over restarts and folds.
func TestAuthority(t *testing.T) { // 3.2
	onBoth(t, func(t *testing.T, fs FS) {
		s, _ := mustOpen(t, fs)
		must(t, s.Begin(withAuthority(entry("a", "m", 1), "standing:converge")))
		must(t, s.End(Result{Resource: "file:/etc/a", LastChanged: 1}))
		must(t, s.Begin(withAuthority(entry("a", "m", 2), "plan:2")))
		s = reopen(t, s)
		if o := s.OpenActions(); len(o) != 1 || o[0].Entry.Authority != "plan:2" || o[0].Previous.Authority != "standing:converge" {
			t.Fatalf("open %+v", o)
		}
		must(t, s.snapshot())
		s = reopen(t, s)
		if o := s.OpenActions(); len(o) != 1 || o[0].Entry.Authority != "plan:2" || o[0].Previous.Authority != "standing:converge" {
			t.Fatalf("open after a fold %+v", o)
		}
		must(t, s.End(Result{Resource: "file:/etc/a", Revert: true}))
		if e, _ := s.Owner("file:/etc/a"); e.Authority != "standing:converge" {
			t.Errorf("reverted to %+v", e)
		}
	})
}

func TestNotesOnAFullDisk(t *testing.T) { // cases 43
	m := NewMem()
	s, _ := mustOpen(t, m)
	must(t, s.SetNotes(map[string]string{"n": "old"}))
	m.Fault = func(st Step) error {
		if st.Op == "write" {
			return syscall.ENOSPC
		}
		return nil
	}
	if err := s.SetNotes(map[string]string{"n": "new"}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if v, _ := s.Note("n"); v != "old" {
		t.Errorf("in memory %q", v)
	}
	m.Fault = nil
	must(t, s.SetNotes(map[string]string{"n": "new"}))
}
