package memory

import (
	"context"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// An inode is one thing in the file tree; hard links are several names of one.
type inode struct {
	id        uint64
	typ       topology.FileType
	content   []byte
	mode      uint32
	uid, gid  uint32
	links     uint64
	target    string
	mark      topology.Mark
	changed   time.Time
	immutable bool
	mount     bool
	attrs     map[string]string // access control lists, capabilities, attributes of others
}

func (d *Device) node(t topology.FileType, mode uint32) *inode {
	d.inodes++
	return &inode{id: d.inodes, typ: t, mode: mode, links: 1, changed: time.Now()}
}

type files struct{ d *Device }

func (f files) File(ctx context.Context, p string) (topology.FileState, error) {
	if err := f.d.control.call(ctx, OpFile, fileResource(p)); err != nil {
		return topology.FileState{}, err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.d.fileState(p)
}

func (d *Device) fileState(p string) (topology.FileState, error) {
	n, err := d.lookup(p)
	if err != nil {
		return topology.FileState{}, err
	}
	if n == nil {
		return topology.FileState{Type: topology.Absent}, nil
	}
	st := topology.FileState{
		Type: n.typ, Mode: n.mode, UID: n.uid, GID: n.gid, Links: n.links, Target: n.target, Mark: n.mark,
		Owner: name(d.users, n.uid), Group: name(d.groups, n.gid),
	}
	if n.typ == topology.Regular {
		st.Size, st.SHA256 = int64(len(n.content)), topology.SumOf(n.content)
	}
	return st, nil
}

func name(ids map[string]uint32, id uint32) string {
	for n, i := range ids {
		if i == id {
			return n
		}
	}
	return strconv.FormatUint(uint64(id), 10)
}

// lookup returns what is at p, or nil, without following anything.
func (d *Device) lookup(p string) (*inode, error) {
	if !path.IsAbs(p) || p != path.Clean(p) || strings.ContainsRune(p, 0) {
		return nil, topology.Faultf(topology.CodeInvalid, "path %q is not absolute and clean", p)
	}
	for part := range strings.SplitSeq(p, "/") {
		if len(part) > 255 {
			return nil, topology.Faultf(topology.CodeInvalid, "%q is too long for a name", part)
		}
	}
	for i, c := range p {
		if c != '/' || i == 0 {
			continue
		}
		switch n := d.files[p[:i]]; {
		case n == nil:
			return nil, nil
		case n.typ == topology.Symlink:
			return nil, topology.Faultf(topology.CodeSymlink, "%s, on the way to %s, is a symbolic link to %s", p[:i], p, n.target)
		case n.typ != topology.Directory:
			return nil, topology.Faultf(topology.CodeNotRegular, "%s, on the way to %s, is no directory", p[:i], p)
		}
	}
	return d.files[p], nil
}

func (f files) Resolve(ctx context.Context, p string) (string, error) {
	if err := f.d.control.call(ctx, OpResolve, fileResource(p)); err != nil {
		return "", err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return topology.Follow(p, func(at string) (string, error) {
		if n := f.d.files[at]; n != nil && n.typ == topology.Symlink {
			return n.target, nil
		}
		return "", nil
	})
}

func (f files) Content(ctx context.Context, p string, limit int64) ([]byte, error) {
	if err := f.d.control.call(ctx, OpContent, fileResource(p)); err != nil {
		return nil, err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	n, err := f.d.present(p)
	if err != nil {
		return nil, err
	}
	if int64(len(n.content)) > limit {
		return nil, topology.Faultf(topology.CodeInvalid, "%s has %d bytes, more than the %d that may be read", p, len(n.content), limit)
	}
	return append([]byte{}, n.content...), nil
}

func (f files) Digest(ctx context.Context, p string, limit int64) (topology.Sum, error) {
	if err := f.d.control.call(ctx, OpDigest, fileResource(p)); err != nil {
		return "", err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	n, err := f.d.present(p)
	if err != nil {
		return "", err
	}
	if int64(len(n.content)) > limit {
		return "", topology.Faultf(topology.CodeInvalid, "%s has %d bytes, more than the %d that may be read", p, len(n.content), limit)
	}
	return topology.SumOf(n.content), nil
}

// present returns the regular file at p.
func (d *Device) present(p string) (*inode, error) {
	n, err := d.lookup(p)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return nil, topology.Faultf(topology.CodeUnknown, "%s does not exist", p)
	}
	return n, regular(p, n)
}

func regular(p string, n *inode) error {
	switch {
	case n.typ == topology.Symlink:
		return topology.Faultf(topology.CodeSymlink, "%s is a symbolic link to %s", p, n.target)
	case n.typ != topology.Regular:
		return topology.Faultf(topology.CodeNotRegular, "%s is a %s, not a regular file", p, n.typ)
	}
	return nil
}

// An FS is a file system with limits.
type FS struct {
	ReadOnly bool
	Full     bool
	NoOwners bool // as vfat: everything belongs to root, 0755, and carries no attributes
}

// fs returns the file system that p is on.
func (d *Device) fs(p string) FS {
	for ; p != "/"; p = path.Dir(p) {
		if fs, ok := d.mounts[p]; ok {
			return fs
		}
	}
	return d.mounts["/"]
}
