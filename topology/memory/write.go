package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"path"
	"strconv"

	"github.com/continuo-fleet/continuo/topology"
)

func (f files) WriteFile(ctx context.Context, w topology.FileWrite) error {
	if err := f.d.control.call(ctx, OpWriteFile, fileResource(w.Path)); err != nil {
		return err
	}
	if w.Source != nil {
		content, err := receive(ctx, w.Path, *w.Source)
		if err != nil {
			return err
		}
		w.Content = content
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.d.write(w)
}

// receive reads a source to its end, and refuses what is something else.
func receive(ctx context.Context, p string, s topology.Source) ([]byte, error) {
	in, err := s.Open(ctx)
	if err != nil {
		return nil, topology.FaultOf(err)
	}
	defer in.Close()
	content, err := io.ReadAll(io.LimitReader(in, s.Size+1))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, topology.FaultOf(err)
	}
	if sum := sha256.Sum256(content); int64(len(content)) != s.Size || hex.EncodeToString(sum[:]) != s.SHA256 {
		return nil, topology.Faultf(topology.CodeInvalid, "the content that came for %s is not the one with the sha256 %.12s…", p, s.SHA256)
	}
	return content, nil
}

func (d *Device) write(w topology.FileWrite) error {
	old, err := d.lookup(w.Path)
	if err != nil {
		return err
	}
	if w.Path == "/" {
		return topology.Faultf(topology.CodeNotRegular, "/ is a directory")
	}
	n := d.node(topology.Regular, 0)
	if old != nil {
		if err := d.changeable(w.Path, old); err != nil {
			return err
		}
		if old.mount {
			return topology.Faultf(topology.CodeMountPoint, "%s is a mount point and cannot be replaced", w.Path)
		}
		n.uid, n.gid, n.attrs = old.uid, old.gid, maps.Clone(old.attrs)
	}
	n.content = append([]byte{}, w.Content...)
	if err := d.attributes(n, w); err != nil {
		return err
	}
	if st, err := d.fileState(w.Path); w.Replaces != "" && (err != nil || st.Is() != w.Replaces) {
		return topology.Faultf(topology.CodeChanged, "%s was changed by somebody else just now, and was left so", w.Path)
	}
	if err := d.parents(w.Path); err != nil {
		return err
	}
	if d.fs(w.Path).Full {
		return topology.Faultf(topology.CodeNoSpace, "no space left for %s", w.Path)
	}
	if old != nil {
		old.links--
	}
	d.files[w.Path] = n
	d.changed(fileResource(w.Path))
	return nil
}

// attributes gives n what w says, or changes nothing.
func (d *Device) attributes(n *inode, w topology.FileWrite) error {
	uid, err := account(d.users, "user", w.Owner, n.uid)
	if err != nil {
		return err
	}
	gid, err := account(d.groups, "group", w.Group, n.gid)
	if err != nil {
		return err
	}
	if d.fs(w.Path).NoOwners {
		if uid != 0 || gid != 0 || w.Mode != 0o755 {
			return topology.Faultf(topology.CodeNotSupported, "the file system of %s holds neither owners nor modes: all is root's, 0755", w.Path)
		}
		w.Mark = ""
	}
	n.uid, n.gid, n.mode, n.mark = uid, gid, w.Mode, w.Mark
	return nil
}

func account(ids map[string]uint32, what, name string, keep uint32) (uint32, error) {
	if name == "" {
		return keep, nil
	}
	if id, ok := ids[name]; ok {
		return id, nil
	}
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n), nil
	}
	return 0, topology.Faultf(topology.CodeNoAccount, "the device has no %s %q", what, name)
}

// changeable reports why the regular file n at p could not be changed.
func (d *Device) changeable(p string, n *inode) error {
	if err := regular(p, n); err != nil {
		return err
	}
	if n.immutable {
		return topology.Faultf(topology.CodeImmutable, "%s has the immutable flag", p)
	}
	return nil
}

// parents makes the directories on the way to p, if the last that exists can be changed.
func (d *Device) parents(p string) error {
	var missing []string
	dir := path.Dir(p)
	for ; d.files[dir] == nil; dir = path.Dir(dir) {
		missing = append(missing, dir)
	}
	if d.files[dir].immutable {
		return topology.Faultf(topology.CodeImmutable, "%s has the immutable flag", dir)
	}
	if d.fs(p).ReadOnly {
		return topology.Faultf(topology.CodeReadOnly, "the file system of %s is read-only", p)
	}
	for _, m := range missing {
		d.files[m] = d.node(topology.Directory, 0o755)
	}
	return nil
}

func (f files) SetAttributes(ctx context.Context, w topology.FileWrite) error {
	if err := f.d.control.call(ctx, OpSetAttributes, fileResource(w.Path)); err != nil {
		return err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	n, err := f.d.present(w.Path)
	if err != nil {
		return err
	}
	if err := f.d.changeable(w.Path, n); err != nil {
		return err
	}
	if f.d.fs(w.Path).ReadOnly {
		return topology.Faultf(topology.CodeReadOnly, "the file system of %s is read-only", w.Path)
	}
	if err := f.d.attributes(n, w); err != nil {
		return err
	}
	f.d.changed(fileResource(w.Path))
	return nil
}

func (f files) RemoveFile(ctx context.Context, p string) error {
	if err := f.d.control.call(ctx, OpRemoveFile, fileResource(p)); err != nil {
		return err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.d.remove(p)
}

func (d *Device) remove(p string) error {
	n, err := d.lookup(p)
	if n == nil || err != nil {
		return err
	}
	if err := d.changeable(p, n); err != nil {
		return err
	}
	if n.mount {
		return topology.Faultf(topology.CodeMountPoint, "%s is a mount point and cannot be removed", p)
	}
	if err := d.parents(p); err != nil { // all there; may they be changed?
		return err
	}
	n.links--
	delete(d.files, p)
	d.changed(fileResource(p))
	return nil
}
