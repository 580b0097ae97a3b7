package atomicfile

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Symlink puts a symbolic link to target at name in dir, at one moment. If fresh is true, the
// name must be free; otherwise a link to old must be there, and nothing else is ever replaced:
// what has come in between stays, and the error is [os.ErrExist]. The caller calls [SyncDir].
func Symlink(dir *os.File, name, target, old string, fresh bool) error {
	if err := checkName(name); err != nil {
		return err
	}
	defer runtime.KeepAlive(dir)
	fd, temp := int(dir.Fd()), tempName()
	if err := retry(func() error { return unix.Symlinkat(target, fd, temp) }); err != nil {
		return fail("make a link for", name, "", err)
	}
	move := func(flags uint) error {
		return retry(func() error { return unix.Renameat2(fd, temp, fd, name, flags) })
	}
	err := error(nil)
	if fresh {
		err = move(unix.RENAME_NOREPLACE)
	} else if err = move(unix.RENAME_EXCHANGE); err == nil { // now temp is what was there
		buf := make([]byte, 4097)
		n, rerr := unix.Readlinkat(fd, temp, buf)
		if rerr != nil || string(buf[:n]) != old {
			if err := move(unix.RENAME_EXCHANGE); err != nil { // then temp is somebody's, and stays
				return fail("put", name, "back: it is now "+temp, err)
			}
			err = fmt.Errorf("%w: it was changed just now", os.ErrExist)
		}
	}
	if uerr := unix.Unlinkat(fd, temp, 0); err == nil && uerr != nil && uerr != unix.ENOENT {
		err = uerr
	}
	if err != nil {
		return fail("put", name, "in place", err)
	}
	return nil
}
