package store

import (
	"cmp"
	"slices"
)

// ledger is the index in memory. Entries are never changed in place, so that
// pointers to them can be kept as the state before an action.
type ledger struct {
	entries map[string]*Entry      // by resource
	order   []*Entry               // by Order
	scores  map[scoreKey][]*Entry  // made when first asked for
	open    map[string]*OpenAction // by resource
}

type scoreKey struct{ manifest, score string }

func (l *ledger) init() {
	l.entries, l.open = map[string]*Entry{}, map[string]*OpenAction{}
	l.order, l.scores = nil, nil
}

func byOrder(e *Entry, order uint64) int { return cmp.Compare(e.Order, order) }

// put adds an entry or replaces the one of its resource.
func (l *ledger) put(e *Entry) {
	old := l.entries[e.Resource]
	if old != nil && old.Order != e.Order {
		l.drop(old)
		old = nil
	}
	l.entries[e.Resource] = e
	if old == nil {
		i, _ := slices.BinarySearchFunc(l.order, e.Order, byOrder)
		for i < len(l.order) && l.order[i].Order == e.Order {
			i++ // only damaged books have equal orders
		}
		l.order = slices.Insert(l.order, i, e)
	} else if i := l.at(old); i >= 0 {
		l.order[i] = e
	}
	if l.scores != nil {
		if old != nil {
			l.unscore(old)
		}
		l.score(e)
	}
}

// drop removes an entry.
func (l *ledger) drop(e *Entry) {
	delete(l.entries, e.Resource)
	if i := l.at(e); i >= 0 {
		l.order = slices.Delete(l.order, i, i+1)
	}
	if l.scores != nil {
		l.unscore(e)
	}
}

// at is the place of e in order.
func (l *ledger) at(e *Entry) int {
	i, _ := slices.BinarySearchFunc(l.order, e.Order, byOrder)
	for ; i < len(l.order) && l.order[i].Order == e.Order; i++ {
		if l.order[i] == e {
			return i
		}
	}
	return -1
}

func (l *ledger) score(e *Entry) {
	k := scoreKey{e.Manifest, e.Score}
	l.scores[k] = append(l.scores[k], e)
}

func (l *ledger) unscore(e *Entry) {
	k := scoreKey{e.Manifest, e.Score}
	l.scores[k] = slices.DeleteFunc(l.scores[k], func(o *Entry) bool { return o == e })
	if len(l.scores[k]) == 0 {
		delete(l.scores, k)
	}
}

// Owner returns the entry of a resource.
func (s *Store) Owner(resource string) (Entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[resource]; e != nil {
		return *e, true
	}
	return Entry{}, false
}

// Entries returns the whole ledger in order of first ownership.
func (s *Store) Entries() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return values(s.order)
}

// ByManifest returns what a manifest owns, in order of first ownership.
func (s *Store) ByManifest(manifest string) []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Entry
	for _, e := range s.order {
		if e.Manifest == manifest {
			out = append(out, *e)
		}
	}
	return out
}

// ByScore returns what one score of a manifest owns, in order of first
// ownership.
func (s *Store) ByScore(manifest, score string) []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scores == nil {
		s.scores = make(map[scoreKey][]*Entry, len(s.order))
		for _, e := range s.order {
			s.ledger.score(e)
		}
	}
	out := values(s.scores[scoreKey{manifest, score}])
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.Order, b.Order) })
	return out
}

func values(entries []*Entry) []Entry {
	if len(entries) == 0 {
		return nil
	}
	out := make([]Entry, len(entries))
	for i, e := range entries {
		out[i] = *e
	}
	return out
}
