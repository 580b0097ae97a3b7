package fleet

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// A KeySet is the keys that a receiver trusts, each for some kinds of documents.
type KeySet = wire.KeySet

// Keys are the two signing keys of a fleet. They are no connection keys.
type Keys struct {
	Operator nkeys.KeyPair // signs what devices should be
	Control  nkeys.KeyPair // signs answers to heartbeats, which decide nothing
}

const (
	operatorFile = "operator.nk"
	controlFile  = "control.nk"
)

// OpenKeys reads the keys in dir, and makes those that are missing.
func OpenKeys(dir string) (Keys, error) {
	var k Keys
	var err error
	if k.Operator, err = EnsureKey(filepath.Join(dir, operatorFile), nkeys.CreateAccount); err != nil {
		return Keys{}, err
	}
	if k.Control, err = EnsureKey(filepath.Join(dir, controlFile), nkeys.CreateAccount); err != nil {
		return Keys{}, err
	}
	return k, nil
}

// Trusted are the public keys: who may sign documents, and who answers to heartbeats.
func (k Keys) Trusted() (operator, control string, err error) {
	if operator, err = k.Operator.PublicKey(); err != nil {
		return "", "", fmt.Errorf("cannot read the operator key: %w", err)
	}
	if control, err = k.Control.PublicKey(); err != nil {
		return "", "", fmt.Errorf("cannot read the control key: %w", err)
	}
	return operator, control, nil
}

// DocumentKeys is the key set of a receiver that trusts these public keys for documents of devices.
func DocumentKeys(public ...string) (KeySet, error) { return wire.Trust(wire.KindDevice, public...) }

// ApprovalKeys is the key set of a receiver that trusts these public keys for operations.
func ApprovalKeys(public ...string) (KeySet, error) { return wire.Trust(wire.KindApproval, public...) }

// ControlKeys is the key set of a receiver that trusts these public keys for answers to heartbeats.
func ControlKeys(public ...string) (KeySet, error) { return wire.Trust(wire.KindHeartbeat, public...) }

// maxKeyFile is far more than a seed and the space around it.
const maxKeyFile = 4 << 10

// LoadKey reads the seed of a key from a file that nobody else may read.
func LoadKey(path string) (nkeys.KeyPair, error) {
	if seed.MatchString(path) {
		return nil, errSeed
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read a key: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("cannot use the key in %s: it is not a regular file", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("cannot use the key in %s: others may read it (mode %#o): chmod 600 %[1]s, and replace the key if others could have", path, info.Mode().Perm())
	}
	if info.Size() > maxKeyFile {
		return nil, fmt.Errorf("cannot use the key in %s: a file of %d bytes holds no seed", path, info.Size())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read a key: %w", err)
	}
	kp, err := nkeys.FromSeed(bytes.TrimSpace(b))
	if err != nil {
		return nil, fmt.Errorf("cannot use the key in %s: it is no nkey seed (%w)", path, err)
	}
	return kp, nil
}

// EnsureKey reads the key in a file, or makes it with create. A key that was made is durable when it returns.
func EnsureKey(path string, create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, error) {
	kp, err := LoadKey(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return kp, err
	}
	if kp, err = create(); err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}
	seed, err := kp.Seed()
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}
	if err := writeSecret(path, append(seed, '\n')); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return LoadKey(path) // somebody else was faster
		}
		return nil, fmt.Errorf("cannot keep a new key: %w", err)
	}
	return kp, nil
}

// writeSecret makes a file that only its owner may read.
func writeSecret(path string, b []byte) error { return writeNew(path, b, 0o600) }

// writeNew makes a file, whole or not at all, and never replaces one.
func writeNew(path string, b []byte, mode fs.FileMode) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp := fmt.Sprintf("%s.%s.tmp", path, rand.Text())
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Link(tmp, path); err != nil { // unlike a rename, it does not replace
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
