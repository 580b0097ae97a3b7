package topology

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
)

// A FileType says what is at a path.
type FileType string

// File types.
const (
	Absent    FileType = "absent"
	Regular   FileType = "regular"
	Directory FileType = "directory"
	Symlink   FileType = "symlink"
	Special   FileType = "special" // a pipe, a socket or a device node
)

// A Sum is the sha256 of what a file holds, in lower-case hex. It is for comparing on the device: short contents can be
// guessed from it, so that what leaves the device, or is written down on it, has what interpret.Teller makes of a Sum.
type Sum string

// SumOf returns the Sum of a content.
func SumOf(content []byte) Sum {
	sum := sha256.Sum256(content)
	return Sum(hex.EncodeToString(sum[:]))
}

// String keeps a Sum out of messages.
func (Sum) String() string { return "(a digest that is not told)" }

// MarshalText keeps a Sum out of documents.
func (Sum) MarshalText() ([]byte, error) {
	return nil, errors.New("the digest of a content is not told: see interpret.Teller")
}

// FileState is what is at a path. The links on the way to it are not followed.
type FileState struct {
	Type   FileType
	Size   int64
	SHA256 Sum    // of a regular file; empty if it is larger than 64 MiB: see Digest
	Mode   uint32 // permission, setuid, setgid and sticky bits
	UID    uint32
	GID    uint32
	Owner  string // name of the user, or its number if it has none
	Group  string // name of the group, or its number if it has none
	Links  uint64 // hard links
	Target string // of a symbolic link
	Mark   Mark   // of a regular file or a directory
}

// FileReader observes files.
type FileReader interface {
	// File returns what is at path, which is absolute and clean. A thing that is not
	// there is the type Absent, not an error. It never blocks on pipes and never opens
	// devices. A link on the way to the file is a fault, CodeSymlink.
	File(ctx context.Context, path string) (FileState, error)

	// Resolve returns where path leads when links are followed, as a container runtime does, a
	// part that is not there included. It may lead elsewhere a moment later.
	Resolve(ctx context.Context, path string) (string, error)

	// Content returns the bytes of a regular file of at most limit bytes.
	Content(ctx context.Context, path string, limit int64) ([]byte, error)

	// Digest returns the sha256 of a regular file of at most limit bytes. Of a large file that
	// has not changed since it was read, it is known without reading.
	Digest(ctx context.Context, path string, limit int64) (Sum, error)

	// Entries names what is in a directory, sorted: at most limit names, and how many there
	// are beyond. What the topology itself is about to put there is left out.
	Entries(ctx context.Context, path string, limit int) (names []string, more int, err error)
}

// A Source is a content that is too large to be held.
type Source struct {
	SHA256 string // lower-case hex
	Size   int64
	Open   func(context.Context) (io.ReadCloser, error)
}

// A FileWrite is the wanted state of one regular file.
type FileWrite struct {
	Path    string
	Content []byte
	Source  *Source // instead of Content; what comes and is not that is a fault, CodeInvalid, and changes nothing
	Mode    uint32
	Owner   string // user name or number; empty: keep that of the present file, else the agent's
	Group   string // as Owner
	Mark    Mark
	// Replaces is what WriteFile replaces: the sha256 of the content, or the word absent. If that is not there any more
	// right before the file gets its name, it is a fault, CodeChanged. Empty: whatever is there.
	Replaces Sum
}

// Is tells as FileWrite.Replaces does what is there; empty if nobody knows.
func (st FileState) Is() Sum {
	if st.Type == Absent {
		return Sum(Absent)
	}
	return st.SHA256
}

// FileWriter changes files.
type FileWriter interface {
	FileReader

	// WriteFile makes the file so: atomically, with owner, mode and mark set before the
	// name appears, and durable when it returns. Missing parent directories are made,
	// 0755. Anything but a regular file in its place is a fault and stays. Access control
	// lists, other extended attributes and capabilities of a file that is replaced are
	// kept. Nothing temporary is left behind on failure.
	WriteFile(ctx context.Context, w FileWrite) error

	// SetAttributes sets mode, owner, group and mark of w.Path and leaves its content.
	SetAttributes(ctx context.Context, w FileWrite) error

	// RemoveFile removes a regular file, durably. Removing what is absent is no error.
	RemoveFile(ctx context.Context, path string) error

	// MakeDirectory makes the directory so, durably; what is in it stays. Missing parent
	// directories are made, 0755. Anything but a directory in its place is a fault and stays.
	MakeDirectory(ctx context.Context, w DirectoryWrite) error

	// RemoveDirectory removes an empty directory, durably. One that is not empty is a fault,
	// CodeForeign, and stays. Removing what is absent is no error.
	RemoveDirectory(ctx context.Context, path string) error

	// MakeSymlink makes the link so: atomically, and durable when it returns. Missing parent
	// directories are made, 0755. Anything but a link in its place is a fault and stays.
	MakeSymlink(ctx context.Context, w SymlinkWrite) error

	// RemoveSymlink removes a symbolic link, durably, and not what it leads to. Removing what
	// is absent is no error.
	RemoveSymlink(ctx context.Context, path string) error
}

// Files is a file system.
type Files interface{ FileWriter }
