package store

// apply changes the memory by one record, live and on replay alike.
func (s *Store) apply(r *record) {
	switch r.kind {
	case kindPut:
		e := r.entry
		s.put(&e)
	case kindBegin:
		e := r.entry
		o := &OpenAction{Entry: e, Verb: r.verb, Seq: r.seq, Previous: s.entries[e.Resource]}
		if before := s.open[e.Resource]; before != nil {
			o.Previous = before.Previous
		}
		s.put(&e)
		s.open[e.Resource] = o
	case kindOpen:
		s.open[r.entry.Resource] = &OpenAction{Entry: r.entry, Verb: r.verb, Seq: r.number, Previous: r.previous}
	case kindEnd:
		s.end(r)
	case kindRelease:
		if e := s.entries[r.resource]; e != nil {
			s.drop(e)
		}
		delete(s.open, r.resource)
	case kindMark:
		s.marks[r.name] = mark{r.number, r.digest, r.flags&flagHeld != 0}
	case kindNote:
		if r.value == "" {
			delete(s.notes, r.name)
		} else {
			s.notes[r.name] = r.value
		}
	case kindGood:
		if r.number == 0 {
			delete(s.kept, r.name)
		} else {
			s.kept[r.name] = r.number
		}
	}
}

func (s *Store) end(r *record) {
	o, e := s.open[r.resource], s.entries[r.resource]
	delete(s.open, r.resource)
	switch {
	case r.flags&flagRelease != 0, r.flags&flagRevert != 0 && o != nil && o.Previous == nil:
		if e != nil {
			s.drop(e)
		}
	case r.flags&flagRevert != 0 && o != nil:
		s.put(o.Previous)
	case e != nil && (r.number > 0 && e.LastChanged != r.number || r.triggers != "" && e.Triggers != r.triggers):
		changed := *e
		if r.number > 0 {
			changed.LastChanged = r.number
		}
		if r.triggers != "" {
			changed.Triggers = r.triggers
		}
		s.put(&changed)
	}
}
