package pi

import (
	"context"
	"io"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// markAttr is the extended attribute that holds the mark of a file.
const markAttr = "user.continuo.owner"

// files is the file system of the device.
type files struct {
	tree     *tree
	accounts *accounts
	syncs    dirSyncs
	digests  digests
	changed  func(ctx context.Context, path string) // told before and after every change of a content
}

// A node is a handle of whatever is at a path, which it does not open: a pipe is not
// read from, a device not switched on.
type node struct {
	fd   int // O_PATH
	stat unix.Stat_t
}

func (n node) close() { _ = unix.Close(n.fd) }

// node returns what is at p, or ENOENT.
func (f *files) node(p string) (node, error) {
	fd, err := f.tree.open(p, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return node{}, err
	}
	n := node{fd: fd}
	if err := unix.Fstat(fd, &n.stat); err != nil {
		n.close()
		return node{}, err
	}
	return n, nil
}

func (n node) kind() topology.FileType {
	switch n.stat.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return topology.Regular
	case unix.S_IFDIR:
		return topology.Directory
	case unix.S_IFLNK:
		return topology.Symlink
	}
	return topology.Special
}

// content opens the regular file n for reading.
func (f *files) content(n node, p string) (int, error) {
	if f.tree.proc >= 0 {
		return f.tree.reopen(n.fd, unix.O_RDONLY)
	}
	// Without /proc the name is opened again, and must still be the same file.
	fd, err := f.tree.open(p, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Ino != n.stat.Ino || st.Dev != n.stat.Dev {
		_ = unix.Close(fd)
		return -1, topology.Faultf(topology.CodeChanged, "%s was replaced while it was read", p)
	}
	return fd, nil
}

// File returns what is at p.
func (f *files) File(ctx context.Context, p string) (topology.FileState, error) {
	if err := checkPath(p); err != nil {
		return topology.FileState{}, err
	}
	if err := ctx.Err(); err != nil {
		return topology.FileState{}, topology.FaultOf(err)
	}
	n, err := f.node(p)
	if err == unix.ENOENT {
		return topology.FileState{Type: topology.Absent}, nil
	}
	if err != nil {
		return topology.FileState{}, f.tree.fault("read", p, err)
	}
	defer n.close()
	st := topology.FileState{
		Type: n.kind(), Size: n.stat.Size, Mode: n.stat.Mode & 0o7777, UID: n.stat.Uid, GID: n.stat.Gid,
		Owner: f.accounts.users.name(n.stat.Uid), Group: f.accounts.groups.name(n.stat.Gid), Links: uint64(n.stat.Nlink),
	}
	switch st.Type {
	case topology.Symlink:
		if st.Target, err = readlink(n.fd); err != nil {
			return topology.FileState{}, f.tree.fault("read", p, err)
		}
	case topology.Regular, topology.Directory:
		fd, err := f.content(n, p)
		if err == unix.EACCES && st.Type == topology.Directory {
			return st, nil // what is in it is not asked for
		}
		if err == nil {
			err = f.readState(ctx, p, fd, n, &st)
			_ = unix.Close(fd)
		}
		if err != nil {
			return topology.FileState{}, f.tree.fault("read", p, err)
		}
	}
	return st, nil
}

// maxHashed is how much of a file is read to know it, unless somebody asks for more: whoever may
// write a managed file could else keep the device reading for ever, with a file of holes or one
// that grows.
const maxHashed = 64 << 20

// readState fills in digest, size and mark of n, at p, which fd is open on.
func (f *files) readState(ctx context.Context, p string, fd int, n node, st *topology.FileState) (err error) {
	if st.Type == topology.Regular {
		if st.SHA256, st.Size, err = f.digest(ctx, p, fd, n.stat, maxHashed); err != nil {
			return err
		}
	}
	var buf [512]byte
	if n, err := unix.Fgetxattr(fd, markAttr, buf[:]); err == nil {
		st.Mark = topology.Mark(buf[:n])
	}
	return nil
}

// Digest is the sha256 of the regular file p.
func (f *files) Digest(ctx context.Context, p string, limit int64) (topology.Sum, error) {
	if err := checkPath(p); err != nil {
		return "", err
	}
	n, err := f.node(p)
	if err != nil {
		return "", f.tree.fault("read", p, err)
	}
	defer n.close()
	if err := f.mustBeRegular("read", p, n); err != nil {
		return "", err
	}
	fd, err := f.content(n, p)
	if err != nil {
		return "", f.tree.fault("read", p, err)
	}
	defer unix.Close(fd)
	sum, size, err := f.digest(ctx, p, fd, n.stat, limit)
	if err != nil {
		return "", f.tree.fault("read", p, err)
	}
	if sum == "" {
		return "", topology.Faultf(topology.CodeInvalid, "cannot read %s: it has %d bytes or more, and %d may be read", p, size, limit)
	}
	return sum, nil
}

// Content returns the bytes of the regular file p.
func (f *files) Content(ctx context.Context, p string, limit int64) ([]byte, error) {
	if err := checkPath(p); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, topology.FaultOf(err)
	}
	n, err := f.node(p)
	if err != nil {
		return nil, f.tree.fault("read", p, err)
	}
	defer n.close()
	if err := f.mustBeRegular("read", p, n); err != nil {
		return nil, err
	}
	fd, err := f.content(n, p)
	if err != nil {
		return nil, f.tree.fault("read", p, err)
	}
	defer unix.Close(fd)
	data, err := io.ReadAll(io.LimitReader(reader(fd), limit+1))
	if err != nil {
		return nil, f.tree.fault("read", p, err)
	}
	if int64(len(data)) > limit {
		return nil, topology.Faultf(topology.CodeInvalid, "cannot read %s: it has more than %d bytes", p, limit)
	}
	if torn(fd, n.stat) || unsettled(n.stat) && !reads(fd, data) {
		return nil, topology.Faultf(topology.CodeChanged, "%s was changed while it was read", p)
	}
	return data, nil
}

// mustBeRegular refuses everything but a regular file, in words.
func (f *files) mustBeRegular(verb, p string, n node) error {
	switch n.kind() {
	case topology.Regular:
		return nil
	case topology.Symlink:
		return f.tree.fault(verb, p, unix.ELOOP)
	}
	return topology.Faultf(topology.CodeNotRegular, "cannot %s %s: a %s is in its place, not a regular file", verb, p, f.describe(n))
}

func (f *files) describe(n node) string {
	switch n.stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "directory"
	case unix.S_IFIFO:
		return "pipe"
	case unix.S_IFSOCK:
		return "socket"
	}
	return "device node"
}

type reader int

func (r reader) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(r), b)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, err
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// readSmall reads a file of the tree that is not managed, such as /etc/passwd.
func readSmall(t *tree, p string) ([]byte, error) {
	fd, err := t.open(p, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return io.ReadAll(io.LimitReader(reader(fd), 16<<20))
}
