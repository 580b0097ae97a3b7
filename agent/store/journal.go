package store

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Begin is [Store.BeginWith] without notes.
func (s *Store) Begin(actions ...Action) error { return s.BeginWith(nil, actions...) }

// BeginWith records that each action is about to be done, and that its entry is in
// the ledger from now on: one durable write for all of them and for the notes
// ([Store.SetNotes]). Nothing of the device may be touched before it returns nil.
//
// It refuses with an *[OwnedError] when a resource belongs to another manifest,
// unless the action takes it, and then records none of them. An action that
// was begun and not ended may be begun once more.
//
// Actions that are begun or ended at the same time share the sync.
func (s *Store) BeginWith(notes map[string]string, actions ...Action) error {
	if err := checkNotes(notes); err != nil {
		return err
	}
	r := newRequest(len(actions), notes)
	for _, a := range actions {
		r.about = append(r.about, about{"", a.Entry.Resource})
	}
	r.records = func() ([]record, error) {
		if err := s.claim(actions); err != nil {
			return nil, err
		}
		recs := s.noteRecords(notes, len(actions))
		for _, a := range actions {
			recs = append(recs, record{kind: kindBegin, verb: a.Verb, entry: a.Entry})
		}
		return recs, nil
	}
	return s.commit(r)
}

// Record puts entries into the ledger without an action, for what needed no
// change: adopting what was right already, or moving to another manifest.
// Verbs are ignored, and entries that say nothing new are not written.
func (s *Store) Record(actions ...Action) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.claim(actions); err != nil {
		return err
	}
	var recs []record
	for _, a := range actions {
		if e := s.entries[a.Entry.Resource]; e == nil || !same(*e, a.Entry) {
			recs = append(recs, record{kind: kindPut, entry: a.Entry})
		}
	}
	return s.write(recs...)
}

// claim checks actions against the ledger and against each other.
func (s *Store) claim(actions []Action) error {
	var batch map[string]bool
	if len(actions) > 1 {
		batch = make(map[string]bool, len(actions))
	}
	for _, a := range actions {
		if a.Entry.Resource == "" || a.Entry.Manifest == "" {
			return fmt.Errorf("cannot record %s %q: no resource or no manifest is named", a.Verb, a.Entry.Resource)
		}
		if batch[a.Entry.Resource] {
			return fmt.Errorf("cannot record %s %q: named twice in one batch", a.Verb, a.Entry.Resource)
		}
		if batch != nil {
			batch[a.Entry.Resource] = true
		}
		if e := s.entries[a.Entry.Resource]; e != nil && e.Manifest != a.Entry.Manifest && !a.Take {
			return &OwnedError{*e}
		}
	}
	return nil
}

// same compares all that a caller sets.
func same(a, b Entry) bool {
	return a.Resource == b.Resource && a.Manifest == b.Manifest && a.Score == b.Score && a.Kind == b.Kind &&
		a.Generation == b.Generation && a.LastChanged == b.LastChanged && a.Provenance == b.Provenance &&
		a.SpecDigest == b.SpecDigest && a.Backup == b.Backup && a.Triggers == b.Triggers && a.Authority == b.Authority && bytes.Equal(a.Spec, b.Spec)
}

// End is [Store.EndWith] without notes.
func (s *Store) End(results ...Result) error { return s.EndWith(nil, results...) }

// EndWith records that actions are over: one durable write for all of them and
// for the notes ([Store.SetNotes]).
func (s *Store) EndWith(notes map[string]string, results ...Result) error {
	if err := checkNotes(notes); err != nil {
		return err
	}
	r := newRequest(len(results), notes)
	for _, res := range results {
		r.about = append(r.about, about{"", res.Resource})
	}
	r.records = func() ([]record, error) { return s.ends(notes, results) }
	return s.commit(r)
}

func (s *Store) ends(notes map[string]string, results []Result) ([]record, error) {
	recs := s.noteRecords(notes, len(results))
	for _, r := range results {
		if s.open[r.Resource] == nil {
			return nil, fmt.Errorf("cannot end an action on %q: none was begun", r.Resource)
		}
		var flags byte
		if r.Revert {
			flags |= flagRevert
		}
		if r.Release {
			flags |= flagRelease
		}
		recs = append(recs, record{kind: kindEnd, flags: flags, number: r.LastChanged, resource: r.Resource, triggers: r.Triggers})
	}
	return recs, nil
}

// Release gives resources up without an action: they are foreign from now on.
// What is not owned is skipped.
func (s *Store) Release(resources ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var recs []record
	for _, r := range resources {
		if s.entries[r] != nil {
			recs = append(recs, record{kind: kindRelease, resource: r})
		}
	}
	return s.write(recs...)
}

// OpenActions returns the actions that were begun and not ended, in order of
// beginning. After a restart each of them has to be resumed, undone or failed,
// and then ended.
func (s *Store) OpenActions() []OpenAction {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []OpenAction
	for _, o := range s.openInOrder() {
		out = append(out, *o)
	}
	return out
}

// IsOpen tells whether an action on a resource was begun and not ended.
func (s *Store) IsOpen(resource string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[resource] != nil
}

func (s *Store) openInOrder() []*OpenAction {
	return slices.SortedFunc(maps.Values(s.open), func(a, b *OpenAction) int { return cmp.Compare(a.Seq, b.Seq) })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
