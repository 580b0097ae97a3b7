package pi

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/internal/atomicfile"
	"github.com/continuo-fleet/continuo/topology"
)

// mustBeDirectory refuses everything but a directory, in words.
func (f *files) mustBeDirectory(verb, p string, n node) error {
	switch n.kind() {
	case topology.Directory:
		return nil
	case topology.Symlink:
		return f.tree.fault(verb, p, unix.ELOOP)
	case topology.Regular:
		return topology.Faultf(topology.CodeNotRegular, "cannot %s %s: a file is in its place, not a directory", verb, p)
	}
	return topology.Faultf(topology.CodeNotRegular, "cannot %s %s: a %s is in its place, not a directory", verb, p, f.describe(n))
}

// Entries names what is in the directory p.
func (f *files) Entries(ctx context.Context, p string, limit int) (names []string, more int, err error) {
	if err := checkPath(p); err != nil {
		return nil, 0, err
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, topology.FaultOf(err)
	}
	n, err := f.node(p)
	if err != nil {
		return nil, 0, f.tree.fault("list", p, err)
	}
	defer n.close()
	if err := f.mustBeDirectory("list", p, n); err != nil {
		return nil, 0, err
	}
	fd, err := f.content(n, p)
	if err != nil {
		return nil, 0, f.tree.fault("list", p, err)
	}
	dir := os.NewFile(uintptr(fd), p)
	defer dir.Close()
	return list(ctx, dir, limit)
}

// list reads a directory in pieces: it may hold millions. Of those the first are kept, in the
// order of their names.
func list(ctx context.Context, dir *os.File, limit int) (names []string, more int, err error) {
	for {
		some, err := dir.Readdirnames(1024)
		for _, name := range some {
			if !atomicfile.IsTemp(name) {
				names = append(names, name)
			}
		}
		if len(names) > limit {
			slices.Sort(names)
			more += len(names) - limit
			names = names[:limit]
		}
		if err == io.EOF {
			slices.Sort(names)
			return names, more, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, 0, topology.FaultOf(err)
		}
	}
}

// MakeDirectory makes the directory so.
func (f *files) MakeDirectory(ctx context.Context, w topology.DirectoryWrite) error {
	if err := checkTarget(w.Path); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return topology.FaultOf(err)
	}
	uid, gid, err := f.owners(w.Owner, w.Group)
	if err != nil {
		return err
	}
	up, err := f.tree.makeDirs(path.Dir(w.Path))
	if err != nil {
		return f.tree.fault("make", w.Path, f.blame(err, path.Dir(w.Path)))
	}
	defer unix.Close(up)
	name := path.Base(w.Path)
	// A new directory is nobody's but ours until it is as it should be.
	made := unix.Mkdirat(up, name, 0o700)
	if made != nil && made != unix.EEXIST {
		return f.tree.fault("make", w.Path, f.blame(made, w.Path))
	}
	err = f.setDirectory(up, name, w, uid, gid, made == nil)
	if err == nil && made == nil {
		err = f.syncs.sync(up)
	}
	if err != nil {
		if made == nil {
			_ = unix.Unlinkat(up, name, unix.AT_REMOVEDIR)
		}
		return f.tree.fault("make", w.Path, f.blame(err, w.Path))
	}
	return nil
}

// setDirectory gives the directory name in up its rights. One that was just made must still be
// that one: somebody who may write in up could have put another in its place.
func (f *files) setDirectory(up int, name string, w topology.DirectoryWrite, uid, gid int, made bool) error {
	fd, err := openat(up, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil {
		return err
	}
	n := node{fd: fd}
	defer n.close()
	if err := unix.Fstat(fd, &n.stat); err != nil {
		return err
	}
	if err := f.mustBeDirectory("make", w.Path, n); err != nil {
		return err
	}
	if made && (n.stat.Mode&0o7077&^unix.S_ISGID != 0 || int(n.stat.Uid) != os.Geteuid()) {
		return topology.Faultf(topology.CodeChanged, "%s was replaced by somebody else while it was made", w.Path)
	}
	dir, err := openat(up, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	var now unix.Stat_t
	if err := unix.Fstat(dir, &now); err != nil || now.Ino != n.stat.Ino || now.Dev != n.stat.Dev {
		return topology.Faultf(topology.CodeChanged, "%s was replaced by somebody else while it was changed", w.Path)
	}
	return setAttributes(dir, now, topology.FileWrite{Path: w.Path, Mode: w.Mode, Mark: w.Mark}, uid, gid)
}

// RemoveDirectory removes an empty directory.
func (f *files) RemoveDirectory(ctx context.Context, p string) error {
	err := f.remove(ctx, p, unix.AT_REMOVEDIR, func(n node) error {
		if err := f.mustBeDirectory("remove", p, n); err != nil {
			return err
		}
		names, more, err := f.Entries(ctx, p, 5)
		if err != nil || len(names) == 0 {
			return err
		}
		return notEmpty(p, names, more)
	})
	return err
}

func notEmpty(p string, names []string, more int) error {
	held := strings.Join(names, ", ")
	if more > 0 {
		held += ", …"
	}
	return topology.Faultf(topology.CodeForeign, "cannot remove %s: it is not empty, and only an empty directory is removed; it holds %.300s", p, held)
}

// MakeSymlink makes the link so.
func (f *files) MakeSymlink(ctx context.Context, w topology.SymlinkWrite) error {
	if err := checkTarget(w.Path); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return topology.FaultOf(err)
	}
	fresh := w.Replaces == string(topology.Absent)
	fd, err := f.tree.makeDirs(path.Dir(w.Path))
	if err != nil {
		return f.tree.fault("write", w.Path, f.blame(err, path.Dir(w.Path)))
	}
	dir := os.NewFile(uintptr(fd), path.Dir(w.Path))
	defer dir.Close()
	if err := f.linkOrNothing("write", fd, w.Path); err != nil {
		return err
	}
	f.changed(ctx, w.Path)
	defer f.changed(ctx, w.Path)
	err = atomicfile.Symlink(dir, path.Base(w.Path), w.Target, w.Replaces, fresh)
	switch {
	case errors.Is(err, os.ErrExist), !fresh && errors.Is(err, unix.ENOENT):
		return topology.Faultf(topology.CodeChanged, "%s was changed by somebody else just now, and was left so", w.Path)
	case errors.Is(err, unix.EPERM) && ownerless(fd, unix.EPERM) != unix.EPERM:
		return topology.Faultf(topology.CodeNotSupported, "the file system of %s holds no symbolic links", w.Path)
	case err != nil:
		return f.tree.fault("write", w.Path, f.blame(err, w.Path))
	}
	if err := f.syncs.sync(fd); err != nil {
		return f.tree.fault("write", w.Path, err)
	}
	return nil
}

// linkOrNothing refuses what is in place of a link, in words.
func (f *files) linkOrNothing(verb string, dir int, p string) error {
	fd, err := openat(dir, path.Base(p), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return f.tree.fault(verb, p, err)
	}
	n := node{fd: fd}
	defer n.close()
	if err := unix.Fstat(fd, &n.stat); err != nil {
		return f.tree.fault(verb, p, err)
	}
	return f.mustBeLink(verb, p, n)
}

// mustBeLink refuses everything but a symbolic link, in words.
func (f *files) mustBeLink(verb, p string, n node) error {
	switch n.kind() {
	case topology.Symlink:
		return nil
	case topology.Regular:
		return topology.Faultf(topology.CodeNotRegular, "cannot %s %s: a file is in its place, not a symbolic link", verb, p)
	}
	return topology.Faultf(topology.CodeNotRegular, "cannot %s %s: a %s is in its place, not a symbolic link", verb, p, f.describe(n))
}

// RemoveSymlink removes a symbolic link.
func (f *files) RemoveSymlink(ctx context.Context, p string) error {
	return f.remove(ctx, p, 0, func(n node) error { return f.mustBeLink("remove", p, n) })
}
