package store

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// minCompact is the size below which a journal is never folded: small devices
// write a snapshot once in thousands of changes.
const minCompact = 512 << 10

func (s *Store) compactAt() int64 { return max(s.minCompact, 2*s.snapSize) }

// writable makes sure that there is a directory to write into.
func (s *Store) writable() error {
	if s.ended {
		return fmt.Errorf("cannot write state directory %s: it was closed", s.fs)
	}
	if s.newer {
		return fmt.Errorf("cannot write state directory %s: %w", s.fs, ErrNewer)
	}
	if err := s.fs.Check(); errors.Is(err, ErrGone) {
		return s.remake()
	} else if err != nil {
		return err
	}
	if s.journal != nil {
		if err := s.journal.Check(); errors.Is(err, ErrGone) {
			s.report(Finding{journalFile(s.slot), CodeRebuilt, false, "removed while in use; written again from memory"})
			_ = s.closeJournal()
			s.rewrite = true
		} else if err != nil {
			return err
		}
	}
	return nil
}

// remake takes the directory again after it was removed. A directory that now
// holds other books is refused: they may be newer than the memory.
func (s *Store) remake() error {
	_ = s.closeJournal()
	if err := s.fs.Lock(); err != nil {
		return err
	}
	for _, folder := range []string{"", intentFolder} {
		names, err := s.fs.List(folder)
		if err == nil && len(names) > 0 {
			err = fmt.Errorf("cannot write state directory %s: %w; it holds other state now: restart the agent", s.fs, ErrGone)
		}
		if err != nil {
			return errors.Join(err, s.fs.Unlock())
		}
	}
	s.rewrite, s.damaged, s.outdated = true, nil, 0
	lost := len(s.intents)+len(s.goods) > 0
	clear(s.intents)
	clear(s.goods)
	s.report(Finding{".", CodeRebuilt, lost, "the state directory was removed while in use; ledger and journal are written again from memory; envelopes, good versions, receipts and backups are gone"})
	return nil
}

func (s *Store) report(f Finding) { s.findings = append(s.findings, f) }

func (s *Store) closeJournal() error {
	if s.journal == nil {
		return nil
	}
	err := s.journal.Close()
	s.journal = nil
	return err
}

// ready makes the journal one that can be appended to.
func (s *Store) ready() error {
	if err := s.writable(); err != nil {
		return err
	}
	if s.unsettled {
		if err := s.fs.Settle(journalFile(0), journalFile(1)); err != nil {
			return fmt.Errorf("cannot sync state directory %s: %w", s.fs, err)
		}
		s.unsettled = false
	}
	if s.rewrite || s.outdated > 0 || s.logSize >= s.compact {
		return s.snapshot()
	}
	if s.journal != nil {
		return nil
	}
	log, err := s.fs.Append(journalFile(s.slot))
	if errors.Is(err, fs.ErrNotExist) {
		return s.snapshot()
	}
	if err != nil {
		return fmt.Errorf("cannot open journal: %w", err)
	}
	s.journal = log
	return nil
}

// write makes records durable with one write and one sync, all of them or none,
// then applies them.
func (s *Store) write(recs ...record) error { return s.writeGroups([][]record{recs}) }

// writeGroups makes groups of records durable with one write and one sync for all of
// them. After a power cut each group is there as a whole or not at all.
func (s *Store) writeGroups(groups [][]record) error {
	groups = slices.DeleteFunc(groups, func(g []record) bool { return len(g) == 0 })
	if len(groups) == 0 {
		return nil
	}
	return s.persist(groups)
}

// persist writes groups of records, and what of the audit waits.
func (s *Store) persist(groups [][]record) error {
	if err := s.ready(); err != nil {
		return err
	}
	groups, next := s.chained(groups)
	s.buf = s.buf[:0]
	seq := s.seq
	for _, recs := range groups {
		for i := range recs {
			seq++
			s.number(&recs[i], seq)
		}
		s.buf = appendBatch(s.buf, recs)
	}
	_, err := s.journal.Write(s.buf)
	if err == nil {
		err = s.journal.Sync()
	}
	if err != nil {
		// Part of it may be in the file, and after a failed sync nobody knows
		// what is. The next write starts a new journal from memory.
		s.rewrite = true
		_ = s.closeJournal()
		return fmt.Errorf("cannot write journal: %w", err)
	}
	s.logSize += int64(len(s.buf))
	if cap(s.buf) > 1<<20 {
		s.buf = nil
	}
	s.seq, s.chain = seq, next
	for _, recs := range groups {
		for i := range recs {
			s.apply(&recs[i])
		}
	}
	return nil
}

// number gives a record its place, and its entry what the store keeps by itself.
func (s *Store) number(r *record, seq uint64) {
	r.seq = seq
	if r.kind != kindBegin && r.kind != kindPut {
		return
	}
	r.entry.Order = seq
	if e := s.entries[r.entry.Resource]; e != nil {
		r.entry.Order, r.entry.Applied = e.Order, e.Applied
	}
	if r.kind == kindBegin {
		r.entry.Applied = seq
	}
}

func (s *Store) fresh() bool {
	return s.seq == 0 && len(s.entries) == 0 && len(s.marks) == 0 && len(s.notes) == 0
}

// snapshot writes the memory as a new ledger with an empty journal into the
// slot that is not in use, and goes on there. The journal comes first: as long
// as the ledger is not there, the old slot and the new journal are a chain.
func (s *Store) snapshot() error {
	_ = s.closeJournal()
	if err := s.keepOutdated(); err != nil {
		return err
	}
	kept, err := s.keepDamaged()
	if err != nil {
		return err
	}
	// A snapshot takes a number of its own, so that no two are the same age.
	// One that failed is tried again under its number, in its slot.
	seq, slot := s.seq+1, 1-s.slot
	file, ends := s.encode(seq)
	empty := make([]byte, headSize)
	head{role: roleJournal, seq: seq}.seal(empty)
	if err := s.fs.Replace(File{journalFile(slot), empty}); err != nil {
		s.rewrite = true
		return fmt.Errorf("cannot start journal: %w", err)
	}
	// From here on the old journal must not grow: what it holds beyond the
	// start of the new one counts as not acknowledged.
	s.rewrite = true
	if err := s.fs.Replace(File{ledgerFile(slot), file}); err != nil {
		return fmt.Errorf("cannot write ledger: %w", err)
	}
	log, err := s.fs.Append(journalFile(slot))
	if err != nil {
		return fmt.Errorf("cannot open journal: %w", err)
	}
	s.journal, s.slot, s.seq, s.rewrite = log, slot, seq, false
	s.logSize, s.snapSize = headSize, int64(len(file))
	s.compact = s.compactAt()
	for _, name := range kept {
		if name == ledgerFile(1-slot) || name == journalFile(1-slot) {
			_ = s.fs.Remove(name) // if not, the next start finds it once more
		}
	}
	for i, e := range s.order { // the file's bytes are the one copy of the specs
		if n := len(e.Spec); n > 0 {
			e.Spec = file[ends[i]-n : ends[i] : ends[i]]
		}
	}
	for resource, o := range s.open {
		if e := s.entries[resource]; e != nil {
			o.Entry = *e
		}
	}
	return nil
}

// encode returns the memory as a ledger file, and where each entry ends in it.
func (s *Store) encode(seq uint64) (file []byte, ends []int) {
	size := headSize
	for _, e := range s.order {
		size += len(e.Spec) + len(e.Resource) + len(e.Manifest) + len(e.Score) + len(e.SpecDigest) + len(e.Backup) + 64
	}
	file = make([]byte, headSize, size)
	ends = make([]int, len(s.order))
	for i, e := range s.order {
		file = appendBatch(file, []record{{kind: kindPut, entry: *e}})
		ends[i] = len(file)
	}
	for _, o := range s.openInOrder() {
		r := record{kind: kindOpen, entry: o.Entry, verb: o.Verb, number: o.Seq, previous: o.Previous}
		if o.Previous != nil {
			r.flags = flagOwned
		}
		file = appendBatch(file, []record{r})
	}
	for _, name := range sortedKeys(s.marks) {
		file = appendBatch(file, []record{*s.marks[name].record(name)})
	}
	for _, name := range sortedKeys(s.notes) {
		file = appendBatch(file, []record{{kind: kindNote, name: name, value: s.notes[name]}})
	}
	for _, manifest := range sortedKeys(s.kept) {
		file = appendBatch(file, []record{{kind: kindGood, name: manifest, number: s.kept[manifest]}})
	}
	head{role: roleLedger, seq: seq}.seal(file)
	return file, ends
}

// remove removes files durably. After an error some may be out of view and come
// back, so that nothing is believed before the directory was synced.
func (s *Store) remove(names ...string) error {
	err := s.fs.Remove(names...)
	s.unsettled = s.unsettled || err != nil
	return err
}

// keepDamaged keeps a copy of each damaged file before it is written over,
// once, and clears damaged envelopes and good versions away. It returns their names.
func (s *Store) keepDamaged() ([]string, error) {
	slices.Sort(s.damaged)
	for _, name := range slices.Compact(s.damaged) {
		file, err := s.fs.Read(name, -1)
		if err == nil && len(file) > 0 {
			if err := s.fs.Replace(File{name + ".damaged", file}); err != nil {
				return nil, fmt.Errorf("cannot keep a copy of a damaged file: %w", err)
			}
		}
		if strings.HasPrefix(name, intentFolder+"/") || strings.HasPrefix(name, goodFolder+"/") {
			if err := s.fs.Remove(name); err != nil {
				return nil, fmt.Errorf("cannot clear away a damaged file: %w", err)
			}
		}
	}
	names := s.damaged
	s.damaged = nil
	return names, nil
}
