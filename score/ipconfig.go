package score

import (
	"net/netip"
	"regexp"
	"slices"
)

// A Method is how an interface gets its addresses of one family.
type Method string

// Methods.
const (
	MethodAuto      Method = "auto"       // from the network: DHCP, router advertisements
	MethodStatic    Method = "static"     // those that are listed
	MethodLinkLocal Method = "link-local" // for this link only
	MethodDisabled  Method = "disabled"   // none
)

// An IPConfig is how a connection gets its addresses of one family, version 4 or version 6.
type IPConfig struct {
	// Method is where the addresses come from.
	Method Method `json:"method" jsonschema:"enum=auto,enum=static,enum=link-local,enum=disabled,example=static"`
	// Addresses of the device, each with the length of its network. Beside the method auto they are further ones.
	Addresses []CIDR `json:"addresses,omitempty"`
	// Gateway is the router of the default route. It is in the network of one of the addresses.
	Gateway IP `json:"gateway,omitzero"`
	// DNS are the servers that names are asked of.
	DNS []IP `json:"dns,omitempty"`
	// Search are the domains that short names are looked up in.
	Search []string `json:"search,omitempty" jsonschema:"example=example.org"`
	// Routes beside the default route.
	Routes []Route `json:"routes,omitempty"`
	// Metric of the routes of this connection: of two ways to one network the smaller one is taken. If it is left out,
	// the network manager chooses.
	Metric uint32 `json:"metric,omitzero" jsonschema:"maximum=4294967294,example=100"`
}

// A Route is a way to a network.
type Route struct {
	// To is the network.
	To CIDR `json:"to" jsonschema:"example=198.51.100.0/24"`
	// Via is the router. Without it the network is on this link.
	Via IP `json:"via,omitzero"`
	// Metric of this route, if it is another than that of the connection.
	Metric uint32 `json:"metric,omitzero" jsonschema:"maximum=4294967294,example=200"`
}

var domainRE = regexp.MustCompile(`^(~?[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*\.?|~\.)$`)

const maxEntries = 64 // of any list of a connection

// check refuses what no device could do. A nil c is auto.
func (c *IPConfig) check(r *Report, v6 bool) {
	if c == nil {
		return
	}
	family := "4"
	if v6 {
		family = "6"
	}
	is := func(a netip.Addr) bool { return a.Is6() == v6 }
	if words := []string{string(MethodAuto), string(MethodStatic), string(MethodLinkLocal), string(MethodDisabled)}; !slices.Contains(words, string(c.Method)) {
		r.At("method").Errorf("unknown method %q%s", c.Method, didYouMean(string(c.Method), words))
	}
	if len(c.Addresses) > maxEntries || len(c.DNS) > maxEntries || len(c.Search) > maxEntries || len(c.Routes) > maxEntries {
		r.Errorf("a list of more than %d entries", maxEntries)
	}
	var nets []netip.Prefix
	for i, a := range c.Addresses {
		at := r.At("addresses", i)
		switch p, err := a.Prefix(); {
		case err != nil:
			at.Errorf("%v", err)
		case !is(p.Addr()):
			at.Errorf("address %s is not of IP version %s", a, family)
		case p.Bits() == 0 || p.Addr().IsUnspecified() || p.Addr().IsMulticast() || p.Addr().IsLoopback():
			at.Errorf("address %s is none that a device can have", a)
		case p.Masked().Addr() == p.Addr() && !v6 && p.Bits() < 31:
			at.Errorf("address %s is that of the network itself, not of a device", a)
		case slices.ContainsFunc(nets, func(q netip.Prefix) bool { return q.Addr() == p.Addr() }):
			at.Errorf("address %s is given twice", a)
		default:
			nets = append(nets, p)
		}
	}
	switch {
	case c.Method == MethodStatic && len(c.Addresses) == 0:
		r.At("addresses").Errorf("method static needs an address, such as \"192.0.2.10/24\"")
	case (c.Method == MethodDisabled || c.Method == MethodLinkLocal) && (len(c.Addresses)+len(c.DNS)+len(c.Search)+len(c.Routes) > 0 || c.Gateway != "" || c.Metric != 0):
		r.At("method").Errorf("method %s has no addresses, gateway, dns, search, routes and metric", c.Method)
	}
	if c.Gateway != "" {
		c.checkGateway(r.At("gateway"), nets, is, family)
	}
	for i, a := range c.DNS {
		if p, err := a.Addr(); err != nil {
			r.At("dns", i).Errorf("%v", err)
		} else if !is(p) {
			r.At("dns", i).Errorf("address %s is not of IP version %s: give it there", a, family)
		} else if slices.Contains(c.DNS[:i], a) {
			r.At("dns", i).Errorf("server %s is given twice", a)
		}
	}
	for i, d := range c.Search {
		if len(d) > 253 || !domainRE.MatchString(d) {
			r.At("search", i).Errorf("%q is no name of a domain", d)
		} else if slices.Contains(c.Search[:i], d) {
			r.At("search", i).Errorf("domain %s is given twice", d)
		}
	}
	for i, to := range c.Routes {
		to.check(r.At("routes", i), is, family)
		if slices.ContainsFunc(c.Routes[:i], func(other Route) bool { return other.To == to.To && other.Metric == to.Metric }) {
			r.At("routes", i).Errorf("there is another route to %s of this metric", to.To)
		}
	}
	checkMetric(r, c.Metric)
}

func (c *IPConfig) checkGateway(r *Report, nets []netip.Prefix, is func(netip.Addr) bool, family string) {
	gw, err := c.Gateway.Addr()
	switch {
	case err != nil:
		r.Errorf("%v", err)
	case !is(gw):
		r.Errorf("gateway %s is not of IP version %s", c.Gateway, family)
	case len(c.Addresses) == 0:
		r.Errorf("a gateway needs an address beside it: with method auto it comes from the network")
	case slices.ContainsFunc(nets, func(p netip.Prefix) bool { return p.Addr() == gw }):
		r.Errorf("gateway %s is the device itself", c.Gateway)
	case gw.IsLinkLocalUnicast():
	case !slices.ContainsFunc(nets, func(p netip.Prefix) bool { return p.Contains(gw) }):
		r.Errorf("gateway %s is in the network of no address: it could not be reached", c.Gateway)
	}
}

func (t Route) check(r *Report, is func(netip.Addr) bool, family string) {
	switch p, err := t.To.Prefix(); {
	case err != nil:
		r.At("to").Errorf("%v", err)
	case !is(p.Addr()):
		r.At("to").Errorf("network %s is not of IP version %s", t.To, family)
	case p.Masked() != p:
		r.At("to").Errorf("network %s has bits beyond its length: want %s", t.To, p.Masked())
	case p.Bits() == 0:
		r.At("to").Errorf("the default route is the gateway's: give that")
	}
	if t.Via != "" {
		if a, err := t.Via.Addr(); err != nil {
			r.At("via").Errorf("%v", err)
		} else if !is(a) {
			r.At("via").Errorf("router %s is not of IP version %s", t.Via, family)
		}
	}
	checkMetric(r, t.Metric)
}

func checkMetric(r *Report, m uint32) {
	if m == 1<<32-1 {
		r.At("metric").Errorf("metric is %d: want 1 to 4294967294", m)
	}
}
