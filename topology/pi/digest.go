package pi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// digests remembers what was in large files, so that one that did not change is known without
// reading it again. A file is taken for unchanged while its identity, size, mtime and ctime
// are: ctime can be set by nobody. The kernel counts it in steps, and sets it when a write begins,
// so that a change right after another one, or a long one, may leave it as it is: of a file that
// was changed less than settled before it was read, nothing is remembered.
type digests struct {
	mu    sync.Mutex
	kept  map[dirID]keptDigest
	ahead time.Duration // of the clock, in tests: the time of a change cannot be set
}

type keptDigest struct {
	size         int64
	mtime, ctime unix.Timespec
	sum          topology.Sum
}

const (
	worthKeeping = 1 << 20          // smaller files are read as fast as they are remembered
	maxKept      = 1024             // files
	settled      = 10 * time.Second // more than the coarsest step of a file system that is in use, and than one call of write takes
)

func (d *digests) find(st *unix.Stat_t) (sum topology.Sum, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k, ok := d.kept[dirID{st.Dev, st.Ino}]
	return k.sum, ok && k.size == st.Size && k.mtime == st.Mtim && k.ctime == st.Ctim
}

// keep remembers the digest of a file that was as st says when somebody began to read it, and
// when he had ended.
func (d *digests) keep(st *unix.Stat_t, began time.Time, sum topology.Sum) {
	if st.Size < worthKeeping || began.Add(d.ahead).Sub(time.Unix(st.Ctim.Unix())) < settled {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kept == nil {
		d.kept = map[dirID]keptDigest{}
	}
	id := dirID{st.Dev, st.Ino}
	if _, known := d.kept[id]; !known && len(d.kept) >= maxKept {
		for other := range d.kept { // any: it is read again when it is looked at
			delete(d.kept, other)
			break
		}
	}
	d.kept[id] = keptDigest{st.Size, st.Mtim, st.Ctim, sum}
}

// A scratch is what reading one file needs; observing a thousand needs one or two.
type scratch struct {
	buf  []byte
	hash hash.Hash
}

var scratches = sync.Pool{New: func() any { return &scratch{make([]byte, 64<<10), sha256.New()} }}

// tornTries is how often a file that changes while it is read is read again.
const tornTries = 3

// digest is the sha256 and the size of the regular file that fd is open on and st was looked up
// of; empty if it is larger than limit.
func (f *files) digest(ctx context.Context, p string, fd int, st unix.Stat_t, limit int64) (sum topology.Sum, size int64, err error) {
	if sum, ok := f.digests.find(&st); ok && st.Size <= limit {
		return sum, st.Size, nil
	}
	for range tornTries {
		began := time.Now()
		if sum, size, err = hashed(ctx, fd, st.Size, limit); err != nil || sum == "" {
			return sum, size, err
		}
		var now unix.Stat_t
		if err := unix.Fstat(fd, &now); err != nil {
			return "", 0, err
		}
		if same(&st, &now) && size == st.Size {
			f.digests.keep(&st, began, sum)
			return sum, size, nil
		}
		st = now
		if _, err := unix.Seek(fd, 0, io.SeekStart); err != nil {
			return "", 0, err
		}
	}
	return "", 0, topology.Faultf(topology.CodeChanged, "cannot read %s: somebody writes it all the time, and it changed whenever it was read", p)
}

// same reports whether a file is as it was.
func same(a, b *unix.Stat_t) bool {
	return a.Ino == b.Ino && a.Dev == b.Dev && a.Size == b.Size && a.Mtim == b.Mtim && a.Ctim == b.Ctim
}

// torn reports whether the file that fd is open on is no more as st says.
func torn(fd int, st unix.Stat_t) bool {
	var now unix.Stat_t
	return unix.Fstat(fd, &now) != nil || !same(&st, &now)
}

// unsettled reports whether a write may still be under way: a file has the time of its beginning.
func unsettled(st unix.Stat_t) bool {
	since := time.Since(time.Unix(st.Ctim.Unix()))
	return since > -time.Second && since < time.Second
}

// reads reports whether the file that fd is open on holds these bytes.
func reads(fd int, data []byte) bool {
	if _, err := unix.Seek(fd, 0, io.SeekStart); err != nil {
		return false
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for {
		n, err := reader(fd).Read(s.buf)
		if n > len(data) || !bytes.Equal(s.buf[:n], data[:n]) {
			return false
		}
		if data = data[n:]; err != nil {
			return err == io.EOF && len(data) == 0
		}
	}
}

// hashed reads a file of about expected bytes; the digest is empty if there are more than limit.
func hashed(ctx context.Context, fd int, expected, limit int64) (sum topology.Sum, size int64, err error) {
	if expected > limit {
		return "", expected, nil
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.hash.Reset()
	for {
		n, err := unix.Read(fd, s.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return "", size, err
		}
		s.hash.Write(s.buf[:n])
		if size += int64(n); size > limit {
			return "", size, nil
		}
		if n == 0 || size == expected && n < len(s.buf) {
			break // all that there was, and a short read: nothing more has come
		}
		if err := ctx.Err(); err != nil {
			return "", size, err
		}
	}
	var b [sha256.Size]byte
	return topology.Sum(hex.EncodeToString(s.hash.Sum(b[:0]))), size, nil
}

// A verifier reads a content that is to be another's, and fails at its end if it is not.
type verifier struct {
	ctx  context.Context
	path string
	in   io.Reader
	want topology.Source
	hash hash.Hash
	read int64
}

func verify(ctx context.Context, p string, in io.Reader, want topology.Source) io.Reader {
	return &verifier{ctx, p, in, want, sha256.New(), 0}
}

func (v *verifier) Read(b []byte) (int, error) {
	if err := v.ctx.Err(); err != nil {
		return 0, topology.FaultOf(err)
	}
	n, err := v.in.Read(b)
	v.read += int64(n)
	v.hash.Write(b[:n])
	if v.read > v.want.Size || err == io.EOF && (v.read != v.want.Size || hex.EncodeToString(v.hash.Sum(nil)) != v.want.SHA256) {
		return 0, topology.Faultf(topology.CodeInvalid, "the content that came for %s is not the one with the sha256 %.12s… and %d bytes: nothing was changed", v.path, v.want.SHA256, v.want.Size)
	}
	return n, err
}
