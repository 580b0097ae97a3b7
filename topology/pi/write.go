package pi

import (
	"context"
	"errors"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/internal/atomicfile"
	"github.com/continuo-fleet/continuo/topology"
)

// WriteFile makes the file so.
func (f *files) WriteFile(ctx context.Context, w topology.FileWrite) error {
	if err := checkTarget(w.Path); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return topology.FaultOf(err)
	}
	file := atomicfile.File{Content: w.Content, Mode: w.Mode & 0o7777}
	uid, gid, err := f.owners(w.Owner, w.Group)
	if err != nil {
		return err
	}
	dirPath, name := path.Split(w.Path)
	fd, err := f.tree.makeDirs(path.Clean(dirPath))
	if err != nil {
		return f.tree.fault("write", w.Path, f.blame(err, path.Clean(dirPath)))
	}
	dir := os.NewFile(uintptr(fd), dirPath)
	defer dir.Close()
	if w.Source != nil {
		if err := hasRoom(fd, w); err != nil {
			return f.tree.fault("write", w.Path, err)
		}
		in, err := w.Source.Open(ctx)
		if err != nil {
			return f.tree.fault("write", w.Path, err)
		}
		defer in.Close()
		file.Source = verify(ctx, w.Path, in, *w.Source)
	}

	old, err := f.present(dir, name, w.Path)
	for range 10 { // somebody else writes it, too: what is there now is looked at
		if err == nil || topology.FaultOf(err).Code != topology.CodeChanged {
			break
		}
		old, err = f.present(dir, name, w.Path)
	}
	if err != nil {
		return err
	}
	file.Xattrs = old.attrs
	if old.exists {
		if uid < 0 {
			uid = int(old.uid)
		}
		if gid < 0 {
			gid = int(old.gid)
		}
	}
	if file.UID, file.GID = uid, gid; uid >= 0 || gid >= 0 {
		file.SetOwner = true
	}
	if w.Mark != "" && hasUserAttrs(fd) {
		if file.Xattrs == nil {
			file.Xattrs = map[string][]byte{}
		}
		file.Xattrs[markAttr] = []byte(w.Mark)
	}
	if err := checkOwnerless(dir, file); err != nil {
		return f.tree.fault("write", w.Path, err)
	}
	if w.Replaces != "" {
		file.Check = func() error { return f.stillThere(ctx, w) }
	}
	f.changed(ctx, w.Path)
	defer f.changed(ctx, w.Path) // again: what was told before may have been acted upon before the change
	if err := atomicfile.WriteNoSync(dir, name, file); err != nil {
		return f.tree.fault("write", w.Path, f.blame(err, w.Path))
	}
	if err := f.syncs.sync(fd); err != nil {
		return f.tree.fault("write", w.Path, err)
	}
	return nil
}

// stillThere looks whether what is to be replaced is what whoever asks for it has seen.
func (f *files) stillThere(ctx context.Context, w topology.FileWrite) error {
	st, err := f.File(ctx, w.Path)
	if err == nil && st.Is() != w.Replaces {
		err = topology.Faultf(topology.CodeChanged, "%s was changed by somebody else just now, and was left so", w.Path)
	}
	return err
}

// hasRoom refuses a large content before a part of it fills the disk, for all else that writes there.
func hasRoom(dir int, w topology.FileWrite) error {
	const most = 64 << 20 // that is left free; a hundredth of a small file system
	var st unix.Statfs_t
	if err := unix.Fstatfs(dir, &st); err != nil {
		return err
	}
	if st.Blocks == 0 { // of a file system that does not count
		return nil
	}
	free, left := int64(st.Bavail)*int64(st.Bsize), min(most, int64(st.Blocks)*int64(st.Bsize)/100)
	if free-left < w.Source.Size {
		return topology.Faultf(topology.CodeNoSpace, "cannot write %s: it has %d MiB, and of %d MiB that are free there %d are not to be used: make room", w.Path, w.Source.Size>>20, free>>20, left>>20)
	}
	return nil
}

// owners resolves the wanted owner and group; -1 is no wish.
func (f *files) owners(owner, group string) (uid, gid int, err error) {
	uid, gid = -1, -1
	if owner != "" {
		if uid, err = f.accounts.user(owner); err != nil {
			return
		}
	}
	if group != "" {
		gid, err = f.accounts.group(group)
	}
	return
}

// A predecessor is the file that is about to be replaced.
type predecessor struct {
	exists   bool
	uid, gid uint32
	attrs    map[string][]byte // to keep, without our mark
}

// present looks at what is in place of name, and refuses what must not be replaced.
func (f *files) present(dir *os.File, name, p string) (predecessor, error) {
	fd, err := openat(int(dir.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err == unix.ENOENT {
		return predecessor{}, nil
	}
	if err != nil {
		return predecessor{}, f.tree.fault("write", p, err)
	}
	n := node{fd: fd}
	defer n.close()
	if err := unix.Fstat(fd, &n.stat); err != nil {
		return predecessor{}, f.tree.fault("write", p, err)
	}
	if err := f.mustBeRegular("replace", p, n); err != nil {
		return predecessor{}, err
	}
	if err := checkFlags(fd, p); err != nil {
		return predecessor{}, f.tree.fault("replace", p, err)
	}
	attrs, err := f.keepAttrs(n, p)
	if err != nil {
		return predecessor{}, f.tree.fault("replace", p, err)
	}
	return predecessor{true, n.stat.Uid, n.stat.Gid, attrs}, nil
}

// SetAttributes sets mode, owner, group and mark, and nothing that is right already.
func (f *files) SetAttributes(ctx context.Context, w topology.FileWrite) error {
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
	n, err := f.node(w.Path)
	if err != nil {
		return f.tree.fault("change", w.Path, err)
	}
	defer n.close()
	if err := f.mustBeRegular("change", w.Path, n); err != nil {
		return err
	}
	fd, err := f.content(n, w.Path)
	if err != nil {
		return f.tree.fault("change", w.Path, err)
	}
	defer unix.Close(fd)
	if err := setAttributes(fd, n.stat, w, uid, gid); err != nil {
		return f.tree.fault("change", w.Path, f.blame(err, w.Path))
	}
	return nil
}

func setAttributes(fd int, st unix.Stat_t, w topology.FileWrite, uid, gid int) error {
	mode, want := st.Mode&0o7777, w.Mode&0o7777
	if uid < 0 {
		uid = int(st.Uid)
	}
	if gid < 0 {
		gid = int(st.Gid)
	}
	if uid != int(st.Uid) || gid != int(st.Gid) {
		// What the new owner may not have is taken away before he becomes the owner,
		// and the mode comes last because chown clears setuid.
		if mode&^want != 0 {
			if err := unix.Fchmod(fd, mode&want); err != nil {
				return err
			}
		}
		if err := unix.Fchown(fd, uid, gid); err != nil {
			return ownerless(fd, err)
		}
		mode = ^uint32(0)
	}
	if mode != want {
		if err := unix.Fchmod(fd, want); err != nil {
			return ownerless(fd, err)
		}
		if err := unix.Fstat(fd, &st); err == nil && st.Mode&0o7777 != want {
			return topology.Faultf(topology.CodeNotSupported, "the file system of %s cannot hold the mode %04o", w.Path, want)
		}
	}
	if err := setMark(fd, w.Mark); err != nil {
		return err
	}
	return fsync(fd)
}

// RemoveFile removes a regular file.
func (f *files) RemoveFile(ctx context.Context, p string) error {
	return f.remove(ctx, p, 0, func(n node) error { return f.mustBeRegular("remove", p, n) })
}

// remove removes what is at p, if allowed does.
func (f *files) remove(ctx context.Context, p string, flags int, allowed func(node) error) error {
	if err := checkTarget(p); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return topology.FaultOf(err)
	}
	dir, err := f.tree.open(path.Dir(p), unix.O_RDONLY|unix.O_DIRECTORY)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return f.tree.fault("remove", p, err)
	}
	defer unix.Close(dir)
	fd, err := openat(dir, path.Base(p), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return f.tree.fault("remove", p, err)
	}
	n := node{fd: fd}
	err = unix.Fstat(fd, &n.stat)
	if err == nil {
		err = allowed(n)
	}
	n.close()
	if err != nil {
		return f.tree.fault("remove", p, err)
	}
	f.changed(ctx, p)
	defer f.changed(ctx, p)
	if err := unix.Unlinkat(dir, path.Base(p), flags); err != nil && err != unix.ENOENT {
		return f.tree.fault("remove", p, f.blame(f.blame(err, p), path.Dir(p)))
	}
	if err := f.syncs.sync(dir); err != nil {
		return f.tree.fault("remove", p, err)
	}
	return nil
}

// SweepTemp removes the temporary files that a killed process left in directories, and
// returns their paths. A directory that is not there has none. Nobody else may be
// writing there: call it before anything else.
func (d *Device) SweepTemp(ctx context.Context, dirs []string) (removed []string, err error) {
	for _, p := range dirs {
		if err := ctx.Err(); err != nil {
			return removed, topology.FaultOf(err)
		}
		fd, oerr := d.files.tree.open(p, unix.O_RDONLY|unix.O_DIRECTORY)
		if oerr != nil {
			continue // absent, or not ours to enter: then we never wrote there
		}
		dir := os.NewFile(uintptr(fd), p)
		names, serr := atomicfile.Sweep(dir)
		_ = dir.Close()
		for _, n := range names {
			removed = append(removed, path.Join(p, n))
		}
		if serr != nil {
			err = errors.Join(err, d.files.tree.fault("sweep", p, serr))
		}
	}
	return removed, err
}
