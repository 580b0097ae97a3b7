package pi

import (
	"bufio"
	"encoding/hex"
	"io"
	"math/bits"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/continuo-fleet/continuo/topology"
)

const maxRouteLines = 4096

// inForce reads from the kernel what an interface has, whoever put it there. What cannot be
// read is left out: it is then not in force.
func inForce(iface string) (addresses []netip.Prefix, routes []topology.Route) {
	i, err := net.InterfaceByName(iface)
	if err != nil {
		return nil, nil
	}
	all, _ := i.Addrs()
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		if ip, ok := netip.AddrFromSlice(n.IP); ok {
			ones, _ := n.Mask.Size()
			addresses = append(addresses, netip.PrefixFrom(ip.Unmap(), ones))
		}
	}
	for _, from := range []struct {
		path string
		read func(io.Reader, string) []topology.Route
	}{{"/proc/net/route", routes4}, {"/proc/net/ipv6_route", routes6}} {
		if f, err := os.Open(from.path); err == nil {
			routes = append(routes, from.read(f, iface)...)
			_ = f.Close()
		}
	}
	return addresses, routes
}

// routes4 reads /proc/net/route: addresses are in the byte order of the machine, which is a
// small-endian one wherever this runs.
func routes4(r io.Reader, iface string) (out []topology.Route) {
	addr := func(s string) (netip.Addr, uint32, bool) {
		n, err := strconv.ParseUint(s, 16, 32)
		v := bits.ReverseBytes32(uint32(n))
		return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), v, err == nil
	}
	lines := bufio.NewScanner(r)
	for n := 0; lines.Scan() && n < maxRouteLines; n++ {
		f := strings.Fields(lines.Text())
		if len(f) < 8 || f[0] != iface {
			continue
		}
		to, _, ok1 := addr(f[1])
		via, _, ok2 := addr(f[2])
		_, mask, ok3 := addr(f[7])
		metric, err := strconv.ParseUint(f[6], 10, 32)
		if !ok1 || !ok2 || !ok3 || err != nil {
			continue
		}
		out = append(out, route(to, bits.OnesCount32(mask), via, uint32(metric)))
	}
	return out
}

// routes6 reads /proc/net/ipv6_route.
func routes6(r io.Reader, iface string) (out []topology.Route) {
	addr := func(s string) (netip.Addr, bool) {
		b, err := hex.DecodeString(s)
		if err != nil || len(b) != 16 {
			return netip.Addr{}, false
		}
		return netip.AddrFrom16([16]byte(b)), true
	}
	lines := bufio.NewScanner(r)
	for n := 0; lines.Scan() && n < maxRouteLines; n++ {
		f := strings.Fields(lines.Text())
		if len(f) < 10 || f[9] != iface {
			continue
		}
		to, ok1 := addr(f[0])
		length, err1 := strconv.ParseUint(f[1], 16, 8)
		via, ok2 := addr(f[4])
		metric, err2 := strconv.ParseUint(f[5], 16, 32)
		if !ok1 || !ok2 || err1 != nil || err2 != nil || length > 128 || to.IsMulticast() || length == 128 && via.IsUnspecified() { // the last are addresses of this device
			continue
		}
		out = append(out, route(to, int(length), via, uint32(metric)))
	}
	return out
}

func route(to netip.Addr, length int, via netip.Addr, metric uint32) topology.Route {
	r := topology.Route{To: netip.PrefixFrom(to, length), Metric: metric}
	if !via.IsUnspecified() {
		r.Via = via
	}
	return r
}

// isInForce reports whether an interface has what a connection asks for by name.
func isInForce(c topology.ConnectionConfig, iface string) bool {
	return len(c.Missing(inForce(iface))) == 0
}
