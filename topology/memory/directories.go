package memory

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/topology"
)

func (f files) Entries(ctx context.Context, p string, limit int) ([]string, int, error) {
	if err := f.d.control.call(ctx, OpEntries, fileResource(p)); err != nil {
		return nil, 0, err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	n, err := f.d.lookup(p)
	if err == nil {
		err = listable(p, n)
	}
	if err != nil {
		return nil, 0, err
	}
	names := f.d.names(p)
	more := max(0, len(names)-limit)
	return names[:len(names)-more], more, nil
}

// listable says why what is at p has no entries.
func listable(p string, n *inode) error {
	switch {
	case n == nil:
		return topology.Faultf(topology.CodeUnknown, "%s does not exist", p)
	case n.typ == topology.Symlink:
		return topology.Faultf(topology.CodeSymlink, "%s is a symbolic link to %s", p, n.target)
	case n.typ != topology.Directory:
		return topology.Faultf(topology.CodeNotRegular, "%s is no directory", p)
	}
	return nil
}

// names lists what is in a directory.
func (d *Device) names(dir string) (out []string) {
	for p := range d.files {
		if p != "/" && path.Dir(p) == dir {
			out = append(out, path.Base(p))
		}
	}
	slices.Sort(out)
	return out
}

func (f files) MakeDirectory(ctx context.Context, w topology.DirectoryWrite) error {
	if err := f.d.control.call(ctx, OpMakeDirectory, fileResource(w.Path)); err != nil {
		return err
	}
	d := f.d
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.lookup(w.Path)
	if err != nil {
		return err
	}
	made := n == nil
	switch {
	case made:
		n = d.node(topology.Directory, 0o700)
	case n.typ == topology.Symlink:
		return topology.Faultf(topology.CodeSymlink, "%s is a symbolic link to %s", w.Path, n.target)
	case n.typ != topology.Directory:
		return topology.Faultf(topology.CodeNotRegular, "%s is a %s, not a directory", w.Path, n.typ)
	case n.immutable:
		return topology.Faultf(topology.CodeImmutable, "%s has the immutable flag", w.Path)
	case d.fs(w.Path).ReadOnly:
		return topology.Faultf(topology.CodeReadOnly, "the file system of %s is read-only", w.Path)
	}
	want := *n
	if err := d.attributes(&want, topology.FileWrite{Path: w.Path, Mode: w.Mode, Owner: w.Owner, Group: w.Group, Mark: w.Mark}); err != nil {
		return err
	}
	if made {
		if err := d.room(w.Path); err != nil {
			return err
		}
		d.files[w.Path] = n
	}
	*n = want
	d.changed(fileResource(w.Path))
	return nil
}

// room makes the directories on the way to p, if something new can be put there.
func (d *Device) room(p string) error {
	if err := d.parents(p); err != nil {
		return err
	}
	if d.fs(p).Full {
		return topology.Faultf(topology.CodeNoSpace, "no space left for %s", p)
	}
	return nil
}

func (f files) RemoveDirectory(ctx context.Context, p string) error {
	if err := f.d.control.call(ctx, OpRemoveDirectory, fileResource(p)); err != nil {
		return err
	}
	d := f.d
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.lookup(p)
	switch {
	case n == nil || err != nil:
		return err
	case n.typ == topology.Symlink:
		return topology.Faultf(topology.CodeSymlink, "%s is a symbolic link to %s", p, n.target)
	case n.typ != topology.Directory:
		return topology.Faultf(topology.CodeNotRegular, "%s is a %s, not a directory", p, n.typ)
	case n.mount:
		return topology.Faultf(topology.CodeMountPoint, "%s is a mount point and cannot be removed", p)
	}
	if names := d.names(p); len(names) > 0 {
		return topology.Faultf(topology.CodeForeign, "%s is not empty, and only an empty directory is removed: it holds %s", p, strings.Join(names[:min(len(names), 5)], ", "))
	}
	return d.drop(p, n)
}

// drop takes a name away.
func (d *Device) drop(p string, n *inode) error {
	if n.immutable {
		return topology.Faultf(topology.CodeImmutable, "%s has the immutable flag", p)
	}
	if err := d.parents(p); err != nil { // all there; may they be changed?
		return err
	}
	n.links--
	delete(d.files, p)
	d.changed(fileResource(p))
	return nil
}

func (f files) MakeSymlink(ctx context.Context, w topology.SymlinkWrite) error {
	if err := f.d.control.call(ctx, OpMakeSymlink, fileResource(w.Path)); err != nil {
		return err
	}
	d := f.d
	d.mu.Lock()
	defer d.mu.Unlock()
	old, err := d.lookup(w.Path)
	if err != nil {
		return err
	}
	found := string(topology.Absent)
	if old != nil {
		if err := link(w.Path, old); err != nil {
			return err
		}
		found = old.target
	}
	if w.Replaces != found {
		return topology.Faultf(topology.CodeChanged, "%s was changed by somebody else just now, and was left so", w.Path)
	}
	if d.fs(w.Path).NoOwners {
		return topology.Faultf(topology.CodeNotSupported, "the file system of %s holds no symbolic links", w.Path)
	}
	if err := d.room(w.Path); err != nil {
		return err
	}
	n := d.node(topology.Symlink, 0o777)
	n.target = w.Target
	d.files[w.Path] = n
	d.changed(fileResource(w.Path))
	return nil
}

// link refuses everything but a symbolic link.
func link(p string, n *inode) error {
	if n.typ != topology.Symlink {
		return topology.Faultf(topology.CodeNotRegular, "%s is a %s, not a symbolic link", p, n.typ)
	}
	return nil
}

func (f files) RemoveSymlink(ctx context.Context, p string) error {
	if err := f.d.control.call(ctx, OpRemoveSymlink, fileResource(p)); err != nil {
		return err
	}
	d := f.d
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.lookup(p)
	if n == nil || err != nil {
		return err
	}
	if err := link(p, n); err != nil {
		return err
	}
	return d.drop(p, n)
}
