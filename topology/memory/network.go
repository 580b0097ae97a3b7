package memory

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/continuo-fleet/continuo/topology"
)

// network is what manages the connections of the device.
type network struct{ d *Device }

// Network of the device.
func (d *Device) Network() topology.Network { return network{d} }

// connections is the network of a device: what is kept, and what is in force.
type connections struct {
	kept    map[string]profile // by name
	links   map[string]*netif  // by name of the interface
	air     map[string]string  // password of each wireless network in reach
	country string             // the radio's
	open    *netCheckpoint     // nil: none
	free    chan struct{}      // holds a token while none is open
}

type profile struct {
	config  topology.ConnectionConfig
	mark    topology.Mark
	durable bool
	hidden  bool // removed under a checkpoint, and there again if it is rolled back
}

// A netif is an interface.
type netif struct {
	typ       topology.ConnectionType
	plugged   bool // it has a cable, or its radio is on
	carries   string
	addresses []netip.Prefix
	routes    []topology.Route
}

func newConnections() connections {
	return connections{
		kept: map[string]profile{}, free: make(chan struct{}, 1),
		links: map[string]*netif{
			"eth0":  {typ: topology.ConnectionEthernet, plugged: true},
			"wlan0": {typ: topology.ConnectionWifi, plugged: true},
		},
	}
}

func connectionResource(name string) topology.Resource {
	return topology.Resource("connection:" + name)
}

func (n network) Connection(ctx context.Context, c topology.ConnectionConfig) (topology.ConnectionState, error) {
	if err := n.d.control.call(ctx, OpConnection, connectionResource(c.Name)); err != nil {
		return topology.ConnectionState{}, err
	}
	n.d.mu.Lock()
	defer n.d.mu.Unlock()
	return n.d.net.state(c), nil
}

func (cs *connections) state(c topology.ConnectionConfig) topology.ConnectionState {
	var st topology.ConnectionState
	p, ok := cs.kept[c.Name]
	if ok && !p.hidden {
		st.Present, st.Config, st.Mark, st.Durable = true, p.config, p.mark, p.durable || cs.open != nil
		c = p.config
	}
	st.Config.Country = cs.country
	name, l := cs.linkOf(c)
	st.Device, st.Link = name, topology.LinkUnavailable
	switch {
	case l == nil:
		st.Reason = fmt.Sprintf("the device has no interface %s", name)
	case !l.plugged && c.Type == topology.ConnectionWifi:
		st.Blocked, st.Reason = true, "the radio is switched off"
	case !l.plugged:
		st.Reason = "no cable is plugged in"
	case l.carries == c.Name && st.Present:
		st.Link, st.Addresses, st.Routes = topology.LinkUp, slices.Clone(l.addresses), slices.Clone(l.routes)
	case c.Type == topology.ConnectionWifi && !cs.inReach(c.SSID):
		st.Reason = "no such network is in reach"
	default:
		st.Link, st.Other = topology.LinkDown, l.carries
		if c.Type == topology.ConnectionWifi && l.carries != "" {
			st.Link = topology.LinkStandby
		}
	}
	return st
}

func (cs *connections) inReach(ssid string) bool {
	_, ok := cs.air[ssid]
	return ok || cs.air == nil
}

// linkOf finds the interface of a connection; nil: there is none.
func (cs *connections) linkOf(c topology.ConnectionConfig) (string, *netif) {
	if c.Type == topology.ConnectionVLAN {
		if l := cs.links[c.Interface]; l != nil {
			return c.Interface, l
		}
		if parent := cs.links[c.Parent]; parent != nil {
			return c.Interface, &netif{typ: topology.ConnectionVLAN, plugged: parent.plugged}
		}
		return c.Interface, nil
	}
	if c.Interface != "" {
		return c.Interface, cs.links[c.Interface]
	}
	for _, name := range []string{"eth0", "wlan0"} {
		if l := cs.links[name]; l != nil && l.typ == c.Type {
			return name, l
		}
	}
	return "", nil
}

func (n network) SetConnection(ctx context.Context, c topology.ConnectionConfig, m topology.Mark) error {
	if err := n.d.control.call(ctx, OpSetConnection, connectionResource(c.Name)); err != nil {
		return err
	}
	n.d.mu.Lock()
	defer n.d.mu.Unlock()
	cs := &n.d.net
	if c.Name == "" || len(c.Interface) > 15 {
		return topology.Faultf(topology.CodeInvalid, "the device refuses the connection %q", c.Name)
	}
	cs.kept[c.Name] = profile{config: c, mark: m, durable: cs.open == nil}
	if c.Country != "" {
		cs.country = c.Country
	}
	for name, l := range cs.links { // it has moved
		if at, _ := cs.linkOf(c); l.carries == c.Name && name != at {
			*l = netif{typ: l.typ, plugged: l.plugged}
		}
	}
	n.d.changed(connectionResource(c.Name))
	return cs.up(c)
}

// up puts a connection in force where its interface can have it.
func (cs *connections) up(c topology.ConnectionConfig) error {
	name, l := cs.linkOf(c)
	if l == nil {
		return nil
	}
	if c.Type == topology.ConnectionWifi {
		want, known := cs.air[c.SSID]
		switch {
		case !l.plugged:
			return topology.Faultf(topology.CodeRadioBlocked, "the radio of %s is switched off", name)
		case !cs.inReach(c.SSID) && !c.Hidden:
			return nil
		case l.carries != "" && l.carries != c.Name && cs.kept[l.carries].config.Priority > c.Priority:
			return nil
		case known && want != string(c.Password):
			return topology.Faultf(topology.CodeJobFailed, "cannot join %q: the password is wrong", c.SSID)
		}
	}
	if !l.plugged {
		return nil
	}
	cs.links[name] = l
	l.carries = c.Name
	l.addresses, l.routes = nil, nil
	for _, f := range []topology.IPConfig{c.IPv4, c.IPv6} {
		l.addresses = append(l.addresses, f.Addresses...)
		l.routes = append(l.routes, f.Routes...)
		if f.Gateway.IsValid() {
			r := topology.DefaultRoute(f.Gateway)
			r.Metric = f.Metric
			l.routes = append(l.routes, r)
		}
	}
	if c.IPv4.Method == "auto" {
		l.addresses = append(l.addresses, netip.MustParsePrefix("192.0.2.99/24"))
	}
	return nil
}

func (n network) RemoveConnection(ctx context.Context, name string) error {
	if err := n.d.control.call(ctx, OpRemoveConnection, connectionResource(name)); err != nil {
		return err
	}
	n.d.mu.Lock()
	defer n.d.mu.Unlock()
	cs := &n.d.net
	p, ok := cs.kept[name]
	if !ok {
		return nil
	}
	if p.hidden = true; cs.open != nil {
		cs.kept[name] = p
	} else {
		delete(cs.kept, name)
	}
	for _, l := range cs.links {
		if l.carries == name {
			*l = netif{typ: l.typ, plugged: l.plugged}
		}
	}
	cs.fallBack()
	n.d.changed(connectionResource(name))
	return nil
}

// fallBack gives interfaces that carry nothing the best of what is kept for them.
func (cs *connections) fallBack() {
	var best []topology.ConnectionConfig
	for _, p := range cs.kept {
		if !p.hidden {
			best = append(best, p.config)
		}
	}
	slices.SortFunc(best, func(a, b topology.ConnectionConfig) int { return int(b.Priority - a.Priority) })
	for _, c := range best {
		if _, l := cs.linkOf(c); l != nil && l.carries == "" && l.plugged {
			_ = cs.up(c) // one that cannot be up stays down
		}
	}
}
