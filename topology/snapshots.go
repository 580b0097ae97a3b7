package topology

import "context"

// A Snapshot reads many things of a file system that belong together, without changing any. What it
// returned counts only if Settle then finds all of it unchanged: until then a file may be from before a
// change, and another one from after it. No link is followed, on the way or at the end. It is for one
// goroutine, and for one Settle.
type Snapshot interface {
	// Look returns what is at path, which is absolute and clean, without reading it: SHA256 and Mark are
	// left out. What is not there is the type Absent, not an error. A link on the way is a fault,
	// CodeSymlink.
	Look(ctx context.Context, path string) (FileState, error)

	// Content returns the bytes of a regular file of at most limit bytes, as FileReader does.
	Content(ctx context.Context, path string, limit int64) ([]byte, error)

	// Entries names what is in a directory, as FileReader does.
	Entries(ctx context.Context, path string, limit int) (names []string, more int, err error)

	// Settle looks at everything once more. What is another thing than before, has another content,
	// other rights or another owner, is a fault, CodeChanged, that names it. A directory that Entries did
	// not list may have got other entries. If nothing has changed, everything was as it was returned at
	// one time: when Settle was called.
	Settle(ctx context.Context) error
}

// Snapshots take snapshots.
type Snapshots interface {
	// Snapshot begins one.
	Snapshot() Snapshot
}

// HasSnapshots is implemented by topologies whose files can be read together.
type HasSnapshots interface{ Snapshots() Snapshots }
