package memory

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/continuo-fleet/continuo/topology"
)

// The methods below change the network as somebody else on the device, or the weather, would.

// Plug plugs a cable in or pulls it; of a radio, switches it on or off.
func (d *Device) Plug(iface string, on bool) {
	d.hands(func() {
		l := d.mustLink(iface)
		l.plugged = on
		if !on {
			l.carries, l.addresses, l.routes = "", nil, nil
		}
		d.net.fallBack()
		for name := range d.net.kept {
			d.changed(connectionResource(name))
		}
	})
}

// Broadcast puts a wireless network in reach that knows one password. From then on only
// networks that were named so are in reach.
func (d *Device) Broadcast(ssid, password string) {
	d.hands(func() {
		if d.net.air == nil {
			d.net.air = map[string]string{}
		}
		if ssid != "" {
			d.net.air[ssid] = password
		}
	})
}

// PutConnection makes a connection by hand, and puts it in force.
func (d *Device) PutConnection(c topology.ConnectionConfig, m topology.Mark) {
	d.hands(func() {
		d.net.kept[c.Name] = profile{config: c, mark: m, durable: true}
		_ = d.net.up(c)
		d.changed(connectionResource(c.Name))
	})
}

// DropAddresses takes the addresses of an interface away, as ip addr flush does.
func (d *Device) DropAddresses(iface string) {
	d.hands(func() { d.mustLink(iface).addresses = nil })
}

// DropRoute takes a route over an interface away, as ip route delete does.
func (d *Device) DropRoute(iface string, to netip.Prefix) {
	d.hands(func() {
		l := d.mustLink(iface)
		l.routes = slices.DeleteFunc(slices.Clone(l.routes), func(r topology.Route) bool { return r.To == to })
	})
}

// Carries names the connection that an interface has.
func (d *Device) Carries(iface string) (name string) {
	d.hands(func() {
		if l := d.net.links[iface]; l != nil {
			name = l.carries
		}
	})
	return name
}

// CheckpointOpen reports whether a checkpoint is open, of whatever.
func (d *Device) CheckpointOpen() (open bool) {
	d.hands(func() { open = d.net.open != nil || len(d.open) > 0 })
	return open
}

// RestartNetwork is a restart of the device, as far as its network goes: what was not durable
// is gone.
func (d *Device) RestartNetwork() {
	d.hands(func() {
		if cp := d.net.open; cp != nil {
			cp.restore()
		}
	})
}

func (d *Device) mustLink(iface string) *netif {
	l := d.net.links[iface]
	if l == nil {
		panic(fmt.Sprintf("memory: no interface %s", iface))
	}
	return l
}
