package store

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

func ledgerFile(slot int) string  { return fmt.Sprintf("ledger.%d", slot) }
func journalFile(slot int) string { return fmt.Sprintf("journal.%d", slot) }

// part is one file as it was found.
type part struct {
	name string
	cond condition
	head head
	file []byte // all of it, or the head only
	body []byte // of a whole ledger or a sound journal that was read in full
	why  string
}

// read reads a file, or its head when limit is headSize, and judges it.
func (s *Store) read(name string, role byte, limit int64) (part, error) {
	p := part{name: name}
	file, err := s.fs.Read(name, limit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, nil
	case unreadable(err):
		p.cond, p.why = broken, "cannot be read: "+err.Error()
		return p, nil
	case err != nil:
		return p, err
	}
	p.file = file
	p.head, p.cond = parseHead(file, role)
	switch {
	case p.cond == broken && len(file) == 0:
		p.why = "is empty"
	case p.cond == broken:
		p.why = "does not start like one"
	case p.cond == sound && limit < 0:
		p.body = file[headSize:]
		if _, ok := bodyOf(file); !ok && role != roleJournal {
			p.cond, p.why = broken, "does not match its checksum"
		}
	}
	return p, nil
}

// unreadable tells damage of the medium from trouble of the moment, such as
// too many open files, after which the files must not be written anew.
func unreadable(err error) bool {
	for _, e := range []error{ErrDamaged, syscall.EIO, syscall.EUCLEAN, syscall.EBADMSG, syscall.EISDIR, syscall.ELOOP, syscall.ENOTDIR, syscall.ENXIO} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// load reads the directory into memory. It writes nothing.
func (s *Store) load() (Recovered, error) {
	var rec Recovered
	var ledgers, journals [2]part
	for slot := range 2 {
		var err error
		if ledgers[slot], err = s.read(ledgerFile(slot), roleLedger, headSize); err != nil {
			return rec, err
		}
		if journals[slot], err = s.read(journalFile(slot), roleJournal, headSize); err != nil {
			return rec, err
		}
	}
	slot, ok := newest(ledgers, journals)
	if ok {
		var err error
		if ok, err = s.loadSound(slot); err != nil {
			return rec, err
		}
	}
	if !ok {
		for slot := range 2 {
			var err error
			if ledgers[slot], err = s.read(ledgerFile(slot), roleLedger, -1); err != nil {
				return rec, err
			}
			if journals[slot], err = s.read(journalFile(slot), roleJournal, -1); err != nil {
				return rec, err
			}
		}
		s.rebuild(&rec, ledgers, journals)
	}
	if err := s.loadIntents(&rec); err != nil {
		return rec, err
	}
	if err := s.loadGoods(&rec); err != nil {
		return rec, err
	}
	return rec, s.judgeEmpty(&rec, ledgers, journals)
}

// newest is the slot in use when the heads are as an orderly life leaves them.
func newest(ledgers, journals [2]part) (int, bool) {
	for slot := range 2 {
		l, j, other, before := ledgers[slot], journals[slot], ledgers[1-slot], journals[1-slot]
		if l.cond == sound && j.cond == sound && j.head.seq == l.head.seq &&
			(other.cond == absent || other.cond == sound && other.head.seq < l.head.seq) &&
			(before.cond == absent || before.cond == sound && before.head.seq < l.head.seq) {
			return slot, true
		}
	}
	return 0, false
}

// loadSound reads the ledger and the journal of a slot, and tells whether both
// were without fault. If not, the memory is as before.
func (s *Store) loadSound(slot int) (bool, error) {
	l, err := s.read(ledgerFile(slot), roleLedger, -1)
	if err != nil || l.cond != sound {
		return false, err
	}
	j, err := s.read(journalFile(slot), roleJournal, -1)
	if err != nil || j.cond != sound {
		return false, err
	}
	good, last := l.head.version == j.head.version, l.head.seq
	d := decoder{l.head.version, map[string]string{}}
	replay := func(seq uint64, payload []byte) {
		good = good && d.frame(seq, payload, s.apply) == nil
	}
	holes, torn := frames(l.body, replay)
	if holes == 0 && !torn {
		holes, torn = frames(j.body, func(seq uint64, payload []byte) {
			good = good && seq == last+records(payload)
			last = seq
			replay(seq, payload)
		})
	}
	if !good || holes > 0 || torn {
		s.forget()
		return false, nil
	}
	s.slot, s.seq = slot, last
	s.snapSize, s.logSize = int64(len(l.file)), int64(len(j.file))
	s.compact = s.compactAt()
	if d.version < version {
		s.outdated = d.version
	}
	return true, nil
}

func (s *Store) forget() {
	s.ledger.init()
	s.marks, s.notes, s.kept = map[string]mark{}, map[string]string{}, map[string]uint64{}
}

// judgeEmpty tells a first start from the loss of both ledger and journal.
func (s *Store) judgeEmpty(rec *Recovered, ledgers, journals [2]part) error {
	for slot := range 2 {
		if ledgers[slot].cond != absent || journals[slot].cond != absent {
			return nil
		}
	}
	backups, err := s.fs.List(backupFolder)
	if err != nil && !unreadable(err) {
		return err
	}
	if len(s.intents) == 0 && len(s.goods) == 0 && len(backups) == 0 && len(rec.Findings) == 0 {
		rec.Fresh = !rec.Newer
		return nil
	}
	s.found(rec, Finding{"ledger", CodeMissing, true, "ledger and journal are missing"})
	return nil
}

func (s *Store) found(rec *Recovered, f Finding) {
	rec.Findings = append(rec.Findings, f)
	if f.Code != CodeMissing && f.Code != CodeTorn && f.File != "." {
		s.damaged = append(s.damaged, f.File)
		s.rewrite = true
	}
}
