// Package atomicfile replaces one file of a directory as a whole, durably:
// a reader, and a device after a power cut, sees the old file or the new one
// with its final rights, and never a part or a mixture.
//
// The directory is a handle, not a path, so that nobody can redirect a write
// by swapping a parent directory or a link. A caller that must stay below a
// root opens the handle with [os.Root.Open]. The package does not create
// directories, follow links, keep backups, or decide anything; Linux only.
package atomicfile

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// TempPrefix starts the name of every temporary file. It is hidden and has no
// suffix, so that conf.d, cron.d, systemd and kubelet style readers skip it.
const TempPrefix = ".continuo-"

// Temporary names are TempPrefix, a token of this process, "-" and a counter.
// The token lets Sweep spare the files that this process is still writing.
var (
	token   = rand.Text()[:tokenLen]
	counter atomic.Uint64
)

const tokenLen = 16

// File is what a file shall be.
type File struct {
	Content []byte
	Source  io.Reader // instead of Content, read to its end; its error ends the write
	Mode    uint32    // permission bits including setuid, setgid, sticky: 0o7777

	// SetOwner asks for UID and GID. Without it the file belongs to the
	// process, with the group that the directory's rules give.
	SetOwner bool
	UID, GID int

	// Xattrs are set as given, POSIX ACLs and capabilities included.
	Xattrs map[string][]byte

	// NoReplace refuses, with an error that is [os.ErrExist], when the name is
	// already taken at the very moment of the rename.
	NoReplace bool

	// Check is asked right before the rename, when all else is done; its error
	// ends the write. It may be nil.
	Check func() error
}

// Write replaces name in dir by f. It is durable when it returns: data, rights
// and the directory entry are on disk, at the price of two fsyncs. On an error
// the old file is untouched and no temporary file is left, with one exception:
// when only the last step, the sync of the directory, failed, the new file is
// in place but may not survive a power cut.
func Write(dir *os.File, name string, f File) error {
	if err := WriteNoSync(dir, name, f); err != nil {
		return err
	}
	return SyncDir(dir)
}

// WriteNoSync is [Write] without the sync of the directory, for a caller that
// writes several files into one directory and calls [SyncDir] once. Until then
// a power cut gives back the old file, whole.
func WriteNoSync(dir *os.File, name string, f File) error {
	if err := checkName(name); err != nil {
		return err
	}
	defer runtime.KeepAlive(dir) // its descriptor is used bare below
	temp := tempName()
	if err := create(dir, temp, name, f); err != nil {
		return err
	}
	var flags uint
	if f.NoReplace {
		flags = unix.RENAME_NOREPLACE
	}
	fd := int(dir.Fd())
	if f.Check != nil {
		if err := f.Check(); err != nil {
			_ = unix.Unlinkat(fd, temp, 0)
			return err
		}
	}
	err := retry(func() error {
		if flags == 0 {
			return unix.Renameat(fd, temp, fd, name)
		}
		return unix.Renameat2(fd, temp, fd, name, flags)
	})
	if err != nil {
		_ = unix.Unlinkat(fd, temp, 0)
		return fail("put", name, "in place", err)
	}
	return nil
}

func tempName() string { return TempPrefix + token + "-" + strconv.FormatUint(counter.Add(1), 10) }

// SyncDir makes the renames and removals in dir durable.
func SyncDir(dir *os.File) error {
	defer runtime.KeepAlive(dir)
	if err := retry(func() error { return unix.Fsync(int(dir.Fd())) }); err != nil {
		return fmt.Errorf("cannot sync directory %s: %w", dir.Name(), err)
	}
	return nil
}

// create makes the temporary file with everything that f says, flushed.
//
// No name ever grants more than the final rights while it holds content. The
// file starts as 0600 of this process. Owner comes before mode because chown
// clears setuid; what the new owner may not have is taken away before he
// becomes the owner. User attributes need write permission, so they come first;
// all others come after chown, which drops capabilities, and before chmod,
// which fits the mask of an ACL.
func create(dir *os.File, temp, name string, f File) (err error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd := -1
	err = retry(func() (err error) {
		fd, err = unix.Openat(int(dir.Fd()), temp, flags, 0o600)
		return err
	})
	if err != nil {
		return fail("create a temporary file for", name, "", err)
	}
	defer func() {
		if cerr := unix.Close(fd); err == nil && cerr != nil && cerr != unix.EINTR {
			err = fail("close", name, "", cerr)
		}
		if err != nil {
			_ = unix.Unlinkat(int(dir.Fd()), temp, 0)
		}
	}()

	if f.Source == nil {
		err = writeAll(fd, f.Content)
	} else {
		err = pour(fd, f.Source)
	}
	if err != nil {
		return fail("write", name, "", err)
	}
	if err := setXattrs(fd, f.Xattrs, true); err != nil {
		return fail("set extended attributes of", name, "", err)
	}
	if f.SetOwner {
		if f.Mode&0o600 != 0o600 {
			if err := unix.Fchmod(fd, f.Mode&0o600); err != nil {
				return fail("set mode of", name, "", err)
			}
		}
		if err := unix.Fchown(fd, f.UID, f.GID); err != nil {
			return fail("set owner of", name, "", err)
		}
	}
	if err := setXattrs(fd, f.Xattrs, false); err != nil {
		return fail("set extended attributes of", name, "", err)
	}
	if err := unix.Fchmod(fd, f.Mode&0o7777); err != nil {
		return fail("set mode of", name, "", err)
	}
	if err := retry(func() error { return unix.Fsync(fd) }); err != nil {
		return fail("sync", name, "", err)
	}
	return nil
}

// setXattrs sets the user attributes, or all the others, in order of name.
func setXattrs(fd int, attrs map[string][]byte, user bool) error {
	if len(attrs) == 0 {
		return nil
	}
	names := make([]string, 0, len(attrs))
	for name := range attrs {
		if strings.HasPrefix(name, "user.") == user {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if err := unix.Fsetxattr(fd, name, attrs[name], 0); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Sweep removes the temporary files that a killed process left in dir and
// returns their names. It spares the files of the running process, and
// everything that only looks similar. Nobody else may be writing in dir.
func Sweep(dir *os.File) ([]string, error) {
	defer runtime.KeepAlive(dir)
	// A second handle, because reading entries moves the offset of the first.
	fd := -1
	err := retry(func() (err error) {
		fd, err = unix.Openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read directory %s: %w", dir.Name(), err)
	}
	d := os.NewFile(uintptr(fd), dir.Name())
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("cannot read directory %s: %w", dir.Name(), err)
	}
	var removed []string
	for _, name := range names {
		if !leftOver(name) {
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG && st.Mode&unix.S_IFMT != unix.S_IFLNK {
			continue
		}
		if err := unix.Unlinkat(fd, name, 0); err != nil && err != unix.ENOENT {
			return removed, fail("remove the left-over temporary file", name, "", err)
		}
		removed = append(removed, name)
	}
	if len(removed) > 0 {
		return removed, SyncDir(dir)
	}
	return nil, nil
}

// leftOver tells whether name is a temporary name of another process.
func leftOver(name string) bool {
	owner, ok := tempOwner(name)
	return ok && owner != token
}

// IsTemp tells whether name is the name of a temporary file of this package,
// for those who list or watch directories.
func IsTemp(name string) bool {
	_, ok := tempOwner(name)
	return ok
}

func tempOwner(name string) (string, bool) {
	rest, ok := strings.CutPrefix(name, TempPrefix)
	if !ok {
		return "", false
	}
	owner, count, ok := strings.Cut(rest, "-")
	if !ok || len(owner) != tokenLen || strings.Trim(owner, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return "", false
	}
	if count == "" || strings.Trim(count, "0123456789") != "" {
		return "", false
	}
	return owner, true
}

func writeAll(fd int, rest []byte) error {
	for len(rest) > 0 {
		var n int
		err := retry(func() (err error) { n, err = unix.Write(fd, rest); return err })
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// pour writes all that a reader gives.
func pour(fd int, from io.Reader) error {
	buf := make([]byte, 128<<10)
	for {
		n, rerr := from.Read(buf)
		if err := writeAll(fd, buf[:n]); err != nil {
			return err
		}
		if rerr == io.EOF {
			return nil
		}
		if rerr != nil {
			return rerr
		}
	}
}

func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("cannot write %q: not the name of a file", name)
	}
	return nil
}

// retry repeats a system call that a signal interrupted; the runtime's own
// preemption signals make that ordinary on slow file systems.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

func fail(verb, name, tail string, err error) error {
	if tail != "" {
		tail = " " + tail
	}
	return fmt.Errorf("cannot %s %q%s: %w", verb, name, tail, err)
}
