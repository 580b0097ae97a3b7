package store

// A request is a change that waits to be written. Those that wait at the same time
// share one write and one sync: the first of them that gets hold of the store writes
// for all.
type request struct {
	about   []about
	records func() ([]record, error) // called with the store held
	done    bool
	err     error
}

// about is one thing that a request is about: a resource or a note.
type about struct{ note, resource string }

func newRequest(size int, notes map[string]string) *request {
	r := &request{about: make([]about, 0, size+len(notes))}
	for name := range notes {
		r.about = append(r.about, about{note: name})
	}
	return r
}

// commit writes a request, with whatever else waits.
func (s *Store) commit(r *request) error {
	s.waitingMu.Lock()
	s.waiting = append(s.waiting, r)
	s.waitingMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.done {
		s.waitingMu.Lock()
		all := s.waiting
		s.waiting = nil
		s.waitingMu.Unlock()
		for len(all) > 0 {
			all = all[s.commitSome(all):]
		}
	}
	return r.err
}

// commitSome writes the first of all, and those behind it that are about other
// things: a request is judged by books that have everything before it. It returns
// how many it has done.
func (s *Store) commitSome(all []*request) int {
	busy := map[about]bool{}
	var groups [][]record
	var wrote []*request
	n := 0
	for _, r := range all {
		for _, a := range r.about {
			if busy[a] {
				return s.finish(wrote, groups, n)
			}
		}
		for _, a := range r.about {
			busy[a] = true
		}
		n++
		recs, err := r.records()
		if err != nil {
			r.done, r.err = true, err
			continue
		}
		groups, wrote = append(groups, recs), append(wrote, r)
	}
	return s.finish(wrote, groups, n)
}

func (s *Store) finish(wrote []*request, groups [][]record, n int) int {
	err := s.writeGroups(groups)
	for _, r := range wrote {
		r.done, r.err = true, err
	}
	return n
}
