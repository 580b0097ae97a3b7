package score

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Confirm says how a change that could cut the device off proves that it did not. What
// was there before comes back by itself unless the proof succeeds in time.
type Confirm struct {
	// Within is how long the proof may take. If it is left out, 60s.
	Within Duration `json:"within,omitzero"`
	// Connect is a TCP address, host:port, that must be reached as well as the server of the fleet, or instead of it on
	// a device that has none.
	Connect string `json:"connect,omitempty" jsonschema:"example=192.0.2.1:53"`
}

// A Confirming is implemented by specs whose changes could cut the device off.
type Confirming interface {
	Confirmation() Confirm
}

// DefaultConfirm is the time that a proof may take if nothing is said.
const DefaultConfirm = Duration(time.Minute)

// Window is how long the proof may take.
func (c Confirm) Window() time.Duration {
	if c.Within > 0 {
		return time.Duration(c.Within)
	}
	return time.Duration(DefaultConfirm)
}

// check refuses what proves nothing: own are addresses that the device has by the same score.
func (c *Confirm) check(r *Report, own ...*IPConfig) {
	if c == nil {
		return
	}
	if c.Within != 0 && (c.Within < Duration(10*time.Second) || c.Within > Duration(10*time.Minute)) {
		r.At("within").Errorf("within is %s: want 10s to 10m", c.Within)
	}
	if c.Connect == "" {
		return
	}
	host, port, err := net.SplitHostPort(c.Connect)
	n, bad := strconv.ParseUint(port, 10, 16)
	if err != nil || host == "" || bad != nil || n == 0 {
		r.At("connect").Errorf("connect is %q: want a TCP address such as 192.0.2.1:53", c.Connect)
		return
	}
	if isSelf(host, own) {
		r.At("connect").Errorf("connect is %s, the device itself: that is reached also by a device that is cut off", c.Connect)
	}
}

// isSelf reports whether a host is the device that asks, as far as words can tell.
func isSelf(host string, own []*IPConfig) bool {
	if name := strings.TrimSuffix(strings.ToLower(host), "."); name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	a = a.Unmap()
	for _, c := range own {
		if c != nil && slices.ContainsFunc(c.Addresses, func(x CIDR) bool { p, err := x.Prefix(); return err == nil && p.Addr() == a }) {
			return true
		}
	}
	return a.IsLoopback() || a.IsUnspecified()
}
