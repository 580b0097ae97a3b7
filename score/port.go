package score

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// A Port publishes a port of a container, or a run of ports, on the device. It is
// written as podman does: "8080:80", "127.0.0.1:6001:80/tcp", "5000-5003:5000-5003/udp",
// "[::1]:8080:80". Spellings of the same thing are the same value.
type Port struct {
	IP        string // address on the device; empty: all
	Host      uint16 // first port on the device
	Container uint16 // first port in the container
	More      uint16 // how many further ports follow the first
	UDP       bool   // UDP instead of TCP
}

// PortPattern is the shape of a port's text.
const PortPattern = `^((\[[0-9a-fA-F:.]+\]|[0-9.]+):)?[0-9]{1,5}(-[0-9]{1,5})?:[0-9]{1,5}(-[0-9]{1,5})?(/(tcp|udp))?$`

var portRE = regexp.MustCompile(PortPattern)

func (p Port) String() string {
	s := span(p.Host, p.More) + ":" + span(p.Container, p.More)
	if p.IP != "" {
		ip := p.IP
		if strings.Contains(ip, ":") {
			ip = "[" + ip + "]"
		}
		s = ip + ":" + s
	}
	if p.UDP {
		s += "/udp"
	}
	return s
}

func span(first, more uint16) string {
	if more == 0 {
		return strconv.Itoa(int(first))
	}
	return fmt.Sprintf("%d-%d", first, int(first)+int(more))
}

// MarshalText writes the canonical text.
func (p Port) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads any spelling.
func (p *Port) UnmarshalText(b []byte) error {
	bad := fmt.Errorf("cannot read port %q: want \"8080:80\", \"127.0.0.1:8080:80\" or \"5000-5003:5000-5003/udp\"", b)
	if !portRE.Match(b) {
		return bad
	}
	s := string(b)
	var out Port
	s, proto, _ := strings.Cut(s, "/")
	out.UDP = proto == "udp"
	at := strings.LastIndexByte(s, ':')
	inside := s[at+1:]
	s = s[:at]
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		ip, err := netip.ParseAddr(strings.Trim(s[:i], "[]"))
		if err != nil {
			return bad
		}
		if !ip.IsUnspecified() || ip.Is6() {
			out.IP = ip.String()
		}
		s = s[i+1:]
	}
	var hostMore, insideMore uint16
	var ok1, ok2 bool
	out.Host, hostMore, ok1 = parseSpan(s)
	out.Container, insideMore, ok2 = parseSpan(inside)
	if !ok1 || !ok2 || hostMore != insideMore {
		return bad
	}
	out.More = hostMore
	*p = out
	return nil
}

func parseSpan(s string) (first, more uint16, ok bool) {
	a, b, is := strings.Cut(s, "-")
	from, err := strconv.ParseUint(a, 10, 16)
	if err != nil {
		return 0, 0, false
	}
	if !is {
		return uint16(from), 0, true
	}
	to, err := strconv.ParseUint(b, 10, 16)
	if err != nil || to < from {
		return 0, 0, false
	}
	return uint16(from), uint16(to - from), true
}

func (p Port) check(r *Report) {
	if p.Host == 0 || p.Container == 0 || int(p.Host)+int(p.More) > 65535 || int(p.Container)+int(p.More) > 65535 {
		r.Errorf("port %s is out of range: 1 to 65535", p)
	}
	if p.More > 1023 {
		r.Errorf("port %s publishes more than 1024 ports", p)
	}
}

func (p Port) overlaps(q Port) bool {
	return p.UDP == q.UDP && (p.IP == q.IP || p.IP == "" || q.IP == "") &&
		int(p.Host) <= int(q.Host)+int(q.More) && int(q.Host) <= int(p.Host)+int(p.More)
}

func (p Port) claims() []Resource {
	proto, ip := "tcp", p.IP
	if p.UDP {
		proto = "udp"
	}
	if ip == "" {
		ip = "*"
	}
	out := make([]Resource, 0, int(p.More)+1)
	for i := range min(int(p.More), 1023) + 1 {
		out = append(out, Resource(fmt.Sprintf("port:%s/%d@%s", proto, int(p.Host)+i, ip)))
	}
	return out
}
