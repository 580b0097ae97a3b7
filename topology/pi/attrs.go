package pi

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/internal/atomicfile"
	"github.com/continuo-fleet/continuo/topology"
)

// checkFlags refuses a file that a rename cannot replace: before anything temporary is
// made, and in words that say why.
func checkFlags(fd int, p string) error {
	var sx unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE, &sx); err != nil {
		return nil // before Linux 4.11: the rename will tell
	}
	set := sx.Attributes & sx.Attributes_mask
	switch {
	case set&unix.STATX_ATTR_MOUNT_ROOT != 0:
		return unix.EBUSY
	case set&unix.STATX_ATTR_IMMUTABLE != 0:
		return topology.Faultf(topology.CodeImmutable, "%s has the immutable flag (i); it is not cleared for you: chattr -i %s", p, p)
	case set&unix.STATX_ATTR_APPEND != 0:
		return topology.Faultf(topology.CodeImmutable, "%s has the append-only flag (a), so it is immutable for us; it is not cleared for you: chattr -a %s", p, p)
	}
	return nil
}

// blame finds the flag behind a refusal of the kernel: on p, or on the directory
// nearest to it.
func (f *files) blame(err error, p string) error {
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return err
	}
	for ; ; p = path.Dir(p) {
		fd, oerr := f.tree.open(p, unix.O_PATH|unix.O_NOFOLLOW)
		if oerr == unix.ENOENT && p != "/" {
			continue
		}
		if oerr != nil {
			return err
		}
		flag := checkFlags(fd, p)
		dir := node{fd: fd}
		serr := unix.Fstat(fd, &dir.stat)
		_ = unix.Close(fd)
		if flag, ok := errors.AsType[*topology.Fault](flag); ok {
			return flag
		}
		if serr != nil || dir.kind() == topology.Directory || p == "/" {
			return err
		}
	}
}

// keepAttrs returns the extended attributes of n that its successor shall have: access
// control lists, capabilities, labels and those of users, but not our mark.
func (f *files) keepAttrs(n node, p string) (map[string][]byte, error) {
	fd, err := f.content(n, p)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var few [256]byte
	list := few[:]
	size, err := unix.Flistxattr(fd, list)
	if err == unix.ERANGE {
		list = make([]byte, 64<<10)
		size, err = unix.Flistxattr(fd, list)
	}
	if err == unix.EOPNOTSUPP || size == 0 && err == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var kept map[string][]byte
	for name := range bytes.SplitSeq(bytes.TrimSuffix(list[:size], []byte{0}), []byte{0}) {
		attr := string(name)
		// Signatures over the old content are worthless for the new one.
		if attr == markAttr || attr == "security.ima" || attr == "security.evm" || strings.HasPrefix(attr, "trusted.overlay.") {
			continue
		}
		value := make([]byte, 64<<10)
		size, err := unix.Fgetxattr(fd, attr, value)
		if err == unix.ENODATA || err == unix.EOPNOTSUPP {
			continue
		}
		if err != nil {
			return nil, err
		}
		if kept == nil {
			kept = map[string][]byte{}
		}
		kept[attr] = bytes.Clone(value[:size])
	}
	return kept, nil
}

// hasUserAttrs reports whether files in the directory dir can carry a mark.
func hasUserAttrs(dir int) bool {
	_, err := unix.Fgetxattr(dir, markAttr, nil)
	return err != unix.EOPNOTSUPP
}

// setMark sets the mark of a file, if it is another one and the file system has marks.
func setMark(fd int, mark topology.Mark) error {
	var buf [512]byte
	n, err := unix.Fgetxattr(fd, markAttr, buf[:])
	switch {
	case err == unix.EOPNOTSUPP, err == unix.ENODATA && mark == "", err == nil && string(buf[:n]) == string(mark) && mark != "":
		return nil
	case mark == "":
		return unix.Fremovexattr(fd, markAttr)
	}
	return unix.Fsetxattr(fd, markAttr, []byte(mark), 0)
}

// File systems without owners and modes of their own.
var ownerlessFS = map[int64]string{
	unix.MSDOS_SUPER_MAGIC: "vfat", unix.EXFAT_SUPER_MAGIC: "exfat", 0x7366746e: "ntfs", 0x5346544e: "ntfs",
}

// ownerless tells a refusal of the file system from one of the kernel.
func ownerless(fd int, err error) error {
	var fs unix.Statfs_t
	if err != unix.EPERM || unix.Fstatfs(fd, &fs) != nil {
		return err
	}
	if name, ok := ownerlessFS[int64(fs.Type)]; ok {
		return topology.Faultf(topology.CodeNotSupported, "%s cannot hold this owner or mode; give those that the mount options give every file", name)
	}
	return err
}

// checkOwnerless finds out, on a file system without owners, whether it would give a file
// the wanted owner and mode by itself: such file systems ignore chmod without a word.
func checkOwnerless(dir *os.File, want atomicfile.File) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &fs); err != nil {
		return nil
	}
	name, ok := ownerlessFS[int64(fs.Type)]
	if !ok {
		return nil
	}
	probe := atomicfile.TempPrefix + rand.Text()[:16] + "-0" // swept like any other left-over
	fd, err := unix.Openat(int(dir.Fd()), probe, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Unlinkat(int(dir.Fd()), probe, 0)
	defer unix.Close(fd)
	err = nil
	if want.SetOwner {
		err = unix.Fchown(fd, want.UID, want.GID)
	}
	if err == nil {
		err = unix.Fchmod(fd, want.Mode)
	}
	if err != nil {
		return ownerless(fd, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&0o7777 != want.Mode {
		return topology.Faultf(topology.CodeNotSupported, "%s gives this file the mode %04o and cannot hold %04o", name, st.Mode&0o7777, want.Mode)
	}
	return nil
}
