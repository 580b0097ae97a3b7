package store

import "math"

// rebuild gets out of the files what can be got, newest first, and says what
// could not. The next write starts with a new snapshot.
//
// The chain that must hold: a whole ledger up to record N, then the journals
// in order of the record that each comes after. A journal is written before
// its ledger, so a ledger without its journal has lost one.
func (s *Store) rebuild(rec *Recovered, ledgers, journals [2]part) {
	s.rewrite = true
	base, top, known := -1, uint64(0), false
	format := uint32(0)
	for slot, l := range ledgers {
		known = known || l.cond != absent || journals[slot].cond != absent
		if l.cond == newer || journals[slot].cond == newer {
			rec.Newer = true
		}
		format = max(format, l.head.version, journals[slot].head.version)
		if l.head.seq > top {
			top = l.head.seq
		}
		if l.cond == sound && (base < 0 || l.head.seq > ledgers[base].head.seq) {
			base = slot
		}
	}
	if format < version {
		s.outdated = format
	}
	intern := map[string]string{}
	replay := func(format uint32, seq uint64, payload []byte) {
		if (decoder{format, intern}).frame(seq, payload, s.apply) != nil {
			rec.Newer = true
		}
	}
	if base >= 0 {
		s.slot, s.seq = base, ledgers[base].head.seq
		frames(ledgers[base].body, func(seq uint64, payload []byte) { replay(ledgers[base].head.version, seq, payload) })
	}
	reached, lost := s.replayJournals(rec, journals, top, replay)

	for slot := range 2 {
		l, j, other := ledgers[slot], journals[slot], ledgers[1-slot]
		if j.cond == broken {
			old := l.cond == sound && other.cond == sound && l.head.seq < other.head.seq
			lost = lost || !old
			s.found(rec, Finding{j.name, CodeDamaged, !old, "the journal " + j.why})
		}
		if l.cond == broken && j.cond != sound {
			lost = true
		}
	}
	if known && !reached {
		lost = true
		if !rec.Lost() {
			s.found(rec, Finding{"journal", CodeMissing, true, "the newest journal is missing"})
		}
	}
	for slot, l := range ledgers {
		switch {
		case l.cond == broken:
			s.found(rec, Finding{l.name, CodeDamaged, lost, "the ledger " + l.why})
			if lost {
				s.salvage(l, decoder{version, intern})
			}
		case l.cond == absent && journals[slot].cond == sound && len(journals[slot].body) > 0:
			s.found(rec, Finding{l.name, CodeMissing, lost, "the ledger is missing"})
		}
	}
	if rec.Newer {
		s.found(rec, Finding{".", CodeNewer, true, "written by a newer version; nothing is altered"})
	}
	s.seq = max(s.seq, top)
}

// replayJournals applies what comes after s.seq. It tells whether a journal of
// the newest snapshot is there, and whether records are missing. What an older journal holds beyond the start of the next one was
// never acknowledged.
func (s *Store) replayJournals(rec *Recovered, journals [2]part, top uint64, replay func(uint32, uint64, []byte)) (reached, lost bool) {
	row := []part{journals[0], journals[1]}
	if row[0].head.seq > row[1].head.seq {
		row[0], row[1] = row[1], row[0]
	}
	for i, j := range row {
		if j.cond != sound {
			continue
		}
		end, last := uint64(math.MaxUint64), true
		if i == 0 && row[1].cond == sound {
			end, last = row[1].head.seq-1, false
		}
		reached = reached || j.head.seq >= top
		gap := s.seq+1 < j.head.seq
		s.seq = max(s.seq, j.head.seq)
		holes, torn := frames(j.body, func(seq uint64, payload []byte) {
			if seq <= s.seq || seq > end {
				return
			}
			gap = gap || seq != s.seq+records(payload)
			s.seq = seq
			replay(j.head.version, seq, payload)
		})
		gap = gap || !last && s.seq < end
		switch {
		case gap:
			s.found(rec, Finding{j.name, CodeGap, true, "records are missing"})
		case torn && last:
			s.found(rec, Finding{j.name, CodeTorn, true, "the last record is incomplete"})
		case holes > 0 || torn:
			s.found(rec, Finding{j.name, CodeDamaged, false, "bytes that are not needed are damaged"})
		}
		lost = lost || gap || torn && last
	}
	return reached, lost
}

// salvage takes from a damaged ledger the entries that nothing else knows of.
// One of them may be out of date, which is why the finding says lost.
func (s *Store) salvage(l part, d decoder) {
	if len(l.file) < frameSize {
		return
	}
	if h, cond := parseHead(l.file, roleLedger); cond == sound {
		d.version = h.version
	}
	frames(l.file, func(seq uint64, payload []byte) {
		r, err := d.record(seq, payload)
		if err != nil {
			return
		}
		switch r.kind {
		case kindPut, kindOpen:
			if s.entries[r.entry.Resource] == nil {
				s.apply(&r)
				s.seq = max(s.seq, r.entry.Order, r.entry.Applied)
			}
		case kindMark:
			if s.marks[r.name].generation < r.number {
				s.apply(&r)
			}
		case kindNote:
			if _, known := s.notes[r.name]; !known {
				s.apply(&r)
			}
		case kindGood:
			if s.kept[r.name] < r.number {
				s.apply(&r)
			}
		}
	})
}
