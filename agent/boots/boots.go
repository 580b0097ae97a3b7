// Package boots knows whether the last boot of a device was ended in order, or by a power cut.
//
// A file names the boot that was begun and not ended. It is written when everything was looked at that a power cut may
// have damaged, and removed when the device is switched off in order: whatever is lost in between leads to
// another look, and never to one too few. What happens to a device after its agent was stopped for good, and
// during the seconds between the end of the agent and that of the device, it does not know.
package boots

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/continuo-fleet/continuo/internal/atomicfile"
)

const (
	folder = "boots" // of its own, beside the books
	name   = "begun"

	maxID = 64 // bytes
)

// Boots is the file in a state directory, seen from one boot.
type Boots struct {
	dir, id string
}

// Open returns the file in the state directory, for the boot with this id.
func Open(state, id string) *Boots {
	return &Boots{filepath.Join(state, folder), id}
}

// Unclean reports whether a boot before this one was begun and not ended in order. A file that cannot be read says so.
func (b *Boots) Unclean() bool {
	was, err := b.begun()
	return b.id != "" && !errors.Is(err, fs.ErrNotExist) && (err != nil || was != b.id)
}

// Begin notes, durably, that this boot has begun and that nothing is left to look at from those before.
func (b *Boots) Begin() error {
	if was, err := b.begun(); b.id == "" || err == nil && was == b.id {
		return nil
	}
	err := os.Mkdir(b.dir, 0o700) // not its parent: that is the store's
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot note that this boot has begun: %w", err)
	}
	made := err == nil
	dir, err := os.Open(b.dir)
	if err != nil {
		return fmt.Errorf("cannot note that this boot has begun: %w", err)
	}
	defer dir.Close()
	if err := atomicfile.Write(dir, name, atomicfile.File{Content: []byte(b.id + "\n"), Mode: 0o600}); err != nil {
		return fmt.Errorf("cannot note that this boot has begun: %w", err)
	}
	if !made {
		return nil
	}
	up, err := os.Open(filepath.Dir(b.dir))
	if err != nil {
		return fmt.Errorf("cannot note that this boot has begun: %w", err)
	}
	defer up.Close()
	return atomicfile.SyncDir(up)
}

// End notes, durably, that this boot ends in order, unless something is left to look at.
func (b *Boots) End() error {
	if was, err := b.begun(); err != nil || was != b.id || b.id == "" {
		return nil
	}
	dir, err := os.Open(b.dir)
	if err == nil {
		defer dir.Close()
		if err = os.Remove(filepath.Join(b.dir, name)); err == nil {
			return atomicfile.SyncDir(dir)
		}
	}
	return fmt.Errorf("cannot note that this boot ends: %w", err)
}

// begun is the boot that the file names.
func (b *Boots) begun() (string, error) {
	f, err := os.Open(filepath.Join(b.dir, name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxID+2))
	if n := len(text); err == nil && n > 0 && text[n-1] == '\n' {
		return string(text[:n-1]), nil
	}
	return "", err // of none, or of none that has an id
}
