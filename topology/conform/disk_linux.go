package conform

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// Disk is FileHands on the files of the machine that the test runs on. It cannot start
// programs: whoever may embeds it and brings Run.
type Disk struct{ T *testing.T }

var _ FileHands = Disk{}

// unsupported turns what a file system or a sandbox does not allow into what a suite skips.
func unsupported(what string, err error) error {
	for _, e := range []error{syscall.EPERM, syscall.EACCES, syscall.EOPNOTSUPP, syscall.ENOTTY, syscall.ENOSYS, syscall.ENODEV} {
		if errors.Is(err, e) {
			return fmt.Errorf("%s: %v: %w", what, err, errors.ErrUnsupported)
		}
	}
	return err
}

func (Disk) Put(path, content string, mode uint32) error {
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return err
	}
	return os.Chmod(path, os.FileMode(mode))
}

func (Disk) Read(path string) (string, error) {
	b, err := os.ReadFile(path)
	return string(b), err
}

func (Disk) List(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (Disk) Identity(path string) (string, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(fi.Sys().(*syscall.Stat_t).Ino, fi.ModTime().UnixNano()), nil
}

func (Disk) Symlink(target, path string) error { return os.Symlink(target, path) }
func (Disk) Directory(path string) error       { return os.Mkdir(path, 0o755) }
func (Disk) Pipe(path string) error            { return syscall.Mkfifo(path, 0o644) }
func (Disk) Link(path, another string) error   { return os.Link(path, another) }

// Immutable sets the flag as chattr does.
func (Disk) Immutable(path string, on bool) error {
	const size, immutable = unsafe.Sizeof(uintptr(0)), 0x10
	get, set := uintptr(2<<30|size<<16|'f'<<8|1), uintptr(1<<30|size<<16|'f'<<8|2)
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var flags uintptr
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), get, uintptr(unsafe.Pointer(&flags))); e != 0 {
		return unsupported("chattr", e)
	}
	flags &^= immutable
	if on {
		flags |= immutable
	}
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), set, uintptr(unsafe.Pointer(&flags))); e != 0 {
		return unsupported("chattr", e)
	}
	return nil
}

func (Disk) MountPoint(path string, on bool) error {
	if on {
		return unsupported("mount", syscall.Mount(path, path, "", syscall.MS_BIND, ""))
	}
	return syscall.Unmount(path, syscall.MNT_DETACH)
}

const aclAttr = "system.posix_acl_access"

// SetACL lets user 65534 read the file, and sets an attribute of a user.
func (Disk) SetACL(path string) error {
	acl := binary.LittleEndian.AppendUint32(nil, 2) // version
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{1, 6, ^uint32(0)}, {2, 4, 65534}, {4, 4, ^uint32(0)}, {0x10, 4, ^uint32(0)}, {0x20, 4, ^uint32(0)}} {
		acl = binary.LittleEndian.AppendUint16(acl, e.tag)
		acl = binary.LittleEndian.AppendUint16(acl, e.perm)
		acl = binary.LittleEndian.AppendUint32(acl, e.id)
	}
	if err := syscall.Setxattr(path, aclAttr, acl, 0); err != nil {
		return unsupported("access control lists", err)
	}
	return unsupported("extended attributes", syscall.Setxattr(path, "user.conform", []byte("kept"), 0))
}

func (Disk) ACL(path string) (string, error) {
	var out []string
	for _, name := range []string{aclAttr, "user.conform"} {
		b := make([]byte, 1024)
		n, err := syscall.Getxattr(path, name, b)
		if errors.Is(err, syscall.ENODATA) {
			continue
		}
		if err != nil {
			return "", err
		}
		out = append(out, fmt.Sprintf("%s=%x", name, b[:n]))
	}
	return strings.Join(out, " "), nil
}

func (Disk) Run(string) (func(), error) {
	return nil, fmt.Errorf("starting a program: %w", errors.ErrUnsupported)
}

// Limited mounts a small file system in memory.
func (d Disk) Limited(limit string) (string, func(), error) {
	if limit == "no-owners" {
		return "", nil, fmt.Errorf("a file system without owners: %w", errors.ErrUnsupported)
	}
	dir := d.T.TempDir()
	if err := syscall.Mount("conform", dir, "tmpfs", 0, "size=64k"); err != nil {
		return "", nil, unsupported("mount", err)
	}
	undo := func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }
	if err := d.Put(filepath.Join(dir, "there"), "old", 0o644); err != nil {
		undo()
		return "", nil, err
	}
	if limit == "read-only" {
		if err := syscall.Mount("conform", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			undo()
			return "", nil, unsupported("mount", err)
		}
	}
	return dir, undo, nil // 64 KiB are full as soon as something larger is written
}

// SetModified makes the content of a file older, or newer than it can be.
func (Disk) SetModified(path string, at time.Time) error { return os.Chtimes(path, at, at) }
