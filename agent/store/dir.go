package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/continuo-fleet/continuo/internal/atomicfile"
)

// folders are all that a state directory has.
var folders = []string{".", intentFolder, backupFolder, goodFolder, receiptFolder, askedFolder, "v1", "v1/" + intentFolder}

// maxFile bounds what is read of one file, so that a sparse or foreign file
// cannot take all memory.
const maxFile = 256 << 20

// dirFS is a directory of the operating system, held by handles.
type dirFS struct {
	path string
	root *os.Root
	dir  *os.File // the same directory: locked, synced
}

// Dir is the directory at path. Its lock is on the directory itself and ends
// with the process, however it ends.
func Dir(path string) FS { return &dirFS{path: path} }

var _ FS = (*dirFS)(nil)

func (d *dirFS) String() string { return d.path }

func (d *dirFS) Lock() error {
	if err := d.Unlock(); err != nil {
		return err
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return fmt.Errorf("cannot create state directory: %w", err)
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return fmt.Errorf("cannot open state directory: %w", err)
	}
	dir, err := root.Open(".")
	if err != nil {
		root.Close()
		return fmt.Errorf("cannot open state directory: %w", err)
	}
	d.root, d.dir = root, dir
	if err := d.take(); err != nil {
		_ = d.Unlock()
		return err
	}
	return nil
}

func (d *dirFS) take() error {
	err := syscall.Flock(int(d.dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("cannot open state directory %s: %w", d.path, ErrLocked)
	}
	if err != nil {
		return fmt.Errorf("cannot lock state directory %s: %w", d.path, err)
	}
	if st, err := d.dir.Stat(); err == nil && st.Mode().Perm()&0o077 != 0 {
		if err := d.checkOurs(); err != nil {
			return err
		}
		if err := d.dir.Chmod(0o700); err != nil && !errors.Is(err, syscall.EROFS) {
			return fmt.Errorf("cannot make state directory %s private: %w", d.path, err)
		}
	}
	for _, folder := range folders {
		f, err := d.root.Open(folder)
		if err != nil {
			continue // not made yet, or unreadable, which reading it will say
		}
		_, err = atomicfile.Sweep(f)
		f.Close()
		if err != nil && !errors.Is(err, syscall.EROFS) {
			return err
		}
	}
	return nil
}

func (d *dirFS) Unlock() error {
	if d.root == nil {
		return nil
	}
	err := errors.Join(d.dir.Close(), d.root.Close())
	d.root, d.dir = nil, nil
	return err
}

func (d *dirFS) Check() error {
	if d.dir == nil {
		return fmt.Errorf("state directory %s: %w", d.path, ErrGone)
	}
	held, err := d.dir.Stat()
	if err != nil {
		return fmt.Errorf("cannot look at state directory: %w", err)
	}
	now, err := os.Stat(d.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(held, now) {
		return fmt.Errorf("state directory %s: %w", d.path, ErrGone)
	}
	if err != nil {
		return fmt.Errorf("cannot look at state directory: %w", err)
	}
	return nil
}

func (d *dirFS) Read(name string, limit int64) ([]byte, error) {
	// Not blocking, should somebody have put a pipe there.
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if st, serr := d.root.Lstat(name); serr == nil && !st.Mode().IsRegular() {
			err = fmt.Errorf("%s: not a file of a store: %w", name, ErrDamaged) // a link that leads out
		}
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxFile {
		return nil, fmt.Errorf("%s: not a file of a store: %w", name, ErrDamaged)
	}
	size := st.Size()
	if limit >= 0 {
		size = min(size, limit)
	}
	buf := make([]byte, size)
	n, err := io.ReadFull(f, buf)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return buf[:n], err
}

func (d *dirFS) List(folder string) ([]string, error) {
	f, err := d.root.Open(path.Clean("./" + folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

func (d *dirFS) Replace(files ...File) error {
	var folder *os.File
	at := ""
	done := func() error {
		if folder == nil {
			return nil
		}
		err := atomicfile.SyncDir(folder)
		folder.Close()
		folder = nil
		return err
	}
	for _, f := range files {
		dir, name := path.Split(f.Name)
		if folder == nil || dir != at {
			if err := done(); err != nil {
				return err
			}
			var err error
			if folder, err = d.folder(dir); err != nil {
				return err
			}
			at = dir
		}
		if err := atomicfile.WriteNoSync(folder, name, atomicfile.File{Content: f.Content, Mode: 0o600}); err != nil {
			folder.Close()
			return err
		}
	}
	return done()
}

// folder opens a folder of the directory, made when missing.
func (d *dirFS) folder(dir string) (*os.File, error) {
	name := path.Clean("./" + dir)
	f, err := d.root.Open(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	above, err := d.folder(path.Dir(name))
	if err != nil {
		return nil, err
	}
	defer above.Close()
	if err := d.root.Mkdir(name, 0o700); err != nil {
		return nil, err
	}
	if err := atomicfile.SyncDir(above); err != nil {
		return nil, err
	}
	return d.root.Open(name)
}

func (d *dirFS) Append(name string) (Log, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return dirLog{f, int(f.Fd())}, nil
}

func (d *dirFS) Settle(names ...string) error {
	for _, name := range names {
		f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = dirLog{f, int(f.Fd())}.Sync()
		f.Close()
		if err != nil {
			return err
		}
	}
	for _, folder := range folders {
		f, err := d.root.Open(folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = atomicfile.SyncDir(f)
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *dirFS) Remove(names ...string) error {
	for _, name := range names {
		err := d.root.Remove(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		folder, err := d.root.Open(path.Dir(name))
		if err != nil {
			return err
		}
		err = atomicfile.SyncDir(folder)
		folder.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

type dirLog struct {
	*os.File
	fd int // asked for once
}

// Sync skips the flush of timestamps; size and data are flushed.
func (l dirLog) Sync() error {
	for {
		err := syscall.Fdatasync(l.fd)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot sync %s: %w", l.Name(), err)
		}
		return nil
	}
}

func (l dirLog) Check() error {
	st, err := l.Stat()
	if err != nil {
		return err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && sys.Nlink == 0 {
		return fmt.Errorf("%s: %w", l.Name(), ErrGone)
	}
	return nil
}
