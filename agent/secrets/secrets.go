package secrets

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/continuo-fleet/continuo/topology"
)

// DefaultEnvFile is read if no file is named, and need not be there.
const DefaultEnvFile = "/etc/continuo/secrets.env"

// Options say where the secrets of a device are.
type Options struct {
	// EnvFiles are files of the form NAME=value, of which a later one counts before an earlier one. None means
	// DefaultEnvFile, if that is there; one that is named must be there.
	EnvFiles []string
	// Root is a directory that the files are below, as those of scores are; empty means none.
	Root string
	// Credentials is a directory with one file for each secret, as systemd makes it; empty means none.
	Credentials string
	// State is the directory of the agent's books, with the key of fingerprints. It is made when a secret is used first.
	// If it is lost, all fingerprints are others, and all that uses a secret is made anew, once.
	State string
	// Look is for who changes nothing: a key that is missing is made, and not kept.
	Look bool
}

// A Store is the secrets of a device.
type Store struct {
	files    []string
	root     string
	optional bool
	dir      string
	state    string
	look     bool

	mu    sync.Mutex
	key   []byte // nil: not read yet
	spare []byte // used while there is none; kept nowhere
}

var _ topology.Secrets = (*Store)(nil)

// Open returns the secrets of a device. Nothing is read before it is asked for.
func Open(o Options) *Store {
	s := &Store{files: o.EnvFiles, root: o.Root, dir: o.Credentials, state: o.State, look: o.Look}
	if len(s.files) == 0 {
		s.files, s.optional = []string{DefaultEnvFile}, true
	}
	return s
}

// Secret is part of topology.Secrets. The bytes are the caller's; clear them when they are not needed any more.
func (s *Store) Secret(ctx context.Context, name string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, topology.FaultOf(err)
	}
	if !validName(name) {
		return nil, topology.Faultf(topology.CodeSecret, "%.140q cannot be the name of a secret", name)
	}
	if _, err := s.fingerprintKey(); err != nil { // who uses a secret needs its fingerprint
		return nil, topology.Faultf(topology.CodeSecret, "cannot use the secret %q: %v", name, err)
	}
	value, err := s.credential(name)
	if value != nil || err != nil {
		return value, err
	}
	for _, path := range slices.Backward(s.files) {
		all, err := s.settings(path)
		if err != nil {
			return nil, topology.Faultf(topology.CodeSecret, "cannot use the secret %q: %v", name, err)
		}
		v, ok := all[name]
		value := append([]byte{}, v...)
		for _, v := range all {
			clear(v)
		}
		if ok {
			return value, nil
		}
	}
	return nil, topology.Faultf(topology.CodeSecret, "the device has no secret %q: put it into %s", name, s.files[len(s.files)-1])
}

// Fingerprint is part of topology.Secrets: HMAC-SHA256 with the key of the device. Without that, nobody gets a value from
// Secret, and what else has a fingerprint has one of this process.
func (s *Store) Fingerprint(value []byte) string {
	key, err := s.fingerprintKey()
	if err != nil {
		key = s.spareKey()
	}
	m := hmac.New(sha256.New, key)
	m.Write(value)
	return hex.EncodeToString(m.Sum(nil))
}

func (s *Store) fingerprintKey() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key == nil {
		key, err := readKey(s.state, !s.look)
		if err != nil {
			return nil, err
		}
		s.key = key
	}
	return s.key, nil
}

func (s *Store) spareKey() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spare == nil {
		s.spare = newKey()
	}
	return s.spare
}

// credential is nil without an error if there is none.
func (s *Store) credential(name string) ([]byte, error) {
	if s.dir == "" {
		return nil, nil
	}
	path := filepath.Join(s.dir, name)
	value, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, topology.Faultf(topology.CodeSecret, "cannot use the secret %q: the credential %s: %v", name, path, err)
	}
	if value == nil {
		value = []byte{}
	}
	return value, nil
}

// settings are all that a file has. The caller clears the values.
func (s *Store) settings(path string) (map[string][]byte, error) {
	text, err := readFile(filepath.Join(s.root, path))
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.optional:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the file %s is not there", path)
	case err != nil:
		return nil, fmt.Errorf("the file %s: %w", path, err)
	}
	defer clear(text)
	all, err := decodeEnv(text)
	if err != nil {
		return nil, fmt.Errorf("the file %s: %w", path, err)
	}
	return all, nil
}

// A Secret is what may be told of one.
type Secret struct {
	// Name of the secret.
	Name string `json:"name"`
	// Source is the file that its value comes from.
	Source string `json:"source"`
	// Fingerprint of its value: keyed, so that it tells nothing to who does not have the key of this device.
	Fingerprint string `json:"fingerprint"`
	// Shadows are files that have the same name with a value that does not count.
	Shadows []string `json:"shadows,omitempty"`
}

// List tells what secrets there are, by name, and in problems why others cannot be told.
func (s *Store) List(ctx context.Context) (all []Secret, problems []error) {
	found := map[string]*Secret{}
	note := func(name, source string, value []byte) {
		v := cmp.Or(found[name], &Secret{Name: name})
		if v.Source != "" {
			v.Shadows = append(v.Shadows, v.Source)
		}
		v.Source, v.Fingerprint = source, s.Fingerprint(value)
		found[name] = v
		clear(value)
	}
	for _, path := range s.files {
		settings, err := s.settings(path)
		if err != nil {
			problems = append(problems, err)
		}
		for name, value := range settings {
			note(name, path, value)
		}
	}
	names, err := s.credentials()
	if err != nil {
		problems = append(problems, err)
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, append(problems, ctx.Err())
		}
		value, err := s.credential(name)
		switch {
		case err != nil:
			problems = append(problems, err)
		case value != nil:
			note(name, filepath.Join(s.dir, name), value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[name])
	}
	return all, problems
}

// credentials are the names in the directory that can be those of secrets.
func (s *Store) credentials() ([]string, error) {
	if s.dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the credentials in %s: %w", s.dir, reason(err))
	}
	var names []string
	for _, e := range entries {
		if validName(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
