package store

import (
	"fmt"
	"sync"
	"testing"
)

// cost is what one call does to the disk.
func cost(t *testing.T, m *Mem, do func() error) MemStats {
	t.Helper()
	before := m.Stats()
	must(t, do())
	after := m.Stats()
	return MemStats{after.Steps - before.Steps, after.Syncs - before.Syncs, after.Writes - before.Writes, after.Bytes - before.Bytes}
}

// What each call costs, in syncs and in writes. Replacing a file of the device
// costs two syncs of its own, so that one file action is four: begin, file,
// folder, end. A burnt operation id and any other note come with begin and end
// for nothing.
func TestCosts(t *testing.T) {
	m := NewMem()
	s, _ := mustOpen(t, m)
	must(t, s.Record(apply(entry("first", "m", 1)))) // the books are there
	var batch []Action
	var ends []Result
	for i := range 50 {
		e := entry(fmt.Sprint(i), "m", 1)
		batch, ends = append(batch, apply(e)), append(ends, Result{Resource: e.Resource, LastChanged: 1})
	}
	one := big(1)
	tests := []struct {
		name          string
		do            func() error
		syncs, writes int
		bytes         int64 // at most
	}{
		{"begin", func() error { return s.Begin(apply(one)) }, 1, 1, 1400},
		{"end", func() error { return s.End(Result{Resource: one.Resource, LastChanged: 1}) }, 1, 1, 60},
		{"burn and begin", func() error { return s.BeginWith(map[string]string{"op/1": "x"}, apply(one)) }, 1, 1, 1450},
		{"end and note", func() error {
			return s.EndWith(map[string]string{"op/1": ""}, Result{Resource: one.Resource, LastChanged: 2})
		}, 1, 1, 100},
		{"begin of 50", func() error { return s.Begin(batch...) }, 1, 1, 50 * 150},
		{"end of 50", func() error { return s.End(ends...) }, 1, 1, 50 * 40},
		{"notes", func() error { return s.SetNotes(map[string]string{"a": "1", "b": "2"}) }, 1, 1, 60},
		{"receipt", func() error { return s.SaveReceipt(ReceiptFile{"op-1", clock, make([]byte, 1000)}) }, 2, 1, 1100},
		{"good version", func() error { return s.KeepGood("m", Good{1, "x", make([]byte, 1000)}) }, 3, 2, 1150},
		{"envelope", func() error { return s.Accept(Intent{"d", 1, "x", make([]byte, 1000)}) }, 3, 2, 1150},
		{"notes again", func() error { return s.SetNotes(map[string]string{"a": "1", "b": "2"}) }, 0, 0, 0},
		{"receipt again", func() error { return s.SaveReceipt(ReceiptFile{"op-1", clock, make([]byte, 1000)}) }, 0, 0, 0},
		{"good version again", func() error { return s.KeepGood("m", Good{2, "x", nil}) }, 0, 0, 0},
	}
	for _, tt := range tests {
		got := cost(t, m, tt.do)
		t.Logf("%-20s %d syncs, %5d bytes", tt.name, got.Syncs, got.Bytes)
		if got.Syncs != tt.syncs || got.Writes != tt.writes || got.Bytes > tt.bytes {
			t.Errorf("%s: %+v, want %d syncs, %d writes and at most %d bytes", tt.name, got, tt.syncs, tt.writes, tt.bytes)
		}
	}
}

// Scores that are played at the same time share the syncs: while one begins or
// ends, the others wait, and are then written together.
func TestActionsShareSyncs(t *testing.T) {
	const players = 8
	m := NewMem()
	s, _ := mustOpen(t, m)
	must(t, s.Record(apply(entry("first", "m", 1))))
	round := func(do func(i int) error) int {
		entered, leave, once := make(chan bool), make(chan bool), sync.Once{}
		m.Fault = func(st Step) error {
			if st.Op == "sync" {
				once.Do(func() { close(entered); <-leave })
			}
			return nil
		}
		before := m.Stats().Syncs
		var wg sync.WaitGroup
		play := func(i int) {
			wg.Go(func() {
				if err := do(i); err != nil {
					t.Error(err)
				}
			})
		}
		play(0)
		<-entered
		for i := 1; i < players; i++ {
			play(i)
		}
		waitFor(s, players-1)
		close(leave)
		wg.Wait()
		m.Fault = nil
		return m.Stats().Syncs - before
	}
	begun := round(func(i int) error { return s.Begin(apply(entry(fmt.Sprint(i), "m", 1))) })
	ended := round(func(i int) error { return s.End(Result{Resource: fmt.Sprint("file:/etc/", i), LastChanged: 1}) })
	t.Logf("%d actions at the same time: %d syncs", players, begun+ended)
	if begun != 2 || ended != 2 {
		t.Errorf("%d begins took %d syncs, their ends %d", players, begun, ended)
	}
}
