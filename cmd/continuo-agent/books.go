package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/continuo-fleet/continuo/agent/store"
)

// copyOfBooks copies what decides from a state directory into memory, for commands that
// only look. It takes no lock and writes nothing, so that a running agent is not
// disturbed; a directory that is not there gives empty books. What is large is read where
// it is.
func copyOfBooks(dir string) (store.FS, error) {
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
	return beside{mem, dir}, nil
}

// beside is a copy in memory that reads some folders where they are: backups, receipts and
// good versions of manifests. What is written goes to the memory alone.
type beside struct {
	*store.Mem
	dir string
}

func (b beside) String() string { return b.dir }

func (b beside) Read(name string, limit int64) ([]byte, error) {
	if !left(path.Dir(name)) {
		return b.Mem.Read(name, limit)
	}
	f, err := os.Open(filepath.Join(b.dir, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if limit < 0 {
		return io.ReadAll(f)
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

func (b beside) List(folder string) ([]string, error) {
	if !left(folder) {
		return b.Mem.List(folder)
	}
	entries, err := os.ReadDir(filepath.Join(b.dir, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries { // sorted
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func left(folder string) bool { return folder == "backups" || folder == "receipts" || folder == "good" }
