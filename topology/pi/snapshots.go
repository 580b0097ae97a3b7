package pi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// A snapshot remembers all that it looked at. It holds no file open: what counts at the end is what the
// names lead to.
type snapshot struct {
	files *files
	paths []string // in the order in which they were looked at
	seen  map[string]*seen
}

// seen is what was found at a path.
type seen struct {
	absent bool
	stat   unix.Stat_t
	target string
	read   bool // the content, with sum
	sum    [sha256.Size]byte
	listed bool // the entries
	limit  int
	names  []string
	more   int
}

// Snapshot begins a snapshot.
func (f *files) Snapshot() topology.Snapshot { return &snapshot{files: f, seen: map[string]*seen{}} }

// node returns what is at p, which must be what it was before, if somebody looked.
func (s *snapshot) node(ctx context.Context, p string) (node, *seen, error) {
	if err := checkPath(p); err != nil {
		return node{}, nil, err
	}
	if err := ctx.Err(); err != nil {
		return node{}, nil, topology.FaultOf(err)
	}
	n, err := s.files.node(p)
	now := &seen{absent: err == unix.ENOENT, stat: n.stat}
	switch {
	case now.absent:
	case err != nil:
		return n, nil, s.files.tree.fault("read", p, err)
	case n.kind() == topology.Symlink:
		if now.target, err = readlink(n.fd); err != nil {
			n.close()
			return n, nil, s.files.tree.fault("read", p, err)
		}
	}
	before, looked := s.seen[p]
	switch {
	case !looked:
		s.paths, s.seen[p] = append(s.paths, p), now
		return n, now, nil
	case !before.is(now):
		if !now.absent {
			n.close()
		}
		return n, nil, changedMeanwhile(p)
	}
	return n, before, nil
}

// is reports whether a thing is as it was. Of a directory only what it is counts until its entries were
// asked for: others may work in it.
func (s *seen) is(now *seen) bool {
	a, b := &s.stat, &now.stat
	switch {
	case s.absent || now.absent:
		return s.absent == now.absent
	case a.Dev != b.Dev || a.Ino != b.Ino || a.Mode != b.Mode || a.Uid != b.Uid || a.Gid != b.Gid || s.target != now.target:
		return false
	case a.Mode&unix.S_IFMT == unix.S_IFDIR && !s.listed:
		return true
	}
	return same(a, b) && a.Nlink == b.Nlink
}

func changedMeanwhile(p string) error {
	return topology.Faultf(topology.CodeChanged, "%s was changed while it was read together with others", p)
}

// Look returns what is at p.
func (s *snapshot) Look(ctx context.Context, p string) (topology.FileState, error) {
	n, saw, err := s.node(ctx, p)
	if err != nil {
		return topology.FileState{}, err
	}
	if saw.absent {
		return topology.FileState{Type: topology.Absent}, nil
	}
	defer n.close()
	return topology.FileState{
		Type: n.kind(), Size: n.stat.Size, Mode: n.stat.Mode & 0o7777, UID: n.stat.Uid, GID: n.stat.Gid,
		Owner: s.files.accounts.users.name(n.stat.Uid), Group: s.files.accounts.groups.name(n.stat.Gid),
		Links: uint64(n.stat.Nlink), Target: saw.target,
	}, nil
}

// Content returns the bytes of the regular file p.
func (s *snapshot) Content(ctx context.Context, p string, limit int64) ([]byte, error) {
	n, saw, err := s.node(ctx, p)
	if err != nil {
		return nil, err
	}
	if saw.absent {
		return nil, s.files.tree.fault("read", p, unix.ENOENT)
	}
	defer n.close()
	data, err := s.read(n, p, limit)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	if saw.read && saw.sum != sum {
		return nil, changedMeanwhile(p)
	}
	saw.read, saw.sum = true, sum
	return data, nil
}

// read reads the regular file n: all that it says that it holds, and not more.
func (s *snapshot) read(n node, p string, limit int64) ([]byte, error) {
	if err := s.files.mustBeRegular("read", p, n); err != nil {
		return nil, err
	}
	if n.stat.Size > limit {
		return nil, topology.Faultf(topology.CodeInvalid, "cannot read %s: it has more than %d bytes", p, limit)
	}
	fd, err := s.files.content(n, p)
	if err != nil {
		return nil, s.files.tree.fault("read", p, err)
	}
	defer unix.Close(fd)
	data := bytes.NewBuffer(make([]byte, 0, n.stat.Size+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(reader(fd), n.stat.Size+1)); err != nil {
		return nil, s.files.tree.fault("read", p, err)
	}
	if int64(data.Len()) != n.stat.Size || torn(fd, n.stat) {
		return nil, changedMeanwhile(p)
	}
	return data.Bytes(), nil
}

// Entries names what is in the directory p.
func (s *snapshot) Entries(ctx context.Context, p string, limit int) (names []string, more int, err error) {
	n, saw, err := s.node(ctx, p)
	if err != nil {
		return nil, 0, err
	}
	if saw.absent {
		return nil, 0, s.files.tree.fault("list", p, unix.ENOENT)
	}
	defer n.close()
	if names, more, err = s.list(ctx, n, p, limit); err != nil {
		return nil, 0, err
	}
	if !saw.listed { // from now on its times count: those of before the list
		saw.listed, saw.stat, saw.limit, saw.names, saw.more = true, n.stat, limit, names, more
	}
	return slices.Clone(names), more, nil
}

func (s *snapshot) list(ctx context.Context, n node, p string, limit int) ([]string, int, error) {
	if err := s.files.mustBeDirectory("list", p, n); err != nil {
		return nil, 0, err
	}
	fd, err := s.files.content(n, p)
	if err != nil {
		return nil, 0, s.files.tree.fault("list", p, err)
	}
	dir := os.NewFile(uintptr(fd), p)
	defer dir.Close()
	return list(ctx, dir, limit)
}

// Settle looks at everything once more. Contents and lists are read again: the times of a file tell of
// no second change within their step, nor of one through a mapping.
func (s *snapshot) Settle(ctx context.Context) error {
	for _, p := range s.paths {
		if err := s.again(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (s *snapshot) again(ctx context.Context, p string) error {
	n, saw, err := s.node(ctx, p)
	if err != nil {
		if code := topology.FaultOf(err).Code; code == topology.CodeSymlink || code == topology.CodeNotRegular { // on the way, since
			return changedMeanwhile(p)
		}
		return err
	}
	if saw.absent {
		return nil
	}
	defer n.close()
	if saw.read {
		data, err := s.read(n, p, n.stat.Size)
		if err != nil || sha256.Sum256(data) != saw.sum {
			return cmp.Or(err, changedMeanwhile(p))
		}
	}
	if saw.listed {
		names, more, err := s.list(ctx, n, p, saw.limit)
		if err != nil || more != saw.more || !slices.Equal(names, saw.names) {
			return cmp.Or(err, changedMeanwhile(p))
		}
	}
	return nil
}
