package pi

import (
	"errors"
	"os"
	"path"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// A tree opens files below a handle of its root. It follows no link, on the way or at
// the end, so nobody can lead it elsewhere by swapping a component. Paths are absolute
// and clean; the text before the root of the tree is no part of them.
type tree struct {
	root      int // handle of the root directory
	proc      int // handle of /proc/self/fd, or -1
	noOpenat2 atomic.Bool
}

func openTree(root string) (*tree, error) {
	if root == "" {
		root = "/"
	}
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: root, Err: err}
	}
	proc, err := unix.Open("/proc/self/fd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		proc = -1
	}
	return &tree{root: fd, proc: proc}, nil
}

func (t *tree) close() error {
	if t.proc >= 0 {
		_ = unix.Close(t.proc)
	}
	return unix.Close(t.root)
}

// checkPath refuses what is no path.
func checkPath(p string) error {
	if !strings.HasPrefix(p, "/") || path.Clean(p) != p || strings.IndexByte(p, 0) >= 0 {
		return topology.Faultf(topology.CodeInvalid, "%q is not an absolute, clean path", p)
	}
	return nil
}

// checkTarget refuses what cannot be the path of a file.
func checkTarget(p string) error {
	if p == "/" {
		return topology.Faultf(topology.CodeNotRegular, "/ is a directory, not a regular file")
	}
	return checkPath(p)
}

// open opens what is at p. A link on the way is ELOOP; with O_PATH|O_NOFOLLOW a link at
// the end is opened itself.
func (t *tree) open(p string, flags int) (int, error) {
	rel := p[1:]
	if rel == "" {
		rel = "."
	}
	flags |= unix.O_CLOEXEC
	if !t.noOpenat2.Load() {
		how := unix.OpenHow{
			Flags:   uint64(flags),
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		}
		for {
			fd, err := unix.Openat2(t.root, rel, &how)
			switch err {
			case unix.EINTR, unix.EAGAIN: // EAGAIN: something was renamed meanwhile
				continue
			case unix.ENOSYS: // before Linux 5.6, or filtered away
				t.noOpenat2.Store(true)
			default:
				return fd, err
			}
			break
		}
	}
	return t.walk(rel, flags)
}

// walk is open for kernels without openat2: one component after the other.
func (t *tree) walk(rel string, flags int) (int, error) {
	at := t.root
	for {
		name, rest, more := strings.Cut(rel, "/")
		f := flags | unix.O_NOFOLLOW
		if more {
			f = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
		}
		fd, err := openat(at, name, f)
		if err == unix.ENOTDIR && isLink(at, name) {
			err = unix.ELOOP
		}
		if at != t.root {
			_ = unix.Close(at)
		}
		if err != nil || !more {
			return fd, err
		}
		at, rel = fd, rest
	}
}

// reopen opens the regular file behind an O_PATH handle: the very same inode, whatever
// its name leads to by now.
func (t *tree) reopen(fd, flags int) (int, error) {
	return openat(t.proc, strconv.Itoa(fd), flags|unix.O_CLOEXEC)
}

// link says which component of p is a symbolic link, and where it leads.
func (t *tree) link(p string) (at, target string) {
	for i := 1; i <= len(p); i++ {
		if i < len(p) && p[i] != '/' {
			continue
		}
		fd, err := t.open(p[:i], unix.O_PATH|unix.O_NOFOLLOW)
		if err != nil {
			return "", ""
		}
		target, err := readlink(fd)
		_ = unix.Close(fd)
		if err == nil {
			return p[:i], target
		}
	}
	return "", ""
}

// makeDirs makes the directory p and those above it that are missing, durably, and
// returns a handle of it.
func (t *tree) makeDirs(p string) (int, error) {
	fd, err := t.open(p, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != unix.ENOENT || p == "/" {
		return fd, err
	}
	up, err := t.makeDirs(path.Dir(p))
	if err != nil {
		return -1, err
	}
	defer unix.Close(up)
	name := path.Base(p)
	made := unix.Mkdirat(up, name, 0o755)
	if made != nil && made != unix.EEXIST {
		return -1, made
	}
	fd, err = openat(up, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err == unix.ENOTDIR && isLink(up, name) {
		err = unix.ELOOP
	}
	if err != nil || made == unix.EEXIST {
		return fd, err
	}
	err = unix.Fchmod(fd, 0o755) // whatever the umask
	if err == nil {
		err = fsync(up)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func openat(at int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(at, name, flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func fsync(fd int) error {
	for {
		if err := unix.Fsync(fd); err != unix.EINTR {
			return err
		}
	}
}

func isLink(at int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// readlink returns the target of the link that fd is a handle of.
func readlink(fd int) (string, error) {
	buf := make([]byte, 4096)
	n, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// fault says what could not be done with p, in words that name the obstacle.
func (t *tree) fault(verb, p string, err error) error {
	if _, ok := errors.AsType[*topology.Fault](err); ok {
		return err
	}
	code := topology.FaultOf(err).Code
	switch {
	case errors.Is(err, unix.ELOOP):
		if at, target := t.link(p); at != "" {
			return topology.Faultf(code, "cannot %s %s: %s is a symbolic link to %s; links are not followed: name its target, or remove it", verb, p, at, target)
		}
		return topology.Faultf(code, "cannot %s %s: a symbolic link is on the way; links are not followed", verb, p)
	case errors.Is(err, unix.ENOTDIR):
		return topology.Faultf(code, "cannot %s %s: something on the way to it is not a directory", verb, p)
	case code == topology.CodeMountPoint:
		return topology.Faultf(code, "cannot %s %s: it is a mount point and cannot be replaced; unmount it, or manage the file that is mounted there", verb, p)
	}
	return topology.Faultf(code, "cannot %s %s: %v", verb, p, err)
}
