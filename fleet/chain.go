package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/continuo-fleet/continuo/internal/trust"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// A Root is a version of a fleet's trust root: whose signatures count, and for what. The zero value is none: devices were
// told single keys then.
type Root = trust.Root

// An Envelope is a signed document, which others can sign as well.
type Envelope = wire.Envelope

// A SignedRoot is a version of a trust root as it was signed.
type SignedRoot struct {
	Root
	Envelope Envelope
}

// A Chain is the versions of a trust root that follow each other, the oldest first.
type Chain []SignedRoot

// Last is the version that counts; the zero value if there is none.
func (c Chain) Last() Root {
	if len(c) == 0 {
		return Root{}
	}
	return c[len(c)-1].Root
}

// follow adds the version in e if it follows. An error is a *wire.Refusal.
func (c Chain) follow(e Envelope) (Chain, error) {
	next, err := Follows(c.Last(), e)
	if err != nil {
		return c, err
	}
	return append(c[:len(c):len(c)], SignedRoot{next, e}), nil
}

// Follows reads the version in e, if it follows r, or is the first one if r is none. An error is a *wire.Refusal.
func Follows(r Root, e Envelope) (Root, error) {
	if r.Metadata.Version == 0 {
		return trust.First(e)
	}
	return r.Next(e)
}

// A RootDir is where the versions of a trust root are files, each version N as N.json, and the one that is being made as
// next.json. There is no secret in it: it can lie in a repository.
type RootDir string

const draftName = "next.json"

// File is where version n is.
func (d RootDir) File(n uint64) string {
	return filepath.Join(string(d), strconv.FormatUint(n, 10)+".json")
}

// DraftFile is where the version is that is being made.
func (d RootDir) DraftFile() string { return filepath.Join(string(d), draftName) }

// Read reads the versions, and checks that each follows the one before. None is no error.
func (d RootDir) Read() (c Chain, err error) {
	entries, err := os.ReadDir(string(d))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the trust root: %w", err)
	}
	first, last := uint64(0), uint64(0)
	for _, e := range entries {
		text, ok := strings.CutSuffix(e.Name(), ".json")
		n, err := strconv.ParseUint(text, 10, 64)
		if !ok || err != nil || n == 0 || d.File(n) != filepath.Join(string(d), e.Name()) {
			continue
		}
		if first == 0 || n < first {
			first = n
		}
		last = max(last, n)
	}
	if last == 0 {
		return nil, nil
	}
	for n := first; n <= last; n++ {
		e, err := ReadEnvelope(d.File(n))
		if err == nil {
			c, err = c.follow(e)
		}
		if err == nil && c.Last().Metadata.Version != n {
			err = fmt.Errorf("it holds version %d", c.Last().Metadata.Version)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot use version %d of the trust root in %s: %w", n, d.File(n), err)
		}
	}
	return c, nil
}

// Keep keeps a version as a file. One that is there already is not replaced by another.
func (d RootDir) Keep(r SignedRoot) error {
	text, err := r.Envelope.DSSE()
	if err != nil {
		return err
	}
	file := d.File(r.Metadata.Version)
	err = writeNew(file, text, 0o644)
	if errors.Is(err, fs.ErrExist) {
		there, rerr := os.ReadFile(file)
		if rerr == nil && bytes.Equal(there, text) {
			return nil
		}
		err = errors.Join(fmt.Errorf("%s is there already, and another one", file), rerr)
	}
	if err != nil {
		return fmt.Errorf("cannot keep version %d of the trust root: %w", r.Metadata.Version, err)
	}
	return nil
}

// Draft reads the version that is being made, which need not be signed by anybody yet. ok is false if there is none.
func (d RootDir) Draft() (s SignedRoot, ok bool, err error) {
	e, err := ReadEnvelope(d.DraftFile())
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err == nil {
		s.Envelope = e
		s.Root, err = trust.Peek(e)
	}
	if err != nil {
		return s, false, fmt.Errorf("cannot use %s: %w", d.DraftFile(), err)
	}
	return s, true, nil
}

// KeepDraft writes the version that is being made.
func (d RootDir) KeepDraft(e Envelope) error { return WriteEnvelope(d.DraftFile(), e) }

// DropDraft takes the version away that was being made.
func (d RootDir) DropDraft() error {
	if err := os.Remove(d.DraftFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove what has become of a version: %w", err)
	}
	return nil
}

// maxEnvelopeFile is far more than a signed document as a file.
const maxEnvelopeFile = 2 * int64(wire.MaxEnvelope)

// ReadEnvelope reads a signed document in the form of DSSE. Nothing of it is verified.
func ReadEnvelope(file string) (Envelope, error) {
	info, err := os.Stat(file)
	if err != nil {
		return Envelope{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxEnvelopeFile {
		return Envelope{}, fmt.Errorf("%s is no signed document: it is no regular file, or has more than %d bytes", file, maxEnvelopeFile)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return Envelope{}, err
	}
	return wire.ParseDSSE(b)
}

// WriteEnvelope writes a signed document in the form of DSSE. It is whole and durable when it returns.
func WriteEnvelope(file string, e Envelope) error {
	text, err := e.DSSE()
	if err != nil {
		return err
	}
	if err := replaceFile(file, text); err != nil {
		return fmt.Errorf("cannot write %s: %w", file, err)
	}
	return nil
}

// replaceFile writes a file that anybody may read, whole or not at all.
func replaceFile(path string, b []byte) error {
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeNew(next, b, 0o644); err != nil {
		return err
	}
	return os.Rename(next, path)
}
