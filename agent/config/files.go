package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// CheckFiles looks at the files that prove who the device is: a secret that others can read is none, and one that others
// can exchange makes another device of this one. Who can write the trust root is whom the device trusts.
func (c Config) CheckFiles() error {
	for _, f := range []struct {
		what, path string
		others     fs.FileMode
	}{{"credential file", c.Credentials.File, 0o077}, {"key of the TLS certificate", c.TLS.Key, 0o077}, {"trust root", c.Trust.Root, 0o022}} {
		if f.path == "" {
			continue
		}
		if err := checkFile(f.path, f.others); err != nil {
			return fmt.Errorf("cannot use the %s %s: %w", f.what, f.path, err)
		}
	}
	return nil
}

// CheckFile looks at the file that holds a configuration: who can write it, or exchange it, is whom the device trusts.
// One that is not there is left to who reads it, and a pipe is of who gave it.
func CheckFile(path string) error {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	if err := checkFile(path, 0o022); err != nil {
		return fmt.Errorf("cannot use the configuration %s: %w", path, err)
	}
	return nil
}

// checkFile says why a file, or a directory on the way to it, is not in the hands of root and of who runs the agent
// alone. The bits in others are what nobody else may have of the file.
func checkFile(path string, others fs.FileMode) error {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("it is not there")
	}
	if err != nil {
		return reason(err)
	}
	if real, err = filepath.Abs(real); err != nil {
		return err
	}
	st, err := os.Stat(real)
	if err != nil {
		return reason(err)
	}
	mode := st.Mode().Perm()
	switch uid, ok := owner(st); {
	case !st.Mode().IsRegular():
		return errors.New("it is not a regular file")
	case !ok:
		return fmt.Errorf("it belongs to the user %d; run chown root %s", uid, real)
	case mode&others&0o044 != 0:
		return fmt.Errorf("its mode is %04o and others may read it; run chmod 0600 %s", mode, real)
	case mode&others != 0:
		return fmt.Errorf("its mode is %04o and others may write it; run chmod %04o %s", mode, mode&^others, real)
	}
	for dir := filepath.Dir(real); ; dir = filepath.Dir(dir) {
		st, err := os.Stat(dir)
		if err != nil {
			return reason(err)
		}
		wide := fs.FileMode(0o022)
		if os.Geteuid() != 0 {
			wide = 0o002 // where each user has a group of his own, his directories are often open to it
		}
		if st.Mode()&fs.ModeSticky != 0 {
			wide = 0 // others may make files there, and not exchange this one
		}
		switch uid, ok := owner(st); {
		case !ok:
			return fmt.Errorf("its directory %s belongs to the user %d, who can exchange it; run chown root %[1]s", dir, uid)
		case st.Mode().Perm()&wide != 0:
			return fmt.Errorf("its directory %s has mode %04o, and others can exchange it; run chmod go-w %[1]s", dir, st.Mode().Perm())
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// owner reports whether a file belongs to root or to who runs the agent.
func owner(st fs.FileInfo) (uid uint32, ok bool) {
	sys, known := st.Sys().(*syscall.Stat_t)
	if !known {
		return 0, true
	}
	return sys.Uid, sys.Uid == 0 || int(sys.Uid) == os.Geteuid()
}

// reason is an error without the path in it, which is told beside it.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
