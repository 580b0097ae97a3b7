package pi

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// searchPath is where programs are looked for: that of systemd for services, and not the
// environment's of whoever started the agent.
var searchPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// How long it is believed what a program said while its file stays the same: what it needs
// beside its file may come or go.
const (
	believeGood = time.Hour
	believeBad  = 10 * time.Minute
)

// maxCopies is how many programs of one name are looked at.
const maxCopies = 8

// tools finds programs, and asks them for their versions.
type tools struct {
	bus     *bus
	below   bool
	version string // of the agent
	path    []string
	ask     func(ctx context.Context, program string) (output string, err error) // starts it; see askVersion

	asking chan struct{} // one program is asked at a time
	mu     sync.Mutex
	known  map[string]answered // by path
}

func newTools(b *bus, below bool, version string) *tools {
	return &tools{bus: b, below: below, version: version, path: searchPath, ask: askVersion, asking: make(chan struct{}, 1), known: map[string]answered{}}
}

// answered is what a program said, and which file it was then.
type answered struct {
	identity
	at   time.Time
	copy topology.ToolCopy
}

// identity changes when a file does.
type identity struct {
	dev, ino     uint64
	size         int64
	mtime, ctime unix.Timespec
}

// Tool looks for a program.
func (t *tools) Tool(ctx context.Context, name string) (topology.ToolState, error) {
	if err := topology.CheckTool(name); err != nil {
		return topology.ToolState{}, err
	}
	if err := ctx.Err(); err != nil {
		return topology.ToolState{}, topology.FaultOf(err)
	}
	if t.below {
		return topology.ToolState{}, errNoMachine
	}
	one := func(c topology.ToolCopy) (topology.ToolState, error) {
		return topology.ToolState{Copies: []topology.ToolCopy{c}}, nil
	}
	switch name {
	case topology.ToolAgent:
		self, _ := os.Executable()
		return one(topology.ToolCopy{Path: self, Version: t.version, Works: true})
	case topology.ToolKernel:
		var u unix.Utsname
		if err := unix.Uname(&u); err != nil {
			return topology.ToolState{}, topology.FaultOf(err)
		}
		return one(topology.ToolCopy{Version: unix.ByteSliceToString(u.Release[:]), Works: true})
	case topology.ToolServiceManager:
		return t.serviceManager(ctx)
	}
	return t.search(ctx, name)
}

// serviceManager asks the systemd that runs; one that does not is missing.
func (t *tools) serviceManager(ctx context.Context) (topology.ToolState, error) {
	var version string
	err := t.bus.do(ctx, func(ctx context.Context, l *link) (err error) {
		v, err := l.systemd.GetManagerProperty("Version")
		version = v
		return err
	})
	if err != nil {
		if f := topology.FaultOf(busFault("ask", "systemd for its version", err)); f.Code != topology.CodeUnavailable {
			return topology.ToolState{}, f
		}
		return topology.ToolState{}, nil
	}
	path, err := os.Readlink("/proc/1/exe") // for root alone
	if err != nil {
		path = ""
	}
	return topology.ToolState{Copies: []topology.ToolCopy{{Path: path, Version: firstVersion(version), Works: true}}}, nil
}

// search finds the programs of a name. Two names of one file, as /bin and /usr/bin are, are one.
func (t *tools) search(ctx context.Context, name string) (out topology.ToolState, err error) {
	var seen []identity
	for _, dir := range t.path {
		path := filepath.Join(dir, name)
		var st unix.Stat_t
		if err := unix.Stat(path, &st); errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			if _, err := os.Lstat(path); err != nil {
				continue
			}
			out.Copies = append(out.Copies, topology.ToolCopy{Path: path, Why: "it is a link that leads nowhere"})
			continue
		} else if err != nil {
			return topology.ToolState{}, topology.FaultOf(&os.PathError{Op: "look at", Path: path, Err: err})
		}
		id := identity{uint64(st.Dev), st.Ino, st.Size, st.Mtim, st.Ctim}
		if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o111 == 0 || known(seen, id) {
			continue // as a shell does
		}
		seen = append(seen, id)
		c, err := t.copy(ctx, path, id)
		if err != nil {
			return topology.ToolState{}, err
		}
		if out.Copies = append(out.Copies, c); len(out.Copies) == maxCopies {
			break
		}
	}
	return out, nil
}

func known(seen []identity, id identity) bool {
	for _, s := range seen {
		if s.dev == id.dev && s.ino == id.ino {
			return true
		}
	}
	return false
}

// copy is what is known of one program, or what it says now.
func (t *tools) copy(ctx context.Context, path string, id identity) (topology.ToolCopy, error) {
	select {
	case t.asking <- struct{}{}:
		defer func() { <-t.asking }()
	case <-ctx.Done():
		return topology.ToolCopy{}, topology.FaultOf(ctx.Err())
	}
	t.mu.Lock()
	was, ok := t.known[path]
	t.mu.Unlock()
	believe := believeBad
	if was.copy.Works {
		believe = believeGood
	}
	if ok && was.identity == id && time.Since(was.at) < believe {
		return was.copy, nil
	}
	c := topology.ToolCopy{Path: path}
	if target, err := filepath.EvalSymlinks(path); err == nil && target != path {
		c.Target = target
	}
	output, err := t.ask(ctx, path)
	switch {
	case ctx.Err() != nil:
		return topology.ToolCopy{}, topology.FaultOf(ctx.Err())
	case err != nil:
		c.Why = clean(err.Error())
	default:
		c.Works, c.Version = true, firstVersion(output)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) > 256 {
		clear(t.known)
	}
	t.known[path] = answered{id, time.Now(), c}
	return c, nil
}

// versionRE finds a version: numbers with dots, or behind the word itself a number, and what hangs on them.
var versionRE = regexp.MustCompile(`(?:^|[^0-9A-Za-z.])[vV]?([0-9]+(?:\.[0-9]+)+[-+~.:_0-9A-Za-z]*)`)

var numberRE = regexp.MustCompile(`(?:^|[^0-9A-Za-z.])[vV]?([0-9]+[-+~_0-9A-Za-z]*)`)

// firstVersion finds the version in what a program says of itself; nothing if there is none.
func firstVersion(text string) string {
	for _, where := range []string{firstLine(text), text} {
		for _, re := range []*regexp.Regexp{versionRE, numberRE} {
			if m := re.FindStringSubmatch(where); m != nil {
				return clean(m[1])
			}
		}
	}
	return ""
}
