package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/agent/natslink"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// rootFile holds the version of the trust root that was accepted last, beside the agent's books. Without it the device
// begins with the one of its configuration, and follows the chain again.
const rootFile = "link/trust-root"

// trustOf is whom a device trusts by its configuration, and by what its fleet handed on since.
func trustOf(c config.Config) (*natslink.Trust, error) {
	if c.Trust.Root == "" {
		documents, err := c.DocumentKeys()
		if err != nil {
			return nil, err
		}
		operations, err := c.ApprovalKeys()
		if err != nil {
			return nil, err
		}
		control, err := c.ControlKeys()
		if err != nil {
			return nil, err
		}
		return natslink.TrustKeys(documents, operations, control), nil
	}
	b, err := readSmall(c.Trust.Root, 2*wire.MaxEnvelope)
	if err != nil {
		return nil, fmt.Errorf("cannot read the trust root of this device: %w", err)
	}
	first, err := wire.ParseDSSE(b)
	if err != nil {
		return nil, fmt.Errorf("cannot use the trust root in %s: %w", c.Trust.Root, err)
	}
	last, err := readSmall(filepath.Join(c.StateDir(), rootFile), wire.MaxEnvelope)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the trust root that was accepted last: %w", err)
	}
	return natslink.TrustRoot(first, last, keepRoot(c.StateDir()))
}

// keepRoot makes a version durable. One that is torn is none: it is written beside, and renamed.
func keepRoot(dir string) func([]byte) error {
	return func(envelope []byte) error {
		file := filepath.Join(dir, rootFile)
		folder := filepath.Dir(file)
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) { // not its parent: that is the store's
			return err
		}
		return writeFile(file, envelope)
	}
}

// readSmall reads a file, and refuses one that is larger than it can be.
func readSmall(file string, limit int) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(b) > limit {
		err = fmt.Errorf("%s has more than %d bytes", file, limit)
	}
	return b, err
}
