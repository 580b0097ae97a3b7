package pi

import (
	"crypto/sha1"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/continuo-fleet/continuo/topology"
)

// nmSettings is a profile of NetworkManager: settings by name, and their properties. See
// nm-settings-dbus(5).
type nmSettings = map[string]map[string]dbus.Variant

const (
	nmOwner   = "continuo.owner"   // mark of a profile that is ours, in its setting user
	nmRemoved = "continuo.removed" // instead of it, of one that is gone as soon as a checkpoint is committed
)

// nmUUID is the UUID of the profile of a connection: the same for the same name, wherever and
// whenever it is made (RFC 9562, version 5).
func nmUUID(name string) string {
	space := [16]byte{0x5b, 0x1d, 0x0b, 0x0e, 0x7a, 0x53, 0x4e, 0x5c, 0x9c, 0x0d, 0x1f, 0x63, 0x6f, 0x6e, 0x74, 0x6f}
	h := sha1.New()
	h.Write(space[:])
	h.Write([]byte(name))
	b := h.Sum(nil)[:16]
	b[6], b[8] = b[6]&0x0f|0x50, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

var (
	nmTypes = map[topology.ConnectionType]string{
		topology.ConnectionEthernet: "802-3-ethernet", topology.ConnectionVLAN: "vlan", topology.ConnectionWifi: "802-11-wireless",
	}
	nmBands   = map[string]string{"2.4GHz": "bg", "5GHz": "a"}
	nmMethods = map[string]string{"static": "manual"} // the others are called the same
)

// nmOf writes a connection as a profile. One that is removed is kept from coming up.
func nmOf(c topology.ConnectionConfig, m topology.Mark, removed bool) nmSettings {
	v := dbus.MakeVariant
	mark := nmOwner
	if removed {
		mark = nmRemoved
	}
	connection := map[string]dbus.Variant{
		"id": v(c.Name), "uuid": v(nmUUID(c.Name)), "type": v(nmTypes[c.Type]), "autoconnect": v(!removed), "autoconnect-priority": v(c.Priority),
	}
	if c.Interface != "" {
		connection["interface-name"] = v(c.Interface)
	}
	hardware := map[string]dbus.Variant{}
	if c.MTU != 0 {
		hardware["mtu"] = v(c.MTU)
	}
	if mac, err := net.ParseMAC(c.MAC); err == nil {
		hardware["mac-address"] = v([]byte(mac))
	}
	s := nmSettings{
		"connection": connection, "ipv4": nmIP(c.IPv4), "ipv6": nmIP(c.IPv6),
		"user": {"data": v(map[string]string{mark: string(m)})},
	}
	switch c.Type {
	case topology.ConnectionVLAN:
		s["vlan"] = map[string]dbus.Variant{"id": v(c.VLANID), "parent": v(c.Parent)}
		s["802-3-ethernet"] = hardware
	case topology.ConnectionWifi:
		hardware["ssid"], hardware["mode"], hardware["hidden"] = v([]byte(c.SSID)), v("infrastructure"), v(c.Hidden)
		if c.Band != "" {
			hardware["band"] = v(nmBands[c.Band])
		}
		s["802-11-wireless"] = hardware
		if c.Security != "open" {
			s["802-11-wireless-security"] = map[string]dbus.Variant{"key-mgmt": v(c.Security), "psk": v(string(c.Password)), "psk-flags": v(uint32(0))}
		}
	default:
		s["802-3-ethernet"] = hardware
	}
	return s
}

func nmIP(c topology.IPConfig) map[string]dbus.Variant {
	v := dbus.MakeVariant
	method := c.Method
	if m, ok := nmMethods[method]; ok {
		method = m
	}
	s := map[string]dbus.Variant{"method": v(method)}
	var addresses, routes []map[string]dbus.Variant
	for _, a := range c.Addresses {
		addresses = append(addresses, map[string]dbus.Variant{"address": v(a.Addr().String()), "prefix": v(uint32(a.Bits()))})
	}
	for _, r := range c.Routes {
		m := map[string]dbus.Variant{"dest": v(r.To.Addr().String()), "prefix": v(uint32(r.To.Bits()))}
		if r.Via.IsValid() {
			m["next-hop"] = v(r.Via.String())
		}
		if r.Metric != 0 {
			m["metric"] = v(r.Metric)
		}
		routes = append(routes, m)
	}
	var dns []string
	for _, a := range c.DNS {
		dns = append(dns, a.String())
	}
	if addresses != nil {
		s["address-data"] = v(addresses)
	}
	if routes != nil {
		s["route-data"] = v(routes)
	}
	if dns != nil {
		s["dns-data"] = v(dns)
	}
	if len(c.Search) > 0 {
		s["dns-search"] = v(c.Search)
	}
	if c.Gateway.IsValid() {
		s["gateway"] = v(c.Gateway.String())
	}
	if c.Metric != 0 {
		s["route-metric"] = v(int64(c.Metric))
	}
	return s
}

// nmRead reads a profile back, as far as a connection can say what is in it.
func nmRead(s nmSettings) (c topology.ConnectionConfig, m topology.Mark, removed bool) {
	connection := properties(s["connection"])
	c.Name, c.Interface, c.Priority = connection.text("id"), connection.text("interface-name"), int32(connection.number("autoconnect-priority"))
	for typ, name := range nmTypes {
		if name == connection.text("type") {
			c.Type = typ
		}
	}
	hardware := properties(s["802-3-ethernet"])
	if w, ok := s["802-11-wireless"]; ok {
		hardware = w
		ssid, _ := hardware["ssid"].Value().([]byte)
		c.SSID, c.Security = string(ssid), "open"
		c.Hidden, _ = hardware["hidden"].Value().(bool)
		for band, name := range nmBands {
			if name == hardware.text("band") {
				c.Band = band
			}
		}
		if k := properties(s["802-11-wireless-security"]).text("key-mgmt"); k != "" {
			c.Security = k
		}
	}
	c.MTU = uint32(hardware.number("mtu"))
	if mac, _ := hardware["mac-address"].Value().([]byte); len(mac) == 6 {
		c.MAC = net.HardwareAddr(mac).String()
	}
	vlan := properties(s["vlan"])
	c.VLANID, c.Parent = uint32(vlan.number("id")), vlan.text("parent")
	c.IPv4, c.IPv6 = nmReadIP(s["ipv4"]), nmReadIP(s["ipv6"])
	data, _ := properties(s["user"])["data"].Value().(map[string]string)
	gone, removed := data[nmRemoved]
	return c, topology.Mark(data[nmOwner] + gone), removed
}

func nmReadIP(s map[string]dbus.Variant) (c topology.IPConfig) {
	p := properties(s)
	c.Method = p.text("method")
	for ours, theirs := range nmMethods {
		if theirs == c.Method {
			c.Method = ours
		}
	}
	list := func(key string) []map[string]dbus.Variant {
		l, _ := p[key].Value().([]map[string]dbus.Variant)
		return l
	}
	for _, a := range list("address-data") {
		if addr, err := netip.ParseAddr(properties(a).text("address")); err == nil {
			c.Addresses = append(c.Addresses, netip.PrefixFrom(addr, int(properties(a).number("prefix"))))
		}
	}
	for _, r := range list("route-data") {
		if to, err := netip.ParseAddr(properties(r).text("dest")); err == nil {
			via, _ := netip.ParseAddr(properties(r).text("next-hop"))
			c.Routes = append(c.Routes, topology.Route{To: netip.PrefixFrom(to, int(properties(r).number("prefix"))), Via: via, Metric: uint32(properties(r).number("metric"))})
		}
	}
	dns, _ := p["dns-data"].Value().([]string)
	for _, d := range dns {
		if a, err := netip.ParseAddr(d); err == nil {
			c.DNS = append(c.DNS, a)
		}
	}
	c.Search, _ = p["dns-search"].Value().([]string)
	if len(c.Search) == 0 {
		c.Search = nil
	}
	c.Gateway, _ = netip.ParseAddr(p.text("gateway"))
	if metric := p.number("route-metric"); metric > 0 {
		c.Metric = uint32(metric)
	}
	return c
}

// nmReason is why a device is not up, in words. See NMDeviceStateReason.
func nmReason(reason uint32) string {
	switch reason {
	case 0:
		return "NetworkManager tried it and gave it up, as it does with an address that another device has: journalctl -u NetworkManager says more"
	case 5:
		return "no address came from the network"
	case 7:
		return "the password is wrong, or there is none"
	case 8, 9, 10, 11:
		return "the access point does not let it in: is the password right?"
	case 15, 16, 17:
		return "the DHCP server does not answer"
	case 35:
		return "the firmware of the interface is missing"
	case 40:
		return "no cable is plugged in"
	case 53:
		return "no such network is in reach"
	}
	return fmt.Sprintf("NetworkManager gives the reason %d", reason)
}

// nmBelow tells profiles that do not outlive a restart of the device by the place of their file.
func nmBelow(filename string) bool { return strings.HasPrefix(filename, "/run/") }
