package store

import (
	"fmt"
	"strings"
)

// Bounds of one note. How many there are is for the caller to bound: all of them
// are in memory and in every snapshot.
const (
	maxNoteName  = 256
	maxNoteValue = 4 << 10
)

// Note returns a small named fact.
func (s *Store) Note(name string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.notes[name]
	return v, ok
}

// Notes returns every note whose name starts with prefix.
func (s *Store) Notes(prefix string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]string{}
	for name, v := range s.notes {
		if strings.HasPrefix(name, prefix) {
			out[name] = v
		}
	}
	return out
}

// SetNotes sets notes, and deletes those that are "": one durable write for all
// of them, and none when they say nothing new. A name may have 256 bytes, a
// value 4 KiB.
func (s *Store) SetNotes(notes map[string]string) error { return s.BeginWith(notes) }

func checkNotes(notes map[string]string) error {
	for name, v := range notes {
		if name == "" || len(name) > maxNoteName || len(v) > maxNoteValue {
			return fmt.Errorf("cannot note %.80q: the name is empty or has more than %d bytes, or the value has more than %d", name, maxNoteName, maxNoteValue)
		}
	}
	return nil
}

// noteRecords are the records of what notes change, with room for more.
func (s *Store) noteRecords(notes map[string]string, more int) []record {
	recs := make([]record, 0, len(notes)+more)
	for _, name := range sortedKeys(notes) {
		if s.notes[name] != notes[name] {
			recs = append(recs, record{kind: kindNote, name: name, value: notes[name]})
		}
	}
	return recs
}
