package store

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
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

// Lock implements [FS].
func (m *Mem) Lock() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked && m.held == m.id {
		return fmt.Errorf("cannot open state directory %s: %w", m, ErrLocked)
	}
	m.locked, m.gone, m.held = true, false, m.id
	for name := range m.names {
		if strings.Contains(name, memTemp) {
			delete(m.names, name)
			delete(m.safe, name)
		}
	}
	return nil
}

// Unlock implements [FS].
func (m *Mem) Unlock() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.locked = false
	return nil
}

// Check implements [FS].
func (m *Mem) Check() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.check()
}

func (m *Mem) check() error {
	if m.gone || m.held != m.id || !m.locked {
		return fmt.Errorf("state directory %s: %w", m, ErrGone)
	}
	return nil
}

// Read implements [FS].
func (m *Mem) Read(name string, limit int64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("read", name); err != nil {
		return nil, err
	}
	f := m.names[name]
	if f == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	data := f.data
	if limit >= 0 && int64(len(data)) > limit {
		data = data[:limit]
	}
	return slices.Clone(data), nil
}

// List implements [FS].
func (m *Mem) List(folder string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("read", folder); err != nil {
		return nil, err
	}
	prefix := ""
	if folder != "" {
		prefix = folder + "/"
	}
	var names []string
	for name := range m.names {
		if rest, ok := strings.CutPrefix(name, prefix); ok && !strings.Contains(rest, "/") {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	return names, nil
}

// memTemp is in the names of files that are being written.
const memTemp = ".continuo-"

// Replace implements [FS]; it takes the steps that Dir takes.
func (m *Mem) Replace(files ...File) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(); err != nil {
		return err
	}
	for _, f := range files {
		if err := m.replace(f); err != nil {
			return err
		}
	}
	return m.syncDir()
}

func (m *Mem) replace(f File) error {
	i := strings.LastIndex(f.Name, "/") + 1
	temp := f.Name[:i] + memTemp + f.Name[i:]
	if err := m.step("create", temp); err != nil {
		return err
	}
	file := &memFile{}
	m.link(temp, file)
	err := m.write(temp, file, f.Content)
	if err == nil {
		err = m.sync(temp, file)
	}
	if err == nil {
		err = m.step("rename", f.Name)
	}
	if err != nil {
		if !errors.Is(err, ErrStopped) { // who is dead does not clean up
			delete(m.names, temp)
			m.recent = append(m.recent, temp)
		}
		return err
	}
	delete(m.names, temp)
	m.recent = append(m.recent, temp)
	m.link(f.Name, file)
	return nil
}

// ErrStopped is a fault after which the process does nothing any more, so that
// it cannot clean up either.
var ErrStopped = errors.New("stopped")

func (m *Mem) link(name string, f *memFile) {
	m.names[name] = f
	m.recent = append(m.recent, name)
}

func (m *Mem) write(name string, f *memFile, p []byte) error {
	err := m.step("write", name)
	if err != nil {
		p = p[:len(p)/2]
	}
	f.data = append(f.data, p...)
	m.stats.Bytes += int64(len(p))
	return err
}

func (m *Mem) sync(name string, f *memFile) error {
	if err := m.step("sync", name); err != nil {
		return err
	}
	f.safe = len(f.data)
	return nil
}

func (m *Mem) syncDir() error {
	if err := m.step("syncdir", "."); err != nil {
		return err
	}
	for _, name := range m.recent {
		if f := m.names[name]; f != nil {
			m.safe[name] = f
		} else {
			delete(m.safe, name)
		}
	}
	m.recent = nil
	return nil
}

// Settle implements [FS].
func (m *Mem) Settle(names ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		if f := m.names[name]; f != nil && f.safe < len(f.data) {
			if err := m.sync(name, f); err != nil {
				return err
			}
		}
	}
	if len(m.recent) == 0 {
		return nil
	}
	return m.syncDir()
}

// Remove implements [FS].
func (m *Mem) Remove(names ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(); err != nil {
		return err
	}
	for _, name := range names {
		if m.names[name] == nil {
			continue
		}
		if err := m.step("remove", name); err != nil {
			return err
		}
		delete(m.names, name)
		m.recent = append(m.recent, name)
	}
	return m.syncDir()
}

// Append implements [FS].
func (m *Mem) Append(name string) (Log, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(); err != nil {
		return nil, err
	}
	f := m.names[name]
	if f == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &memLog{m, name, f}, nil
}

type memLog struct {
	m    *Mem
	name string
	file *memFile
}

func (l *memLog) Write(p []byte) (int, error) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if err := l.m.write(l.name, l.file, p); err != nil {
		return len(p) / 2, err
	}
	return len(p), nil
}

func (l *memLog) Sync() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	return l.m.sync(l.name, l.file)
}

func (l *memLog) Check() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.m.names[l.name] != l.file {
		return fmt.Errorf("%s: %w", l.name, ErrGone)
	}
	return nil
}

func (l *memLog) Close() error { return nil }
