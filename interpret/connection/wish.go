package connection

import (
	"cmp"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// A spec was checked before it came here: what cannot be read is left out.

func wired(e score.Ethernet) wish {
	c := topology.ConnectionConfig{
		Name: e.Name, Type: topology.ConnectionEthernet, Interface: e.Interface, MAC: mac(e.MAC), MTU: e.MTU, Priority: e.Priority,
		IPv4: ip(e.IPv4), IPv6: ip(e.IPv6),
	}
	if e.VLAN != nil {
		c.Type, c.VLANID, c.Parent = topology.ConnectionVLAN, e.VLAN.ID, e.VLAN.Parent
	}
	return wish{config: c, absent: e.State == score.Absent}
}

func wireless(w score.Wifi) wish {
	return wish{
		config: topology.ConnectionConfig{
			Name: w.Name, Type: topology.ConnectionWifi, Interface: w.Interface, MAC: mac(w.MAC), MTU: w.MTU, Priority: w.Priority,
			IPv4: ip(w.IPv4), IPv6: ip(w.IPv6),
			SSID: string(w.SSID), Security: string(w.Security), Hidden: w.Hidden, Band: string(w.Band), Country: w.Country,
		},
		secret: w.Password.Secret, absent: w.State == score.Absent,
	}
}

func mac(m score.MAC) string {
	c, _ := m.Canonical()
	return string(c)
}

func ip(c *score.IPConfig) topology.IPConfig {
	if c == nil {
		return topology.IPConfig{Method: string(score.MethodAuto)}
	}
	out := topology.IPConfig{Method: string(c.Method), Search: c.Search, Metric: c.Metric}
	for _, a := range c.Addresses {
		if p, err := a.Prefix(); err == nil {
			out.Addresses = append(out.Addresses, p)
		}
	}
	if a, err := c.Gateway.Addr(); err == nil {
		out.Gateway = a
	}
	for _, d := range c.DNS {
		if a, err := d.Addr(); err == nil {
			out.DNS = append(out.DNS, a)
		}
	}
	for _, r := range c.Routes {
		p, err := r.To.Prefix()
		if err != nil {
			continue
		}
		via, _ := r.Via.Addr()
		out.Routes = append(out.Routes, topology.Route{To: p, Via: via, Metric: cmp.Or(r.Metric, c.Metric)})
	}
	return out
}
