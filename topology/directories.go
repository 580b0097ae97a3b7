package topology

// A DirectoryWrite is the wanted state of one directory.
type DirectoryWrite struct {
	Path  string
	Mode  uint32
	Owner string // user name or number; empty: keep that of the present directory, else the agent's
	Group string // as Owner
	Mark  Mark
}

// A SymlinkWrite is the wanted state of one symbolic link. A link carries no mark.
type SymlinkWrite struct {
	Path   string
	Target string
	// Replaces is the target of the link that is replaced, or the word absent. If that is not there any more, it is a
	// fault, CodeChanged.
	Replaces string
}
