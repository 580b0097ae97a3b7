// Package blobs keeps large contents on the disk of a device, each under the sha256 of its
// bytes. What has its name is whole: a content is written beside it, verified, flushed and
// renamed. What was interrupted goes on where it ended, and is read again before, so that what
// a loss of power tore is found.
//
// Where contents come from is a Source; the package knows no network. Which contents are
// needed, its caller knows: see [Store.Keep].
package blobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// A Source brings contents from elsewhere.
type Source interface {
	// Fetch hands the bytes of a content over, in order, from an offset on, up to size bytes in all. It may hand over
	// fewer if the content has no more, and ends with the error of take if there is one. What take gets is not verified.
	Fetch(ctx context.Context, sha256 string, size, offset int64, take func([]byte) error) error
}

// MaxSize is the most bytes that one content may have.
const MaxSize = 1 << 30

const (
	folder = "blobs"
	part   = ".part"
	// reserve is what a fetch leaves free on the disk: the books of the agent need a place.
	reserve = 64 << 20
	// flushEvery is how much a loss of power may take of what was fetched.
	flushEvery = 16 << 20
)

// A Store is the contents of one device.
type Store struct {
	state   string // directory that has the folder
	source  Source // may be nil
	reserve int64
	one     chan struct{} // who fetches or collects
}

var _ topology.Blobs = (*Store)(nil)

// Open returns the contents in the directory of the agent's books. Nothing is written before a content is fetched.
// Without a source, only what is here can be had.
func Open(stateDir string, source Source) *Store {
	return &Store{state: stateDir, source: source, reserve: reserve, one: make(chan struct{}, 1)}
}

// HasBlob is part of topology.Blobs.
func (s *Store) HasBlob(ctx context.Context, sum string) (bool, error) {
	st, err := s.stat(ctx, sum)
	return st != nil, err
}

// stat is nil if the content is not here.
func (s *Store) stat(ctx context.Context, sum string) (fs.FileInfo, error) {
	if err := topology.CheckBlobDigest(sum); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, topology.FaultOf(err)
	}
	root, err := s.open(false)
	if err != nil || root == nil {
		return nil, err
	}
	defer root.Close()
	st, err := root.Lstat(sum)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fault("cannot look at the content %.12s: %w", sum, err)
	case !st.Mode().IsRegular():
		return nil, topology.Faultf(topology.CodeNotRegular, "in the place of the content %.12s is no regular file", sum)
	}
	return st, nil
}

// open opens the folder; it is nil if there is none, unless it is to be made.
func (s *Store) open(create bool) (*os.Root, error) {
	state, err := os.OpenRoot(s.state)
	if errors.Is(err, fs.ErrNotExist) && !create {
		return nil, nil
	}
	if err != nil {
		return nil, fault("cannot open the state directory: %w", err)
	}
	defer state.Close()
	root, err := state.OpenRoot(folder)
	if errors.Is(err, fs.ErrNotExist) && create {
		if err = state.Mkdir(folder, 0o700); err == nil || errors.Is(err, fs.ErrExist) {
			if err = syncDir(state); err == nil {
				root, err = state.OpenRoot(folder)
			}
		}
	}
	if errors.Is(err, fs.ErrNotExist) && !create {
		return nil, nil
	}
	if err != nil {
		return nil, fault("cannot open the folder of contents: %w", err)
	}
	return root, nil
}

// OpenBlob is part of topology.Blobs. A content that turns out to be damaged when it was read to its end is removed, and
// fails with CodeIO instead of the end.
func (s *Store) OpenBlob(ctx context.Context, sum string) (io.ReadCloser, error) {
	st, err := s.stat(ctx, sum)
	if err != nil {
		return nil, err
	}
	if st == nil {
		return nil, topology.Faultf(topology.CodeUnreachable, "the content %.12s is not here", sum)
	}
	root, err := s.open(false)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return nil, topology.Faultf(topology.CodeUnreachable, "the content %.12s is not here", sum)
	}
	f, err := root.OpenFile(sum, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		_ = root.Close()
		return nil, fault("cannot open the content %.12s: %w", sum, err)
	}
	return &reader{f: f, root: root, h: sha256.New(), sum: sum}, nil
}

// reader reads a content and verifies it.
type reader struct {
	f    *os.File
	root *os.Root
	h    hash.Hash
	sum  string
}

func (r *reader) Read(b []byte) (int, error) {
	n, err := r.f.Read(b)
	r.h.Write(b[:n])
	switch {
	case errors.Is(err, io.EOF) && hex.EncodeToString(r.h.Sum(nil)) != r.sum:
		_ = r.root.Remove(r.sum)
		return n, topology.Faultf(topology.CodeIO, "the content %.12s is damaged on the disk; it is fetched again", r.sum)
	case err != nil && !errors.Is(err, io.EOF):
		return n, fault("cannot read the content %.12s: %w", r.sum, err)
	}
	return n, err
}

func (r *reader) Close() error { return errors.Join(r.f.Close(), r.root.Close()) }

// Keep removes every content that needed does not name, and what is here of those that are not whole. It gives the bytes
// that are free now. While a content is being fetched it fails at once.
func (s *Store) Keep(ctx context.Context, needed func(sha256 string) bool) (freed int64, err error) {
	select {
	case s.one <- struct{}{}:
		defer func() { <-s.one }()
	default:
		return 0, errors.New("cannot remove contents while one is being fetched")
	}
	root, err := s.open(false)
	if err != nil || root == nil {
		return 0, err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return 0, fmt.Errorf("cannot list the contents: %w", err)
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return freed, ctx.Err()
		}
		sum := strings.TrimSuffix(e.Name(), part)
		if topology.CheckBlobDigest(sum) != nil || needed(sum) {
			continue
		}
		if info, err := e.Info(); err == nil {
			freed += info.Size()
		}
		if err := root.Remove(e.Name()); err != nil {
			return freed, fmt.Errorf("cannot remove the content %.12s: %w", sum, err)
		}
	}
	return freed, nil
}

func syncDir(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// fault is an error of the disk as a fault.
func fault(format string, args ...any) error { return topology.FaultOf(fmt.Errorf(format, args...)) }
