package secrets

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/continuo-fleet/continuo/internal/atomicfile"
)

// KeyFile is the name of the file, in the directory of the agent's books, that holds the key of fingerprints.
const KeyFile = "secrets.key"

const keySize = 32

// readKey reads the key of the fingerprints of a device. If it is not there or damaged, it makes another one, and keeps
// that if asked to.
func readKey(stateDir string, keep bool) ([]byte, error) {
	path := filepath.Join(stateDir, KeyFile)
	for range 2 {
		key, err := readFile(path)
		switch {
		case err == nil && len(key) == keySize:
			return key, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("the key of fingerprints %s: %w", path, err)
		case !keep:
			return newKey(), nil
		}
		if err := putKey(stateDir, newKey(), err == nil); err != nil {
			return nil, fmt.Errorf("the key of fingerprints %s: %w", path, err)
		}
	}
	return nil, fmt.Errorf("the key of fingerprints %s: somebody else writes it", path)
}

func newKey() []byte {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	return key
}

// putKey keeps a new key. Of what two programs make at the same time, one stays.
func putKey(stateDir string, key []byte, replace bool) error {
	dir, err := os.Open(stateDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	err = atomicfile.Write(dir, KeyFile, atomicfile.File{Content: key, Mode: 0o600, NoReplace: !replace})
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
