package store

import "errors"

// FS is the directory that a store lives in. Names are slash separated and
// relative to it. The device's own is [Dir]; [Mem] is for simulators and tests.
//
// A store calls an FS from one goroutine at a time.
type FS interface {
	// Lock makes the directory, with rights for its owner only, and takes it
	// for this process; [ErrLocked] when another one has it. It removes what a
	// killed process left unfinished. Locking again, after Unlock or after
	// Check said that the directory is gone, is allowed.
	Lock() error
	// Unlock gives the directory up.
	Unlock() error
	// Check tells in a few system calls whether the directory that Lock took
	// is still the one at its path.
	Check() error

	// Read returns up to limit bytes of a file, all of it when limit is < 0.
	// An absent file is an error that is fs.ErrNotExist.
	Read(name string, limit int64) ([]byte, error)
	// List returns the names of the files in dir, "" being the directory
	// itself, sorted; an absent directory has none.
	List(dir string) ([]string, error)
	// Replace writes each file as a whole, in order. It is durable when it
	// returns; a power cut before gives the old file or the new one. Missing
	// folders are made.
	Replace(files ...File) error
	// Append opens an existing file for appending.
	Append(name string) (Log, error)
	// Settle makes durable what a reader sees of the names of all files and of
	// the bytes of these: a process killed before a sync leaves more in view
	// than a power cut would. It changes nothing and is cheap when all is safe.
	Settle(names ...string) error
	// Remove removes files durably. An absent file is no error.
	Remove(names ...string) error

	// String is where it is, for messages.
	String() string
}

// File is one file for [FS.Replace].
type File struct {
	Name    string
	Content []byte
}

// Log is a file that grows.
type Log interface {
	Write(p []byte) (int, error)
	// Sync makes everything written durable.
	Sync() error
	// Check tells whether the file is still there under its name.
	Check() error
	Close() error
}

var (
	// ErrLocked says that another process works on the state directory.
	ErrLocked = errors.New("another agent is using it; stop that one first (systemctl stop continuo-agent) or give another state directory")
	// ErrGone says that the state directory or a file of it was removed, or
	// replaced by another one, while the store was open.
	ErrGone = errors.New("removed or replaced while in use")
	// ErrNewer says that the directory was written by a newer version, so
	// that this one reads what it can and alters nothing.
	ErrNewer = errors.New("the state was written by a newer version; run that version, or give another state directory")
	// ErrRegressed says that a generation is below one accepted before.
	ErrRegressed = errors.New("generation regressed")
	// ErrEquivocation says that one generation came with two contents.
	ErrEquivocation = errors.New("same generation, other content")
	// ErrDamaged says that bytes are not the ones that were stored.
	ErrDamaged = errors.New("damaged")
)
