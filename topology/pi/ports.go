package pi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// blame names who holds a port that a container was to have and that did not start. The
// words of podman, in the journal, name the port and nobody.
func (c *containers) blame(ctx context.Context, cfg topology.ContainerConfig, failure error) error {
	f, ok := errors.AsType[*topology.Fault](failure)
	if !ok || len(cfg.Ports) == 0 || f.Code != topology.CodeJobFailed && f.Code != topology.CodeExited {
		return failure
	}
	bound, err := sockets()
	if err != nil {
		return failure
	}
	for _, s := range bound {
		if !slices.ContainsFunc(cfg.Ports, func(p string) bool { return takes(p, s) }) {
			continue
		}
		if who := c.holder(ctx, cfg.Name, s); who != "" {
			proto := "tcp"
			if s.udp {
				proto = "udp"
			}
			return topology.Faultf(f.Code, "%s; port %d/%s of the device is held by %s", f.Text, s.at.Port(), proto, who)
		}
	}
	return failure
}

// takes tells whether a published port, in its canonical text, cannot be had beside s.
func takes(port string, s socket) bool {
	port, proto, _ := strings.Cut(port, "/")
	host := port[:max(0, strings.LastIndexByte(port, ':'))]
	ip := netip.IPv4Unspecified()
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		parsed, err := netip.ParseAddr(strings.Trim(host[:i], "[]"))
		if err != nil {
			return false
		}
		ip, host = parsed, host[i+1:]
	}
	from, to, run := strings.Cut(host, "-")
	if !run {
		to = from
	}
	first, err1 := strconv.ParseUint(from, 10, 16)
	last, err2 := strconv.ParseUint(to, 10, 16)
	p := uint64(s.at.Port())
	return err1 == nil && err2 == nil && first <= p && p <= last && (proto == "udp") == s.udp &&
		(ip.IsUnspecified() || s.at.Addr().IsUnspecified() || ip.Unmap() == s.at.Addr())
}

// listed is what is read of a container in the list of those that run.
type listed struct {
	ID    string `json:"Id"`
	Names []string
	Ports []struct {
		PublicPort uint16
		Type       string
	}
}

func (l listed) name() string {
	return strings.TrimPrefix(strings.Join(l.Names[:min(1, len(l.Names))], ""), "/")
}

func (l listed) publishes(s socket) bool {
	for _, p := range l.Ports {
		if p.PublicPort == s.at.Port() && (p.Type == "udp") == s.udp {
			return true
		}
	}
	return false
}

var payload = regexp.MustCompile(`/libpod-(?:payload-)?([0-9a-f]{64})`)

// holder says who has a socket: a container, by name, or else a process. It is "" if the
// container itself has it, which its unit may be starting again by now.
func (c *containers) holder(ctx context.Context, self string, s socket) string {
	var running []listed
	_ = c.podman.call(ctx, c.podman.limit, request{method: "GET", path: "/containers/json"}, into(&running))
	group := cgroupOf(s.cgroup)
	if strings.Contains(group+"/", "/"+unitOf(self)+"/") {
		return ""
	}
	inside := payload.FindStringSubmatch(group)
	for _, l := range running {
		if l.publishes(s) || inside != nil && inside[1] == l.ID { // the other is in the network of the device
			if l.name() == self {
				return ""
			}
			return "container " + l.name()
		}
	}
	return processes("/proc", group, s)
}

const cgroupRoot = "/sys/fs/cgroup"

// cgroupOf is the directory of a control group below the root of its hierarchy, or "".
func cgroupOf(id uint64) string {
	root := cgroupRoot
	var st unix.Statfs_t
	if unix.Statfs(root, &st) != nil || st.Type != unix.CGROUP2_SUPER_MAGIC {
		root += "/unified"
	}
	found := ""
	_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		var st unix.Stat_t
		if unix.Stat(p, &st) == nil && uint32(st.Ino) == uint32(id) && p != root { // the upper half counts reuse
			found = p
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// processes names the process that has a socket. Whom the agent may not trace hides
// that; then it is one of those in the control group that the socket was made in.
func processes(proc, group string, s socket) string {
	var pids []string
	if text, err := os.ReadFile(group + "/cgroup.procs"); group != "" && err == nil {
		pids = strings.Fields(string(text))
	}
	all, _ := filepath.Glob(proc + "/[0-9]*")
	for _, dir := range all {
		if has(dir, s.inode) {
			pids = []string{path.Base(dir)}
			break
		}
	}
	of := ""
	if unit := path.Base(group); strings.Contains(unit, ".") {
		of = " in " + unit
	}
	var names []string
	for _, pid := range pids {
		if comm, err := os.ReadFile(proc + "/" + pid + "/comm"); err == nil {
			names = append(names, fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(comm)), pid))
		}
	}
	switch len(names) {
	case 0:
		return fmt.Sprintf("a process of user id %d; ss -lntup shows which", s.uid)
	case 1:
		return "process " + names[0] + of
	}
	const enough = 3
	if len(names) > enough {
		names = append(names[:enough], "…")
	}
	return "one of the processes" + of + ": " + strings.Join(names, ", ")
}

// has tells whether a process has a socket, as far as we may know.
func has(dir string, inode uint32) bool {
	fds, _ := os.ReadDir(dir + "/fd")
	for _, fd := range fds {
		if to, err := os.Readlink(dir + "/fd/" + fd.Name()); err == nil && to == fmt.Sprintf("socket:[%d]", inode) {
			return true
		}
	}
	return false
}
