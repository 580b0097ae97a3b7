package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Provenance says how a resource came to be owned.
type Provenance string

const (
	Created Provenance = "created" // it was not there before
	Adopted Provenance = "adopted" // it was there and was taken over
)

// Entry is what the ledger knows of one resource.
//
// Spec is shared, not copied, in both directions: whoever hands one in or gets
// one out must not change its bytes afterwards.
type Entry struct {
	Resource    string // canonical key: "file:/etc/motd"
	Manifest    string // its owner
	Score       string // id of the score in the manifest
	Kind        string
	Generation  uint64 // of the manifest, that last touched it
	LastChanged uint64 // generation that last changed the device
	Provenance  Provenance
	Spec        json.RawMessage // last applied
	SpecDigest  string
	Backup      string // name of the backup of what was there before
	Triggers    string // the engine's note of what restarts the score, as of its last success
	Authority   string // what allowed the last change: "standing:converge", "plan:UUID"

	// Applied is the number of the last Begin of the resource, 0 when there was
	// none: it grows with every change. The store sets it.
	Applied uint64

	// Order grows with first ownership; removal goes the other way. The store
	// sets it, and keeps it for as long as the resource is owned.
	Order uint64
}

// Action is something about to be done to a resource.
type Action struct {
	Entry Entry  // the ledger from the moment that Begin returns
	Verb  string // the engine's word for what it does; handed back by OpenActions
	Take  bool   // the resource may belong to another manifest now
}

// Result ends an action.
type Result struct {
	Resource    string
	LastChanged uint64 // 0 keeps what the entry says
	Triggers    string // "" keeps what the entry says
	Revert      bool   // nothing is left of the action: the entry is again what it was before
	Release     bool   // the resource is not owned any more
}

// OpenAction is one that was begun and not ended.
type OpenAction struct {
	Entry Entry
	Verb  string
	Seq   uint64 // order of beginning

	// Previous is the entry before the action, nil when the resource was not
	// owned. When an unfinished action is begun once more, it stays the entry
	// before the first attempt.
	Previous *Entry
}

// OwnedError says that a resource belongs to another manifest.
type OwnedError struct{ Entry Entry }

func (e *OwnedError) Error() string {
	return fmt.Sprintf("cannot take %s: owned by manifest %q, score %q", e.Entry.Resource, e.Entry.Manifest, e.Entry.Score)
}

// Finding is something wrong with the state directory, as data for a status.
type Finding struct {
	File   string
	Code   Code
	Lost   bool // knowledge is or may be lost
	Detail string
}

func (f Finding) String() string {
	s := f.File + ": " + f.Detail
	if f.Lost {
		s += "; knowledge may be lost"
	}
	return s
}

// Code is the machine's word for a finding. The set is closed.
type Code string

const (
	CodeMissing Code = "missing" // a file that must be there is not
	CodeDamaged Code = "damaged" // a file, or a part of it, does not match its checksum
	CodeTorn    Code = "torn"    // the end of a journal is incomplete, as a power cut leaves it
	CodeGap     Code = "gap"     // records are missing between what could be read
	CodeNewer   Code = "newer"   // written by a newer version
	CodeRebuilt Code = "rebuilt" // the directory was removed while in use, and made again from memory
)

// Recovered is what Open found.
type Recovered struct {
	// Fresh: no file of a store was there. A device that never saw an intent
	// looks the same as one whose whole directory was lost.
	Fresh bool
	// Newer: written by a newer version. What this version can read is there,
	// every write returns [ErrNewer], and nothing destructive may be done.
	Newer bool
	// Findings say what was wrong. There are none after an orderly stop or a
	// kill; a power cut in the middle of a write may leave one that is torn.
	Findings []Finding
	// Intents are the last accepted ones that are still readable. The store
	// does not keep their bytes in memory.
	Intents []Intent
}

// Lost tells whether knowledge is or may be lost. Whoever collects what is
// absent from the intent must not do so before it has observed everything.
func (r Recovered) Lost() bool {
	for _, f := range r.Findings {
		if f.Lost {
			return true
		}
	}
	return false
}

// Options are the rest of what a store needs. The zero value is right.
type Options struct {
	Now func() time.Time // for names of backups; time.Now when nil

	minCompact   int64 // for tests, as what follows
	tag          func(Backup) string
	keepReceipts int
}

// Store is safe for use by several goroutines. Every method that changes it is
// durable when it returns nil, and has changed nothing in memory when it
// returns an error. An error is always about the books themselves.
type Store struct {
	waitingMu sync.Mutex
	waiting   []*request // to be written by whoever holds mu next

	mu    sync.Mutex
	fs    FS
	now   func() time.Time
	tag   func(Backup) string // of the name of a backup
	newer bool
	ended bool // closed

	ledger
	marks   map[string]mark   // by name of intent
	intents map[string]intact // those whose envelope is safe on disk
	notes   map[string]string
	kept    map[string]uint64   // by manifest: number of the good version that was kept last
	goods   map[string]goodCopy // by manifest: the copy to read
	chain   chain               // of the audit

	seq      uint64 // of the last record
	slot     int    // of the newest ledger and of the journal in use
	journal  Log    // nil until the first write
	logSize  int64
	snapSize int64
	compact  int64    // size of the journal at which it is folded into a snapshot
	rewrite  bool     // the journal cannot be appended to: write a snapshot first
	outdated uint32   // an earlier format that is on disk: keep a copy and write a snapshot first
	damaged  []string // files to keep a copy of before they are written over
	buf      []byte
	findings []Finding

	unsettled    bool // what is in view may not survive a power cut
	minCompact   int64
	keepReceipts int
}

// Open locks the directory and reads it. The error is about the directory as
// such: it cannot be made, or another agent has it. What is wrong with the
// files in it is in Recovered. What the store then tells is durable.
func Open(fs FS, opts Options) (*Store, Recovered, error) {
	if err := fs.Lock(); err != nil {
		return nil, Recovered{}, err
	}
	s := &Store{fs: fs, now: opts.Now, tag: opts.tag, intents: map[string]intact{}, goods: map[string]goodCopy{}, minCompact: opts.minCompact, keepReceipts: opts.keepReceipts}
	if s.tag == nil {
		s.tag = tagOf
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.minCompact == 0 {
		s.minCompact = minCompact
	}
	if s.keepReceipts == 0 {
		s.keepReceipts = keepReceipts
	}
	s.forget()
	rec, err := s.load()
	if err != nil {
		return nil, Recovered{}, errors.Join(fmt.Errorf("cannot read state directory %s: %w", fs, err), fs.Unlock())
	}
	s.newer = rec.Newer
	s.loadChain(rec.Lost())
	// What a killed process wrote and did not sync is about to be believed.
	s.unsettled = !s.newer && fs.Settle(journalFile(0), journalFile(1)) != nil
	return s, rec, nil
}

// Close gives the directory up. Everything is on disk already.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	err := s.closeJournal()
	return errors.Join(err, s.fs.Unlock())
}

// Check tells in a few system calls whether the directory and the journal are
// still there. After an error that is [ErrGone] call [Store.Repair].
func (s *Store) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.check()
}

func (s *Store) check() error {
	if err := s.fs.Check(); err != nil {
		return err
	}
	if s.journal != nil {
		return s.journal.Check()
	}
	return nil
}

// Repair writes the directory anew from memory when the files do not say what
// the memory says: after Open had findings, or after it was removed in use. It
// writes nothing otherwise. The next write does the same by itself.
func (s *Store) Repair() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writable(); err != nil {
		return err
	}
	if !s.rewrite || len(s.damaged) == 0 && s.fresh() {
		return nil
	}
	return s.snapshot()
}

// Findings returns what was found wrong since Open or since the last call.
func (s *Store) Findings() []Finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.findings
	s.findings = nil
	return f
}
