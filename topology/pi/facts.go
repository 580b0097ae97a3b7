package pi

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// facts read what the kernel, the firmware and the packages tell in files. What is not
// there, or makes no sense, is left out: a machine without it is no broken one.
type facts struct {
	tree  fs.FS    // of the whole machine; in tests, of another one
	root  *os.Root // of tree, if the machine does not run
	live  bool     // the machine is this one, and runs
	disks []string // paths whose file systems are facts
	busy  chan struct{}

	mu   sync.Mutex
	seen topology.Power // what has occurred, as long as the boot lasts: some kernels forget it when it was read once
	boot string         // of which seen is
}

func newFacts(root, state string) *facts {
	f := &facts{tree: os.DirFS("/"), live: root == "", disks: []string{"/"}, busy: make(chan struct{}, 1)}
	if state != "" {
		f.disks = append(f.disks, state)
	}
	if !f.live {
		f.tree = noFS{}
		if r, err := os.OpenRoot(root); err == nil {
			f.root, f.tree = r, r.FS()
		}
	}
	return f
}

func (f *facts) close() {
	if f.root != nil {
		_ = f.root.Close()
	}
}

// noFS is the tree of a machine that cannot be read.
type noFS struct{}

func (noFS) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// Facts looks at the machine. A file that blocks, as on hardware that is broken, keeps one
// look busy and no caller.
func (f *facts) Facts(ctx context.Context) (topology.Facts, error) {
	select {
	case f.busy <- struct{}{}:
	case <-ctx.Done():
		return topology.Facts{}, topology.FaultOf(ctx.Err())
	}
	if ctx.Err() != nil {
		<-f.busy
		return topology.Facts{}, topology.FaultOf(ctx.Err())
	}
	found := make(chan topology.Facts, 1)
	go func() {
		defer func() { <-f.busy }()
		found <- f.look()
	}()
	select {
	case out := <-found:
		return out, nil
	case <-ctx.Done():
		return topology.Facts{}, topology.FaultOf(ctx.Err())
	}
}

func (f *facts) look() topology.Facts {
	cpu := f.read("proc/cpuinfo", 64<<10)
	out := topology.Facts{
		Hostname:    f.word("proc/sys/kernel/hostname"),
		Model:       f.model(cpu),
		Serial:      f.serial(cpu),
		BootID:      f.word("proc/sys/kernel/random/boot_id"),
		OS:          f.os(),
		Kernel:      f.word("proc/sys/kernel/osrelease"),
		CPUs:        processors(cpu),
		MemoryMiB:   memory(f.read("proc/meminfo", 4<<10)),
		Cards:       f.cards(),
		Temperature: f.temperature(),
	}
	out.Power = f.power(out.BootID)
	out.RebootRequired, out.RebootFor = f.reboot()
	if f.live {
		var u unix.Utsname
		if unix.Uname(&u) == nil {
			out.Arch = clean(unix.ByteSliceToString(u.Machine[:]))
		}
		out.Disks, out.Interfaces, out.ClockSynchronized = disks(f.disks), interfaces(), synchronized()
	}
	return out
}

// read gives the beginning of a regular file; nothing if there is none.
func (f *facts) read(name string, limit int64) []byte {
	if info, err := fs.Stat(f.tree, name); err != nil || !info.Mode().IsRegular() {
		return nil // anything else might block
	}
	file, err := f.tree.Open(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, limit))
	if err != nil {
		return nil
	}
	return b
}

// word gives a file that holds one line of text.
func (f *facts) word(name string) string {
	text, _, _ := strings.Cut(strings.TrimRight(string(f.read(name, 4<<10)), "\x00\n "), "\n")
	return clean(text)
}

// clean makes text of others one short line of text.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	s = strings.TrimSpace(s)
	if len(s) > 128 {
		s = strings.ToValidUTF8(s[:128], "")
	}
	return s
}

func first(words ...string) string {
	for _, w := range words {
		if w != "" && !blank.MatchString(w) {
			return w
		}
	}
	return ""
}

// blank is what makers write who had nothing to write.
var blank = regexp.MustCompile(`(?i)^([0 .-]*|to be filled.*|default string|none|not (specified|applicable|available).*|system (serial number|product name|manufacturer)|unknown|n/?a|o\.e\.m\.)$`)

// dmi is what the firmware of a PC says; its serial number is for root alone.
func (f *facts) dmi(name string) string { return f.word("sys/class/dmi/id/" + name) }

func (f *facts) board() string {
	vendor, product := first(f.dmi("sys_vendor")), first(f.dmi("product_name"))
	if product == "" || vendor == "" || strings.HasPrefix(product, vendor) {
		return product
	}
	return clean(vendor + " " + product)
}

// field is the value of a line of /proc/cpuinfo: "Serial : 1000…".
func field(text []byte, name string) string {
	for line := range bytes.Lines(text) {
		if key, value, ok := strings.Cut(string(line), ":"); ok && strings.TrimSpace(key) == name {
			return clean(value)
		}
	}
	return ""
}

func processors(cpuinfo []byte) (n int) {
	for line := range bytes.Lines(cpuinfo) {
		if key, _, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimSpace(key)) == "processor" {
			n++
		}
	}
	return n
}

func memory(meminfo []byte) uint64 {
	text, ok := strings.CutSuffix(field(meminfo, "MemTotal"), " kB")
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 54)
	if !ok || err != nil {
		return 0
	}
	return n / 1024
}

// os reads os-release, whose values are quoted as in a shell.
func (f *facts) os() topology.OS {
	text := f.read("etc/os-release", 16<<10)
	if text == nil {
		text = f.read("usr/lib/os-release", 16<<10)
	}
	values := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		key, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), "=")
		if !ok || strings.HasPrefix(key, "#") {
			continue
		}
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			double := value[0] == '"'
			if value = value[1 : n-1]; double {
				value = unescape.Replace(value)
			}
		}
		values[key] = clean(value)
	}
	return topology.OS{ID: values["ID"], Version: values["VERSION_ID"], Codename: values["VERSION_CODENAME"], Name: values["PRETTY_NAME"]}
}

var unescape = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\$`, `$`, "\\`", "`")

// reboot finds the marker that packages of Debian leave who want a reboot.
func (f *facts) reboot() (required bool, packages []string) {
	for _, dir := range []string{"run/", "var/run/"} {
		if _, err := fs.Stat(f.tree, dir+"reboot-required"); err != nil {
			continue
		}
		for line := range bytes.Lines(f.read(dir+"reboot-required.pkgs", 16<<10)) {
			if name := clean(string(line)); name != "" && !slices.Contains(packages, name) && len(packages) < 20 {
				packages = append(packages, name)
			}
		}
		slices.Sort(packages)
		return true, packages
	}
	return false, nil
}

// synchronized asks the kernel, which believes what a time server last set for some hours.
func synchronized() *bool {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return nil
	}
	return new(state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0)
}

func disks(paths []string) (out []topology.Disk) {
	var known []unix.Fsid
	for _, p := range paths {
		var st unix.Statfs_t
		if unix.Statfs(p, &st) != nil || slices.Contains(known, st.Fsid) {
			continue
		}
		known = append(known, st.Fsid)
		mib := func(blocks uint64) uint64 { return blocks * uint64(st.Bsize) >> 20 }
		out = append(out, topology.Disk{Path: p, SizeMiB: mib(st.Blocks), FreeMiB: mib(st.Bavail), ReadOnly: st.Flags&unix.ST_RDONLY != 0})
	}
	return out
}

// ofContainers are interfaces that come and go with containers and virtual machines.
var ofContainers = regexp.MustCompile(`^(veth|podman|cni|docker|br-|virbr|vnet|tap)`)

// Bounds of what is told of the network.
const (
	maxInterfaces = 16
	maxAddresses  = 8
)

func interfaces() (out []topology.Interface) {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	slices.SortFunc(all, func(a, b net.Interface) int { return strings.Compare(a.Name, b.Name) })
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 || ofContainers.MatchString(i.Name) || len(out) == maxInterfaces {
			continue
		}
		found := topology.Interface{Name: clean(i.Name), MAC: i.HardwareAddr.String(), Up: i.Flags&net.FlagUp != 0 && i.Flags&net.FlagRunning != 0}
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err == nil && !(p.Addr().Is6() && p.Addr().IsLinkLocalUnicast()) && len(found.Addresses) < maxAddresses {
				found.Addresses = append(found.Addresses, p.String())
			}
		}
		slices.Sort(found.Addresses)
		out = append(out, found)
	}
	return out
}
