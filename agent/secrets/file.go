package secrets

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// maxFile is the most bytes of one file, and so of one secret: systemd takes no larger
// credentials.
const maxFile = 1 << 20

// readFile reads a file that holds secrets. Its error is fs.ErrNotExist if it is not there,
// and else says for people why it cannot be used. The caller clears the bytes.
func readFile(path string) ([]byte, error) {
	for try := 0; ; try++ {
		b, whole, err := readOnce(path)
		if err != nil || whole {
			return b, err
		}
		clear(b)
		if try == 2 {
			return nil, errors.New("it is changed all the time")
		}
	}
}

// readOnce reports whether nobody changed the file meanwhile.
func readOnce(path string) (b []byte, whole bool, err error) {
	f, err := open(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	var before, after unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &before); err != nil {
		return nil, false, err
	}
	if err := usable(&before, path); err != nil {
		return nil, false, err
	}
	b = make([]byte, before.Size+1)
	n, err := io.ReadFull(f, b)
	if err == nil || !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		clear(b)
		if err == nil { // it grew
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("it cannot be read: %w", reason(err))
	}
	if err := unix.Fstat(int(f.Fd()), &after); err != nil {
		clear(b)
		return nil, false, err
	}
	same := int64(n) == before.Size && after.Size == before.Size && after.Mtim == before.Mtim && after.Ctim == before.Ctim
	return b[:n], same, nil
}

// open follows no link, at no place of the path, and does not wait for the other end of a pipe.
func open(path string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // an old kernel, or a filter of system calls
		fd, err = unix.Open(path, flags, 0)
	}
	switch {
	case err == nil:
		return os.NewFile(uintptr(fd), path), nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fs.ErrNotExist
	case errors.Is(err, unix.ELOOP):
		return nil, errors.New("a symbolic link is on the way to it: name the file itself")
	}
	return nil, fmt.Errorf("it cannot be opened: %w", err)
}

// usable says why what was opened cannot hold secrets.
func usable(st *unix.Stat_t, path string) error {
	mode := st.Mode & 0o7777
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return errors.New("it is no regular file")
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Errorf("it belongs to the user %d; run chown root %s", st.Uid, path)
	case mode&^0o600 != 0:
		return fmt.Errorf("its mode is %04o and must be 0600: others may have read it, so think of new values; run chmod 0600 %s", mode, path)
	case st.Size > maxFile:
		return fmt.Errorf("it has %d bytes, and more than %d are no secret", st.Size, maxFile)
	}
	return nil
}

// reason is an error without the path in it, which is told beside it.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
