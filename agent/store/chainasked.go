package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/continuo-fleet/continuo/internal/atomicfile"
)

// askedFolder holds what commands on the device were asked for while the agent has the books: each a file, until the
// agent has written it into the audit.
const askedFolder = "asked"

// How much is read of what commands leave.
const (
	maxAsked      = maxNoteValue
	maxAskedFiles = 200
)

// LeaveAsked leaves a word for whoever opens the state directory next, or has it open. It takes no lock. Without a state
// directory there is nobody to read it, and nothing is left.
func LeaveAsked(dir string, body []byte) error {
	if len(body) == 0 || len(body) > maxAsked {
		return fmt.Errorf("cannot leave a word of %d bytes for the audit: it has 1 to %d", len(body), maxAsked)
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	folder := filepath.Join(dir, askedFolder)
	err := os.Mkdir(folder, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot leave a word for the audit: %w", err)
	}
	if all, err := os.ReadDir(folder); err == nil && len(all) >= maxAskedFiles {
		return fmt.Errorf("cannot leave a word for the audit: %d wait already, and no agent has taken them", len(all))
	}
	f, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("cannot leave a word for the audit: %w", err)
	}
	defer f.Close()
	if err := atomicfile.Write(f, rand.Text(), atomicfile.File{Content: body, Mode: 0o600}); err != nil {
		return fmt.Errorf("cannot leave a word for the audit: %w", err)
	}
	return nil
}

// Asked gives what commands have left, and how to forget it when it is in the audit. Of what cannot be read
// there is a body that is empty.
func (s *Store) Asked() (bodies [][]byte, forget func() error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, err := s.fs.List(askedFolder)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read what commands have left for the audit: %w", err)
	}
	names = slices.DeleteFunc(names, atomicfile.IsTemp)
	names = names[:min(len(names), maxAskedFiles)]
	for i, name := range names {
		names[i] = askedFolder + "/" + name
		b, err := s.fs.Read(names[i], maxAsked+1)
		if err != nil || len(b) > maxAsked {
			b = nil
		}
		bodies = append(bodies, b)
	}
	return bodies, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.fs.Remove(names...); err != nil {
			return fmt.Errorf("cannot forget what commands have left for the audit: %w", err)
		}
		return nil
	}, nil
}
