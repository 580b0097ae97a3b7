package firewall

import (
	"net/netip"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// rules are what s comes to, in the order in which they are asked.
func rules(s score.Firewall) []topology.FirewallRule {
	port := func(n uint16) topology.PortRange { return topology.PortRange{First: n, Last: n} }
	out := []topology.FirewallRule{
		{Established: true},
		{Interface: "lo"},
	}
	if s.ICMP == nil || *s.ICMP {
		out = append(out, topology.FirewallRule{Protocol: "icmp"}, topology.FirewallRule{Protocol: "ipv6-icmp"})
	} else {
		// What IPv6 cannot live without: who listens to which group (130 to 132), routers and neighbours (133 to 136).
		out = append(out, topology.FirewallRule{Protocol: "ipv6-icmp", Types: topology.PortRange{First: 130, Last: 136}})
	}
	// Answers to a DHCP client: what it asks goes to everybody, so they belong to no connection.
	out = append(out,
		topology.FirewallRule{Protocol: "udp", FromPorts: port(67), Ports: port(68)},
		topology.FirewallRule{Protocol: "udp", From: netip.MustParsePrefix("fe80::/10"), FromPorts: port(547), Ports: port(546)},
	)
	for _, a := range s.Allow {
		out = append(out, allowed(a)...)
	}
	return out
}

// allowed is one rule for each port and network.
func allowed(a score.Allow) (out []topology.FirewallRule) {
	rule := topology.FirewallRule{Interface: a.Interface, Protocol: a.Protocol}
	if a.Protocol == "" && len(a.Ports) > 0 {
		rule.Protocol = "tcp"
	}
	ports := []topology.PortRange{{}}
	if len(a.Ports) > 0 {
		ports = nil
	}
	for _, p := range a.Ports {
		ports = append(ports, topology.PortRange{First: p.First, Last: p.First + p.More})
	}
	from := []netip.Prefix{{}}
	if len(a.From) > 0 {
		from = nil
	}
	for _, f := range a.From {
		p, _ := netip.ParsePrefix(f) // Check has refused what is none
		from = append(from, p)
	}
	for _, rule.From = range from {
		for _, rule.Ports = range ports {
			out = append(out, rule)
		}
	}
	return out
}
