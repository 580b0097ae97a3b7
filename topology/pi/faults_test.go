package pi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

const (
	immutableFlag = 0x10 // FS_IMMUTABLE_FL
	appendFlag    = 0x20 // FS_APPEND_FL
)

// mount mounts something for the time of a test.
func mount(t *testing.T, source, target, fstype string, flags uintptr, data string) {
	t.Helper()
	needRoot(t)
	if err := unix.Mount(source, target, fstype, flags, data); err != nil {
		t.Fatalf("cannot mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func TestImmutableFlag(t *testing.T) { // case 40
	needRoot(t)
	f, root := below(t)
	put(t, root+"/etc/dir/motd", "old")
	w := topology.FileWrite{Path: "/etc/dir/motd", Content: []byte("new"), Mode: 0o600}
	for _, tt := range []struct {
		name, path string
		flag       int
		names      string
	}{
		{"on the file", "/etc/dir/motd", immutableFlag, "/etc/dir/motd has the immutable flag"},
		{"append only", "/etc/dir/motd", appendFlag, "append-only flag"},
		{"on the directory", "/etc/dir", immutableFlag, "/etc/dir has the immutable flag"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			setFlags(t, root+tt.path, tt.flag)
			wantCode(t, f.WriteFile(t.Context(), w), topology.CodeImmutable, tt.names, "chattr")
			wantCode(t, f.RemoveFile(t.Context(), w.Path), topology.CodeImmutable, tt.names)
			if tt.path == w.Path {
				wantCode(t, f.SetAttributes(t.Context(), w), topology.CodeImmutable, tt.names)
			} else {
				below := topology.FileWrite{Path: tt.path + "/sub/x", Mode: 0o600}
				wantCode(t, f.WriteFile(t.Context(), below), topology.CodeImmutable, tt.names)
			}
			if got, _ := os.ReadFile(root + w.Path); string(got) != "old" {
				t.Errorf("content is %q", got)
			}
			wantNoTemp(t, root+"/etc/dir")
		})
	}
}

func setFlags(t *testing.T, p string, flags int) {
	t.Helper()
	set := func(flags int) error {
		d, err := os.Open(p)
		if err != nil {
			return err
		}
		defer d.Close()
		return unix.IoctlSetPointerInt(int(d.Fd()), unix.FS_IOC_SETFLAGS, flags)
	}
	if err := set(flags); err != nil {
		t.Fatalf("cannot set flags of %s: %v", p, err)
	}
	t.Cleanup(func() {
		if err := set(0); err != nil {
			t.Error(err)
		}
	})
}

func TestMountPoint(t *testing.T) { // case 24
	f, root := below(t)
	put(t, root+"/etc/hosts", "old")
	put(t, root+"/other", "mounted")
	mount(t, root+"/other", root+"/etc/hosts", "", unix.MS_BIND, "")
	w := topology.FileWrite{Path: "/etc/hosts", Content: []byte("new"), Mode: 0o644}
	wantCode(t, f.WriteFile(t.Context(), w), topology.CodeMountPoint, "mount point")
	wantCode(t, f.RemoveFile(t.Context(), w.Path), topology.CodeMountPoint, "mount point")
	if got, _ := os.ReadFile(root + "/etc/hosts"); string(got) != "mounted" {
		t.Errorf("content is %q", got)
	}
	wantNoTemp(t, root+"/etc")
}

func TestFullAndReadOnly(t *testing.T) { // case 43
	f, root := below(t)
	put(t, root+"/small/keep", "")
	mount(t, "tmpfs", root+"/small", "tmpfs", 0, "size=64k")
	put(t, root+"/small/conf", "old")
	w := topology.FileWrite{Path: "/small/conf", Content: bytes.Repeat([]byte("x"), 1<<20), Mode: 0o644, Mark: "a/b"}
	wantCode(t, f.WriteFile(t.Context(), w), topology.CodeNoSpace)
	// Of what is known to be too large not even a part is written, which would fill the disk for all others.
	opened := 0
	large := topology.FileWrite{Path: "/small/conf", Mode: 0o644, Source: &topology.Source{SHA256: strings.Repeat("0", 64), Size: 1 << 20,
		Open: func(context.Context) (io.ReadCloser, error) {
			opened++
			return io.NopCloser(io.LimitReader(zeros{}, 1<<20)), nil
		}}}
	if wantCode(t, f.WriteFile(t.Context(), large), topology.CodeNoSpace); opened > 0 {
		t.Error("it was begun")
	}
	wantNoTemp(t, root+"/small")
	if got, _ := os.ReadFile(root + "/small/conf"); string(got) != "old" {
		t.Errorf("content is %q", got)
	}
	w.Content = []byte("fits")
	if err := f.WriteFile(t.Context(), w); err != nil {
		t.Errorf("after the disk was full: %v", err)
	}
	if err := unix.Mount("", root+"/small", "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	wantCode(t, f.WriteFile(t.Context(), w), topology.CodeReadOnly)
	wantCode(t, f.RemoveFile(t.Context(), w.Path), topology.CodeReadOnly)
	w.Mode = 0o600
	wantCode(t, f.SetAttributes(t.Context(), w), topology.CodeReadOnly)
}

func TestExtendedAttributesAreKept(t *testing.T) { // case 37
	needRoot(t)
	f, root := below(t)
	put(t, root+"/bin/tool", "old")
	capability := []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} // cap_net_bind_service=ep
	acl := []byte{2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 232, 3, 0, 0,
		4, 0, 4, 0, 255, 255, 255, 255, 16, 0, 4, 0, 255, 255, 255, 255, 32, 0, 4, 0, 255, 255, 255, 255} // u:1000:r
	attrs := map[string][]byte{"security.capability": capability, "system.posix_acl_access": acl, "user.note": []byte("n")}
	for name, value := range attrs {
		if err := unix.Setxattr(root+"/bin/tool", name, value, 0); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	w := topology.FileWrite{Path: "/bin/tool", Content: []byte("new"), Mode: 0o644, Owner: "root", Mark: "a/b"}
	for range 2 {
		if err := f.WriteFile(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range attrs {
		got := make([]byte, 256)
		n, err := unix.Getxattr(root+"/bin/tool", name, got)
		if err != nil || !bytes.Equal(got[:n], want) {
			t.Errorf("%s: %x (%v), want %x", name, got[:max(n, 0)], err, want)
		}
	}
	if st, err := f.File(t.Context(), "/bin/tool"); err != nil || st.Mark != "a/b" || st.Mode != 0o644 {
		t.Errorf("%+v, %v", st, err)
	}
}

func TestFileSystemWithoutMarks(t *testing.T) {
	f, root := below(t)
	dir := root + "/proclike"
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// ramfs has no extended attributes.
	mount(t, "ramfs", dir, "ramfs", 0, "")
	w := topology.FileWrite{Path: "/proclike/x", Content: []byte("x"), Mode: 0o640, Owner: "kiosk", Group: "kiosk", Mark: "a/b"}
	for range 2 {
		if err := f.WriteFile(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		if err := f.SetAttributes(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	st, err := f.File(t.Context(), w.Path)
	if err != nil || st.Mark != "" || st.Mode != 0o640 || st.Owner != "kiosk" {
		t.Errorf("%+v, %v", st, err)
	}
}

// This kernel may have no vfat, so an ordinary file system plays it: what it refuses an
// ordinary user, vfat refuses root.
func TestFileSystemWithoutOwners(t *testing.T) { // case 25
	needRoot(t)
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 1234, 1234); err != nil {
		t.Fatal(err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	ownerlessFS[int64(fs.Type)] = "vfat"
	defer delete(ownerlessFS, int64(fs.Type))
	asUser(t, 1234, func() error {
		d, err := Open(t.Context(), Options{Root: dir})
		if err != nil {
			return err
		}
		defer d.Close()
		w := topology.FileWrite{Path: "/config.txt", Content: []byte("old"), Mode: 0o644}
		if err := d.files.WriteFile(t.Context(), w); err != nil { // what it gives every file may be asked for
			return err
		}
		w.Content, w.Owner = []byte("new"), "0"
		for _, err := range []error{d.files.WriteFile(t.Context(), w), d.files.SetAttributes(t.Context(), w)} {
			if f := topology.FaultOf(err); f.Code != topology.CodeNotSupported || !strings.Contains(f.Text, "vfat") {
				return fmt.Errorf("%s: %s", f.Code, f.Text)
			}
		}
		return nil
	})
	if got, _ := os.ReadFile(dir + "/config.txt"); string(got) != "old" {
		t.Errorf("content is %q", got)
	}
	wantNoTemp(t, dir)
}

func TestSweepTemp(t *testing.T) { // case 27
	root := t.TempDir()
	d, err := Open(t.Context(), Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	left := ".continuo-ABCDEFGHIJKLMNOP-7"
	put(t, root+"/etc/"+left, "half")
	put(t, root+"/etc/.continuo-mine", "not ours")
	put(t, root+"/other/"+left, "not asked for")
	removed, err := d.SweepTemp(t.Context(), []string{"/etc", "/absent"})
	if err != nil || len(removed) != 1 || removed[0] != "/etc/"+left {
		t.Errorf("removed %v, %v", removed, err)
	}
	for _, p := range []string{"/etc/.continuo-mine", "/other/" + left} {
		if _, err := os.Lstat(filepath.Join(root, p)); err != nil {
			t.Error(err)
		}
	}
}

func TestBelowRootNothingRuns(t *testing.T) { // X29
	d, err := Open(t.Context(), Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, err = d.Services().Service(t.Context(), "ssh.service")
	wantCode(t, err, topology.CodeUnavailable, "no meaning below --root")
	wantCode(t, d.Services().Define(t.Context(), topology.Definition{Unit: "x.service"}), topology.CodeUnavailable)
	wantCode(t, d.Services().Start(t.Context(), "x.service", true), topology.CodeUnavailable)
	_, err = d.Containers().Container(t.Context(), "web")
	wantCode(t, err, topology.CodeUnavailable)
	_, err = d.Containers().EnsureImage(t.Context(), topology.ImageRequest{Image: "localhost/x:1"})
	wantCode(t, err, topology.CodeUnavailable)
	wantCode(t, d.Containers().Run(t.Context(), topology.ContainerConfig{Name: "web", Mark: "a/b"}), topology.CodeUnavailable)
	_, err = d.Host().Hostname(t.Context())
	wantCode(t, err, topology.CodeUnavailable)
}

func TestNoBus(t *testing.T) { // X29
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+t.TempDir()+"/none")
	d, err := Open(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, err = d.Services().Service(t.Context(), "ssh.service")
	wantCode(t, err, topology.CodeUnavailable, "no system bus")
	_, err = d.Containers().Container(t.Context(), "web")
	wantCode(t, err, topology.CodeUnavailable, "no system bus")
	_, err = d.Host().Hostname(t.Context())
	wantCode(t, err, topology.CodeUnavailable, "no system bus")
	if st, err := d.Files().File(t.Context(), "/etc/passwd"); err != nil || st.Type != topology.Regular {
		t.Errorf("files: %+v, %v", st, err)
	}
}
