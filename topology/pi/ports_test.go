package pi

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// netlink is one message as the kernel sends it.
func netlink(typ uint16, body []byte) []byte {
	b := make([]byte, netlinkHeader, netlinkHeader+len(body))
	binary.NativeEndian.PutUint32(b, uint32(netlinkHeader+len(body)))
	binary.NativeEndian.PutUint16(b[4:], typ)
	return append(b, body...)
}

func diag(family byte, addr string, port uint16, attributes ...byte) []byte {
	b := make([]byte, diagLength)
	b[0], b[1] = family, tcpListen
	binary.BigEndian.PutUint16(b[4:], port)
	copy(b[diagAddress:], netip.MustParseAddr(addr).AsSlice())
	binary.NativeEndian.PutUint32(b[diagUID:], 33)
	binary.NativeEndian.PutUint32(b[diagInode:], 4711)
	return netlink(unix.SOCK_DIAG_BY_FAMILY, append(b, attributes...))
}

func cgroupAttribute(id uint64) []byte {
	b := binary.NativeEndian.AppendUint16([]byte{5, 0, 8, 0, 0, 0, 0, 0}, 12) // another one first, of 5 bytes
	binary.NativeEndian.PutUint16(b, 5)
	binary.NativeEndian.PutUint16(b[2:], 8)
	b = binary.NativeEndian.AppendUint16(b, diagCgroup)
	return binary.NativeEndian.AppendUint64(b, id)
}

func TestDecodeSockets(t *testing.T) { // case 85
	at := func(addr string, cgroup uint64) string {
		return fmt.Sprint(socket{at: netip.MustParseAddrPort(addr), uid: 33, inode: 4711, cgroup: cgroup})
	}
	errno := make([]byte, 4)
	binary.NativeEndian.PutUint32(errno, ^uint32(unix.EACCES)+1)
	tests := []struct {
		name string
		in   []byte
		want string
		done bool
		err  string
	}{
		{"nothing", nil, "", false, ""},
		{"one and another", append(diag(unix.AF_INET, "127.0.0.1", 8080, cgroupAttribute(70)...), diag(unix.AF_INET6, "::", 443)...),
			at("127.0.0.1:8080", 70) + at("[::]:443", 0), false, ""},
		{"an address in two families", diag(unix.AF_INET6, "::ffff:192.0.2.1", 80), at("192.0.2.1:80", 0), false, ""},
		{"end", netlink(unix.NLMSG_DONE, errno), "", true, ""},
		{"refused", netlink(unix.NLMSG_ERROR, errno), "", true, "permission denied"},
		{"something else", netlink(99, nil), "", false, ""},
		{"cut short", diag(unix.AF_INET, "127.0.0.1", 8080)[:40], "", true, "no sense"},
		{"too small", netlink(unix.SOCK_DIAG_BY_FAMILY, make([]byte, 20)), "", true, "no sense"},
		{"rest", []byte{1, 2, 3}, "", true, "no sense"},
		{"bad attribute", diag(unix.AF_INET, "127.0.0.1", 8080, 1, 0, 21, 0), at("127.0.0.1:8080", 0), false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			some, done, err := decodeSockets(tt.in, false)
			got := ""
			for _, s := range some {
				got += fmt.Sprint(s)
			}
			if got != tt.want || done != tt.done || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %s, %v, %v", got, done, err)
			}
		})
	}
}

func FuzzDecodeSockets(f *testing.F) {
	f.Add(append(diag(unix.AF_INET, "127.0.0.1", 8080, cgroupAttribute(70)...), netlink(unix.NLMSG_DONE, make([]byte, 4))...))
	f.Add(netlink(unix.NLMSG_ERROR, nil))
	real, err := hex.DecodeString("7c0000001400020001000000a6330000020a00009a3700007f000001") // the beginning of an answer
	if err != nil {
		f.Fatal(err)
	}
	f.Add(real)
	f.Fuzz(func(t *testing.T, b []byte) {
		some, done, err := decodeSockets(b, true)
		if err != nil && !done {
			t.Error("an error is the end")
		}
		if len(some) > len(b)/diagLength {
			t.Errorf("%d sockets in %d bytes", len(some), len(b))
		}
	})
}

func TestTakes(t *testing.T) { // case 85
	tests := []struct {
		port, at string
		udp      bool
		want     bool
	}{
		{"8080:80", "0.0.0.0:8080", false, true},
		{"8080:80", "127.0.0.1:8080", false, true},
		{"8080:80", "[::]:8080", false, true},
		{"8080:80", "0.0.0.0:80", false, false},
		{"8080:80", "0.0.0.0:8080", true, false},
		{"53:53/udp", "0.0.0.0:53", true, true},
		{"53:53/udp", "0.0.0.0:53", false, false},
		{"127.0.0.1:8080:80", "127.0.0.1:8080", false, true},
		{"127.0.0.1:8080:80", "192.0.2.1:8080", false, false},
		{"127.0.0.1:8080:80", "0.0.0.0:8080", false, true},
		{"[::1]:8080:80", "[::1]:8080", false, true},
		{"[::1]:8080:80", "127.0.0.1:8080", false, false},
		{"5000-5003:5000-5003", "0.0.0.0:5003", false, true},
		{"5000-5003:5000-5003", "0.0.0.0:5004", false, false},
		{"1.2.3:1:1", "0.0.0.0:1", false, false},
		{"80", "0.0.0.0:80", false, false},
		{"", "0.0.0.0:0", false, false},
	}
	for _, tt := range tests {
		if got := takes(tt.port, socket{udp: tt.udp, at: netip.MustParseAddrPort(tt.at)}); got != tt.want {
			t.Errorf("%s beside %s (udp %v): %v", tt.port, tt.at, tt.udp, got)
		}
	}
}

// The kernel tells of a socket that this test has made, and that it is this process.
func TestSocketsOfThisProcess(t *testing.T) { // case 85
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	bound, err := sockets()
	if err != nil {
		t.Fatal(err)
	}
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{l.Addr().String() + " tcp": true, u.LocalAddr().String() + " udp": true}
	for _, s := range bound {
		key := s.at.String() + map[bool]string{false: " tcp", true: " udp"}[s.udp]
		if !left[key] {
			continue
		}
		delete(left, key)
		got, want := processes("/proc", cgroupOf(s.cgroup), s), fmt.Sprintf("process %s (pid %d)", strings.TrimSpace(string(comm)), os.Getpid())
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s is held by %s, want %s", key, got, want)
		}
	}
	if len(left) > 0 {
		t.Errorf("not told of: %v", left)
	}
}

// What may be said if the agent may not look into the process: its unit, and the processes of that.
func TestHiddenProcess(t *testing.T) { // case 85
	dir := t.TempDir()
	file := func(name, text string) {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for pid := range 5 {
		file(fmt.Sprintf("proc/%d/comm", pid+1), fmt.Sprintf("p%d\n", pid+1))
	}
	file("one.service/cgroup.procs", "2\n")
	file("many.scope/cgroup.procs", "1\n2\n3\n4\n5\n")
	file("gone.service/cgroup.procs", "77\n")
	file("slice/cgroup.procs", "4\n")
	for group, want := range map[string]string{
		"one.service":  "process p2 (pid 2) in one.service",
		"many.scope":   "one of the processes in many.scope: p1 (pid 1), p2 (pid 2), p3 (pid 3), …",
		"gone.service": "a process of user id 33; ss -lntup shows which",
		"slice":        "process p4 (pid 4)",
		"no":           "a process of user id 33; ss -lntup shows which",
	} {
		if got := processes(filepath.Join(dir, "proc"), filepath.Join(dir, group), socket{uid: 33, inode: 1}); got != want {
			t.Errorf("%s: %s", group, got)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "proc/5/fd"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("socket:[4711]", filepath.Join(dir, "proc/5/fd/3")); err != nil {
		t.Fatal(err)
	}
	if got := processes(filepath.Join(dir, "proc"), filepath.Join(dir, "many.scope"), socket{inode: 4711}); got != "process p5 (pid 5) in many.scope" {
		t.Error(got)
	}
}
