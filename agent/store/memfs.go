package store

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

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
