package blobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// FetchBlob is part of topology.Blobs. One content is fetched at a time.
func (s *Store) FetchBlob(ctx context.Context, sum string, size int64) error {
	st, err := s.stat(ctx, sum)
	switch {
	case err != nil:
		return err
	case size < 0 || size > MaxSize:
		return topology.Faultf(topology.CodeInvalid, "cannot fetch the content %.12s: %d bytes is no size that it may have, at most %d are", sum, size, MaxSize)
	case st != nil && st.Size() != size:
		return topology.Faultf(topology.CodeInvalid, "cannot fetch the content %.12s: it has %d bytes and not %d", sum, st.Size(), size)
	case st != nil:
		return nil
	}
	select {
	case s.one <- struct{}{}:
		defer func() { <-s.one }()
	case <-ctx.Done():
		return topology.FaultOf(ctx.Err())
	}
	if st, err := s.stat(ctx, sum); st != nil || err != nil {
		return err // who fetched before brought it
	}
	root, err := s.open(true)
	if err != nil {
		return err
	}
	defer root.Close()
	resumed, err := s.fetch(ctx, root, sum, size)
	if resumed && errors.Is(err, errDigest) { // what was here before may be torn
		_, err = s.fetch(ctx, root, sum, size)
	}
	if errors.Is(err, errDigest) {
		return topology.Faultf(topology.CodeInvalid, "cannot use the content %.12s: what came is something else; store it again with the fleet", sum)
	}
	return err
}

var errDigest = errors.New("another digest")

// fetch completes what is here of a content, and gives it its name. With errDigest, nothing of it is left.
func (s *Store) fetch(ctx context.Context, root *os.Root, sum string, size int64) (resumed bool, err error) {
	f, err := root.OpenFile(sum+part, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return false, fault("cannot write the content %.12s: %w", sum, err)
	}
	defer f.Close()
	w := &partial{f: f, h: sha256.New(), size: size}
	if err := w.resume(); err != nil {
		return false, fault("cannot read what is here of the content %.12s: %w", sum, err)
	}
	resumed = w.have > 0
	if err := s.room(f, size-w.have); err != nil {
		return resumed, err
	}
	if w.have < size {
		if s.source == nil {
			return resumed, topology.Faultf(topology.CodeUnreachable, "the content %.12s is not here, and this command fetches nothing: the agent does", sum)
		}
		err := s.source.Fetch(ctx, sum, size, w.have, w.take)
		switch {
		case w.err != nil:
			return resumed, fault("cannot write the content %.12s: %w", sum, w.err)
		case ctx.Err() != nil:
			return resumed, topology.FaultOf(ctx.Err())
		case err != nil:
			return resumed, topology.Faultf(topology.CodeUnreachable, "cannot fetch the content %.12s: %v", sum, err)
		}
	}
	if w.have != size || hex.EncodeToString(w.h.Sum(nil)) != sum {
		if err := root.Remove(sum + part); err != nil {
			return resumed, fault("cannot remove what came for the content %.12s: %w", sum, err)
		}
		return resumed, errDigest
	}
	err = f.Sync()
	if err == nil {
		err = root.Rename(sum+part, sum)
	}
	if err == nil {
		err = syncDir(root)
	}
	if err != nil {
		return resumed, fault("cannot keep the content %.12s: %w", sum, err)
	}
	return resumed, nil
}

// room refuses what would fill the disk.
func (s *Store) room(f *os.File, missing int64) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return fault("cannot ask how much room is left: %w", err)
	}
	if free := int64(st.Bavail) * int64(st.Bsize); missing > 0 && free-missing < s.reserve {
		return topology.Faultf(topology.CodeNoSpace, "cannot fetch a content: %d MiB are missing of it, and of %d MiB that are free %d are not to be used", missing>>20, free>>20, s.reserve>>20)
	}
	return nil
}

// partial is a content that is not whole yet.
type partial struct {
	f       *os.File
	h       hash.Hash
	size    int64
	have    int64
	flushed int64
	err     error // of the disk
}

// resume reads what is there.
func (w *partial) resume() error {
	st, err := w.f.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return errors.New("it is no regular file")
	}
	if st.Size() > w.size {
		return w.f.Truncate(0)
	}
	w.have, err = io.Copy(w.h, w.f)
	w.flushed = w.have
	return err
}

// take takes the next bytes.
func (w *partial) take(b []byte) error {
	if int64(len(b)) > w.size-w.have {
		b = b[:w.size-w.have] // of what is too long the digest is another one
	}
	n, err := w.f.Write(b)
	w.h.Write(b[:n])
	w.have += int64(n)
	if err == nil && w.have-w.flushed >= flushEvery {
		w.flushed = w.have
		err = w.f.Sync()
	}
	if err != nil {
		w.err = err
	}
	return err
}
