package pi

import (
	"bytes"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// accounts knows the users and groups of the device: those of its own files, not of a
// network directory, and not those of the machine that mounts it.
type accounts struct{ users, groups *accountFile }

func newAccounts(t *tree) *accounts {
	return &accounts{&accountFile{tree: t, path: "/etc/passwd"}, &accountFile{tree: t, path: "/etc/group"}}
}

// An accountFile is passwd or group, read again when it changed.
type accountFile struct {
	tree *tree
	path string

	mu      sync.Mutex
	checked time.Time
	seen    unix.Stat_t
	names   map[uint32]string
	ids     map[string]uint32
}

// fresh is how long a look at the file counts for the names of owners: a thousand
// files observed in a row ask once.
const fresh = 50 * time.Millisecond

// refresh is called with mu held. One stat is all that it costs when nothing changed.
func (a *accountFile) refresh() {
	var st unix.Stat_t
	if err := unix.Fstatat(a.tree.root, a.path[1:], &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		st = unix.Stat_t{}
	}
	if a.names != nil && st.Ino == a.seen.Ino && st.Size == a.seen.Size && st.Mtim == a.seen.Mtim && st.Ctim == a.seen.Ctim {
		return
	}
	a.seen, a.names, a.ids = st, map[uint32]string{}, map[string]uint32{}
	data, err := readSmall(a.tree, a.path)
	if err != nil {
		return // no file, no names: numbers still work
	}
	a.names, a.ids = parseAccounts(data)
}

// parseAccounts reads lines of name:password:id:… and skips what is none. Of two lines
// for one name or one number the first counts, as everywhere.
func parseAccounts(data []byte) (names map[uint32]string, ids map[string]uint32) {
	names, ids = map[uint32]string{}, map[string]uint32{}
	for line := range bytes.Lines(data) {
		f := bytes.SplitN(line, []byte(":"), 4)
		if len(f) < 3 || len(f[0]) == 0 {
			continue
		}
		n, err := strconv.ParseUint(string(bytes.TrimSpace(f[2])), 10, 32)
		if err != nil {
			continue
		}
		name, id := string(f[0]), uint32(n)
		if _, ok := names[id]; !ok {
			names[id] = name
		}
		if _, ok := ids[name]; !ok {
			ids[name] = id
		}
	}
	return names, ids
}

// name returns the name of id, or its number.
func (a *accountFile) name(id uint32) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); now.Sub(a.checked) > fresh {
		a.refresh()
		a.checked = now
	}
	if name, ok := a.names[id]; ok {
		return name
	}
	return strconv.FormatUint(uint64(id), 10)
}

// id returns the number of a name or a number. A name wins over a number.
func (a *accountFile) id(name, what string) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refresh()
	if id, ok := a.ids[name]; ok {
		return int(id), nil
	}
	if n, err := strconv.ParseUint(name, 10, 32); err == nil && n < 1<<32-1 {
		return int(n), nil
	}
	return 0, topology.Faultf(topology.CodeNoAccount, "the device has no %s %q; create it first, or give a number", what, name)
}

func (a *accounts) user(name string) (int, error)  { return a.users.id(name, "user") }
func (a *accounts) group(name string) (int, error) { return a.groups.id(name, "group") }
