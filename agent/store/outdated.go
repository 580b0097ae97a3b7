package store

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// keepOutdated copies what an earlier version wrote into a folder named after its
// format, before this one writes anything. It goes on as it was with that version
// when the copy is put back and the rest of the directory, but for backups, is
// removed. The power may go in the middle: then it is copied anew.
func (s *Store) keepOutdated() error {
	if s.outdated == 0 {
		return nil
	}
	folder := fmt.Sprintf("v%d", s.outdated)
	names := []string{ledgerFile(0), ledgerFile(1), journalFile(0), journalFile(1)}
	envelopes, err := s.fs.List(intentFolder)
	if err != nil && !unreadable(err) {
		return fmt.Errorf("cannot keep a copy of the state: %w", err)
	}
	for _, name := range envelopes {
		if strings.HasSuffix(name, ".0") || strings.HasSuffix(name, ".1") {
			names = append(names, intentFolder+"/"+name)
		}
	}
	var files []File
	for _, name := range names {
		content, err := s.fs.Read(name, -1)
		switch {
		case err == nil:
			files = append(files, File{folder + "/" + name, content})
		case !errors.Is(err, fs.ErrNotExist) && !unreadable(err):
			return fmt.Errorf("cannot keep a copy of the state: %w", err)
		}
	}
	// An earlier copy, of another upgrade, must not be mixed with this one.
	var old []string
	for _, sub := range []string{"", intentFolder + "/"} {
		list, err := s.fs.List(strings.TrimSuffix(folder+"/"+sub, "/"))
		if err != nil {
			return fmt.Errorf("cannot keep a copy of the state: %w", err)
		}
		for _, name := range list {
			name = folder + "/" + sub + name
			if !slices.ContainsFunc(files, func(f File) bool { return f.Name == name }) {
				old = append(old, name)
			}
		}
	}
	if len(old) > 0 {
		if err := s.fs.Remove(old...); err != nil {
			return fmt.Errorf("cannot remove an older copy of the state: %w", err)
		}
	}
	if err := s.fs.Replace(files...); err != nil {
		return fmt.Errorf("cannot keep a copy of the state: %w", err)
	}
	// Should the snapshot fail half-way, there is nothing left to copy.
	s.outdated, s.rewrite = 0, true
	return nil
}
