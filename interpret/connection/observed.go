package connection

import (
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Observed is the actual state of one connection.
type Observed struct {
	// Present says whether the network manager knows the connection.
	Present bool `json:"present"`
	// Durable says whether it is there after the next boot as it is now.
	Durable bool `json:"durable"`
	// Device is the interface that it is on, or would be on.
	Device string `json:"device,omitempty"`
	// Link says how far it is in force: up, starting, down, standby, unavailable.
	Link string `json:"link"`
	// Reason says why it is not up.
	Reason string `json:"reason,omitempty"`
	// Other is the connection that the interface has instead.
	Other string `json:"other,omitempty"`
	// IPv4 as it is kept: the method, and everything that belongs to it.
	IPv4 string `json:"ipv4,omitempty"`
	// IPv6 as it is kept.
	IPv6 string `json:"ipv6,omitempty"`
	// SSID of a wireless network.
	SSID score.SSID `json:"ssid,omitzero"`
	// Password is a digest of the password that is kept, with a key that only the device has.
	Password string `json:"password,omitempty"`
	// Country that the radio is set to.
	Country string `json:"country,omitempty"`
	// Addresses that the interface has, whoever gave them to it.
	Addresses []string `json:"addresses,omitempty"`
	// Routes that lead over the interface.
	Routes []string `json:"routes,omitempty"`

	config topology.ConnectionConfig
	mark   topology.Mark
	found  topology.ConnectionState // addresses and routes, all of them
	wanted string                   // digest of the password that it should have
}

// maxListed is how many addresses and routes are reported: what a network hands out has no bounds.
const maxListed = 32

func observed(st topology.ConnectionState) Observed {
	o := Observed{
		Present: st.Present, Durable: st.Durable, Device: st.Device, Link: string(st.Link), Reason: interpret.Brief(st.Reason), Other: interpret.Brief(st.Other),
		Country: st.Config.Country, config: st.Config, mark: st.Mark,
		found: topology.ConnectionState{Addresses: st.Addresses, Routes: st.Routes},
	}
	o.config.Password = nil
	if st.Present {
		o.IPv4, o.IPv6, o.SSID = interpret.Brief(st.Config.IPv4.String()), interpret.Brief(st.Config.IPv6.String()), score.SSID(st.Config.SSID)
	}
	for _, a := range st.Addresses[:min(len(st.Addresses), maxListed)] {
		o.Addresses = append(o.Addresses, a.String())
	}
	for _, r := range st.Routes[:min(len(st.Routes), maxListed)] {
		o.Routes = append(o.Routes, r.String())
	}
	return o
}

// Exists reports whether the connection is there.
func (o Observed) Exists() bool { return o.Present }

// OwnedBy returns the mark that the connection carries.
func (o Observed) OwnedBy() topology.Mark { return o.mark }

// Conditions: a connection is written when the next boot finds it, and effective when its
// interface has it. A wireless network whose radio has joined another one is neither in force
// nor out of it.
func (o Observed) Conditions() interpret.Conditions {
	if !o.Present {
		return interpret.Conditions{}
	}
	c := interpret.Conditions{Written: new(o.Durable)}
	if o.Link != string(topology.LinkStandby) {
		c.Effective = new(o.Link == string(topology.LinkUp))
	}
	return c
}
