package memory

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// The methods of this file change the file tree as somebody else on the device would.
// They panic on what makes no sense there: tests are their only callers.

// Put writes a file by hand: a new one is root's, 0644, without a mark; one that is
// there keeps what it has.
func (d *Device) Put(p, content string) {
	d.hands(func() {
		n := d.files[p]
		if n == nil {
			n = d.place(p, topology.Regular, 0o644)
		}
		if n.typ != topology.Regular {
			panic(fmt.Sprintf("memory: %s is a %s", p, n.typ))
		}
		n.content, n.changed = []byte(content), time.Now()
		d.changed(fileResource(p))
	})
}

// place puts a new thing at p. The lock is held.
func (d *Device) place(p string, t topology.FileType, mode uint32) *inode {
	if p != path.Clean(p) || !path.IsAbs(p) {
		panic(fmt.Sprintf("memory: path %q is not absolute and clean", p))
	}
	for dir := path.Dir(p); d.files[dir] == nil; dir = path.Dir(dir) {
		d.files[dir] = d.node(topology.Directory, 0o755)
	}
	n := d.node(t, mode)
	d.files[p] = n
	return n
}

// Mkdir makes a directory.
func (d *Device) Mkdir(p string) {
	d.hands(func() { d.place(p, topology.Directory, 0o755); d.changed(fileResource(p)) })
}

// Symlink puts a symbolic link to target at p.
func (d *Device) Symlink(target, p string) {
	d.hands(func() { d.place(p, topology.Symlink, 0o777).target = target; d.changed(fileResource(p)) })
}

// Special puts a pipe, a socket or a device node at p.
func (d *Device) Special(p string) {
	d.hands(func() { d.place(p, topology.Special, 0o644); d.changed(fileResource(p)) })
}

// Link gives the file at p another name.
func (d *Device) Link(p, another string) {
	d.hands(func() {
		n := d.must(p)
		d.place(another, topology.Regular, 0)
		d.files[another] = n
		n.links++
		d.changed(fileResource(p), fileResource(another))
	})
}

// Chmod changes the mode of a file.
func (d *Device) Chmod(p string, mode uint32) {
	d.hands(func() { d.must(p).mode = mode; d.changed(fileResource(p)) })
}

// Chown gives a file to accounts, by number.
func (d *Device) Chown(p string, uid, gid uint32) {
	d.hands(func() { n := d.must(p); n.uid, n.gid = uid, gid; d.changed(fileResource(p)) })
}

// SetMark puts a mark on a file, or takes it away.
func (d *Device) SetMark(p string, m topology.Mark) {
	d.hands(func() { d.must(p).mark = m; d.changed(fileResource(p)) })
}

// SetImmutable sets or clears the immutable flag of a file or directory.
func (d *Device) SetImmutable(p string, on bool) { d.hands(func() { d.must(p).immutable = on }) }

// SetMountPoint makes a file a mount point, or ends that.
func (d *Device) SetMountPoint(p string, on bool) { d.hands(func() { d.must(p).mount = on }) }

// SetAttr puts an attribute that is not ours on a file, such as an access control list.
func (d *Device) SetAttr(p, name, value string) {
	d.hands(func() {
		n := d.must(p)
		if n.attrs == nil {
			n.attrs = map[string]string{}
		}
		n.attrs[name] = value
	})
}

// Attr returns an attribute of a file that is not ours.
func (d *Device) Attr(p, name string) (v string) {
	d.hands(func() { v = d.must(p).attrs[name] })
	return v
}

// SetFS limits the file system at a directory and below; the zero FS ends that.
func (d *Device) SetFS(dir string, fs FS) { d.hands(func() { d.mounts[dir] = fs }) }

// Delete removes whatever is at p, and everything below it.
func (d *Device) Delete(p string) {
	d.hands(func() {
		for at, n := range d.files {
			if at == p || strings.HasPrefix(at, p+"/") {
				n.links--
				delete(d.files, at)
				d.changed(fileResource(at))
			}
		}
	})
}

// Read returns the content of a file; ok is false if no regular file is there.
func (d *Device) Read(p string) (content string, ok bool) {
	d.hands(func() {
		if n := d.files[p]; n != nil && n.typ == topology.Regular {
			content, ok = string(n.content), true
		}
	})
	return content, ok
}

// List names everything below dir, sorted.
func (d *Device) List(dir string) (out []string) {
	d.hands(func() {
		for p := range d.files {
			if strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") && p != "/" {
				out = append(out, p)
			}
		}
	})
	slices.Sort(out)
	return out
}

// Identity returns what changes whenever the thing at p is replaced or written.
func (d *Device) Identity(p string) (id string) {
	d.hands(func() {
		if n := d.files[p]; n != nil {
			id = fmt.Sprint(n.id, n.changed.UnixNano())
		}
	})
	return id
}

// AddUser makes a user known.
func (d *Device) AddUser(name string, uid uint32) { d.hands(func() { d.users[name] = uid }) }

// RemoveUser removes a user, and with him whatever runs for him.
func (d *Device) RemoveUser(name string) {
	d.hands(func() {
		delete(d.users, name)
		d.linger(name, false)
	})
}

// AddGroup makes a group known.
func (d *Device) AddGroup(name string, gid uint32) { d.hands(func() { d.groups[name] = gid }) }

func (d *Device) must(p string) *inode {
	n := d.files[p]
	if n == nil {
		panic(fmt.Sprintf("memory: nothing at %s", p))
	}
	return n
}
