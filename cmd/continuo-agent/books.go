package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/continuo-fleet/continuo/agent/store"
)

// copyOfBooks copies what decides from a state directory into memory, for commands that
// only look. It takes no lock and writes nothing, so that a running agent is not
// disturbed; a directory that is not there gives empty books. The backups stay where
// they are.
func copyOfBooks(dir string) (*store.Mem, error) {
	mem := store.NewMem()
	for _, folder := range []string{".", "intent"} {
		entries, err := os.ReadDir(filepath.Join(dir, folder))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot look into the state directory: %w", err)
		}
		for _, e := range entries {
			if !e.Type().IsRegular() {
				continue
			}
			name := filepath.Join(folder, e.Name())
			content, err := os.ReadFile(filepath.Join(dir, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue // replaced by the agent just now
			}
			if err != nil {
				return nil, fmt.Errorf("cannot look into the state directory: %w", err)
			}
			mem.Put(name, append([]byte{}, content...))
		}
	}
	return mem, nil
}
