package store

import (
	"io/fs"
	"slices"
	"sync"
)

// Mem is a directory in memory that models what a disk keeps: bytes are safe
// after a sync of their file, names after a sync of the directory. It is for
// simulators, the in-memory device, and tests of crashes and faults.
type Mem struct {
	// Fault, if set, is asked before every step; its error makes the step fail.
	// A failing write leaves half of its bytes. Set it only while nobody works
	// on the directory.
	Fault func(Step) error

	mu     sync.Mutex
	names  map[string]*memFile // what a reader sees
	safe   map[string]*memFile // what is left after a power cut
	recent []string            // names changed since the last sync of the directory
	locked bool
	gone   bool // removed; what is open stays usable
	id     int  // of the directory, to tell a new one at the same path
	held   int  // the one that was locked
	stats  MemStats
}

// Step is one thing a Mem is about to do.
type Step struct {
	N    int    // from 1
	Op   string // "create", "write", "sync", "rename", "syncdir", "remove", "read"; "read" is not counted
	Name string
}

// MemStats counts what was done since the Mem was made.
type MemStats struct {
	Steps  int // all but reads
	Syncs  int // of files and of directories
	Writes int
	Bytes  int64
}

type memFile struct {
	data []byte
	safe int // bytes that a power cut leaves
}

// NewMem returns an empty directory.
func NewMem() *Mem {
	return &Mem{names: map[string]*memFile{}, safe: map[string]*memFile{}}
}

var _ FS = (*Mem)(nil)

// String is the path that messages name.
func (m *Mem) String() string { return "memory" }

// Stats returns the counters.
func (m *Mem) Stats() MemStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

// Files returns a copy of every file that a reader sees.
func (m *Mem) Files() map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string][]byte{}
	for name, f := range m.names {
		out[name] = slices.Clone(f.data)
	}
	return out
}

// Put sets a file as if it had been there for long; nil content removes it.
func (m *Mem) Put(name string, content []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if content == nil {
		delete(m.names, name)
		delete(m.safe, name)
		return
	}
	f := &memFile{slices.Clone(content), len(content)}
	m.names[name], m.safe[name] = f, f
}

// RemoveAll removes the directory under a store that has it open.
func (m *Mem) RemoveAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.names, m.safe, m.recent = map[string]*memFile{}, map[string]*memFile{}, nil
	m.gone = true
	m.id++
}

// Loss is what a power cut does to that which was not synced.
type Loss int

const (
	LoseAll     Loss = iota // nothing of it is left
	LoseNothing             // all of it had reached the disk by chance
	LoseHalf                // half of the new bytes are left, and only the last new name
	LoseToZeros             // new bytes read as zeros, and only the last new name is left
	losses
)

// Crash returns the directory as the next boot finds it, unlocked and without
// faults. The Mem itself is not changed.
func (m *Mem) Crash(loss Loss) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := NewMem()
	names := map[string]*memFile{}
	for name, f := range m.safe {
		names[name] = f
	}
	recent := m.recent
	if loss == LoseAll {
		recent = nil
	} else if loss != LoseNothing && len(recent) > 1 {
		recent = recent[len(recent)-1:]
	}
	for _, name := range recent {
		if f := m.names[name]; f != nil {
			names[name] = f
		} else {
			delete(names, name)
		}
	}
	for name, f := range names {
		data := slices.Clone(f.data)
		switch loss {
		case LoseAll:
			data = data[:f.safe]
		case LoseHalf:
			data = data[:f.safe+(len(data)-f.safe)/2]
		case LoseToZeros:
			clear(data[f.safe:])
		}
		c := &memFile{data, len(data)}
		next.names[name], next.safe[name] = c, c
	}
	return next
}

// step counts, and asks Fault.
func (m *Mem) step(op, name string) error {
	n := m.stats.Steps
	if op != "read" {
		m.stats.Steps++
		n++
	}
	if m.Fault != nil {
		if err := m.Fault(Step{n, op, name}); err != nil {
			return &fs.PathError{Op: op, Path: name, Err: err}
		}
	}
	switch op {
	case "sync", "syncdir":
		m.stats.Syncs++
	case "write":
		m.stats.Writes++
	}
	return nil
}
