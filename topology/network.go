package topology

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// HasNetwork is implemented by topologies whose network connections can be set.
type HasNetwork interface{ Network() Network }

// Network is what manages the connections of the device.
type Network interface{ ConnectionWriter }

// A ConnectionType is a kind of link.
type ConnectionType string

// Types of connections.
const (
	ConnectionEthernet ConnectionType = "ethernet"
	ConnectionVLAN     ConnectionType = "vlan"
	ConnectionWifi     ConnectionType = "wifi"
)

// A ConnectionConfig is what a connection is made from. Its words are those of package score.
type ConnectionConfig struct {
	Name      string // of the connection, for people; it identifies it
	Type      ConnectionType
	Interface string // empty: any that fits
	MAC       string // small letters; empty: any
	VLANID    uint32
	Parent    string // of a VLAN
	MTU       uint32 // 0: the driver's
	Priority  int32
	IPv4      IPConfig
	IPv6      IPConfig

	SSID     string      // raw bytes
	Security string      // open, wpa-psk, sae
	Password SecretValue `json:"-"`
	Hidden   bool
	Band     string // 2.4GHz, 5GHz; empty: both
	Country  string // of the device, not of the connection alone
}

// An IPConfig is how a connection gets its addresses of one family.
type IPConfig struct {
	Method    string // auto, static, link-local, disabled
	Addresses []netip.Prefix
	Gateway   netip.Addr
	DNS       []netip.Addr
	Search    []string
	Routes    []Route
	Metric    uint32 // 0: the manager's choice
}

// A Route is a way to a network.
type Route struct {
	To     netip.Prefix
	Via    netip.Addr // the zero value: on this link
	Metric uint32     // 0: that of the connection
}

func (r Route) String() string {
	s := r.To.String()
	if r.Via.IsValid() {
		s += " via " + r.Via.String()
	}
	if r.Metric != 0 {
		s += fmt.Sprintf(" metric %d", r.Metric)
	}
	return s
}

// String tells all of it. Equal texts are equal configurations.
func (c IPConfig) String() string {
	var b strings.Builder
	b.WriteString(c.Method)
	for _, a := range c.Addresses {
		fmt.Fprintf(&b, " %s", a)
	}
	if c.Gateway.IsValid() {
		fmt.Fprintf(&b, " gateway %s", c.Gateway)
	}
	for _, a := range c.DNS {
		fmt.Fprintf(&b, " dns %s", a)
	}
	for _, d := range c.Search {
		fmt.Fprintf(&b, " search %s", d)
	}
	for _, r := range c.Routes {
		fmt.Fprintf(&b, " route %s", r)
	}
	if c.Metric != 0 {
		fmt.Fprintf(&b, " metric %d", c.Metric)
	}
	return b.String()
}

// Missing lists the addresses, routes and gateways that c asks for by name and that are not in
// force. A route is the same whatever its metric, unless c names one.
func (c ConnectionConfig) Missing(addresses []netip.Prefix, routes []Route) (out []string) {
	leads := func(r Route) bool {
		return slices.ContainsFunc(routes, func(q Route) bool { return q.To == r.To && q.Via == r.Via && (r.Metric == 0 || q.Metric == r.Metric) })
	}
	for _, f := range []IPConfig{c.IPv4, c.IPv6} {
		for _, a := range f.Addresses {
			if !slices.Contains(addresses, a) {
				out = append(out, a.String())
			}
		}
		for _, r := range f.Routes {
			if !leads(r) {
				out = append(out, "route "+r.String())
			}
		}
		if f.Gateway.IsValid() && !leads(DefaultRoute(f.Gateway)) {
			out = append(out, "gateway "+f.Gateway.String())
		}
	}
	return out
}

// DefaultRoute is the way to everywhere.
func DefaultRoute(via netip.Addr) Route {
	to := netip.IPv6Unspecified()
	if via.Is4() {
		to = netip.IPv4Unspecified()
	}
	return Route{To: netip.PrefixFrom(to, 0), Via: via}
}

// A LinkState says how far a connection is in force.
type LinkState string

// Link states.
const (
	LinkUp          LinkState = "up"
	LinkStarting    LinkState = "starting"    // it waits for an address, or for somebody to let it in
	LinkDown        LinkState = "down"        // it could be up, and is not
	LinkStandby     LinkState = "standby"     // a wireless network whose radio has joined another one
	LinkUnavailable LinkState = "unavailable" // no such interface, no cable, nothing in reach, the radio is off
)

// ConnectionState is one connection as found.
type ConnectionState struct {
	Present bool
	Config  ConnectionConfig // what is kept of it; nothing if it is not there
	Mark    Mark
	Durable bool   // it is the same after a restart of the device, or will be when the checkpoint that is open is committed
	Device  string // interface that it is on, or would be on
	Other   string // connection that this interface has instead
	Link    LinkState
	Reason  string // for people, why it is not up
	Blocked bool   // the radio is switched off

	// In force on Device, whoever put it there.
	Addresses []netip.Prefix
	Routes    []Route // the default route is 0.0.0.0/0 or ::/0
}

// ConnectionReader observes connections.
type ConnectionReader interface {
	// Connection returns the state of the connection that c names. One that is not there is a
	// state, in which Device, Other and Link say what would become of c. Only what a
	// ConnectionConfig can hold is looked at.
	Connection(ctx context.Context, c ConnectionConfig) (ConnectionState, error)
}

// ConnectionWriter changes connections.
//
// What is changed while a checkpoint is open is in force and not durable: it becomes so when
// the checkpoint is committed, and a restart of the device before that brings back what was
// there.
type ConnectionWriter interface {
	ConnectionReader

	// SetConnection makes the connection so and puts it in force, if its interface can have it
	// now; a wireless network does not drive out another one of a higher priority. What else
	// there was for that interface stays, unused. It returns when the connection is up. One
	// that does not come up is a fault, CodeJobFailed, and a radio that is off is
	// CodeRadioBlocked.
	SetConnection(ctx context.Context, c ConnectionConfig, m Mark) error

	// RemoveConnection takes a connection away. Its interface falls to what else there is for
	// it. Removing what is not there is no error.
	RemoveConnection(ctx context.Context, name string) error

	// Checkpoint lets everything that is changed from now on be taken back: see Checkpoint. It
	// ends by itself a little later than the window, which begins anew with every change, so
	// that it does not race with who proves. To commit it after that is CodeConnectivity. There
	// is one at a time: a second one waits for the end of the first.
	Checkpoint(ctx context.Context, window time.Duration) (Checkpoint, error)
}
