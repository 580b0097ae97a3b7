package score

import (
	"regexp"
	"slices"
	"strings"
)

func init() {
	Register(Definition[Ethernet]{
		Doc:   "A wired connection, or a VLAN on one.",
		Needs: []Capability{CapNetwork},
		Sample: Ethernet{
			Name: "uplink", Interface: "eth0",
			IPv4: &IPConfig{
				Method: MethodStatic, Addresses: []CIDR{"192.0.2.10/24"}, Gateway: "192.0.2.1", DNS: []IP{"192.0.2.53"},
				Search: []string{"example.org"}, Routes: []Route{{To: "198.51.100.0/24", Via: "192.0.2.2", Metric: 200}}, Metric: 100,
			},
			IPv6: &IPConfig{Method: MethodDisabled},
		},
	})
}

// KindEthernet is the kind of Ethernet.
const KindEthernet Kind = "ethernet"

// Ethernet is a wired connection of the device. A change of it that makes the fleet
// unreachable is taken back by itself: see Confirm.
type Ethernet struct {
	// Name of the connection, as the tools of the network show it. It may have spaces.
	Name string `json:"name" effect:"remove" jsonschema:"maxLength=100,example=uplink"`
	// Interface that it is for: the name that the kernel has for it, and for a VLAN the name that it gets.
	Interface string `json:"interface,omitempty" effect:"disrupt" jsonschema:"maxLength=15,pattern=^[a-zA-Z0-9_.-]+$,example=eth0"`
	// MAC is the hardware address of the interface that it is for, instead of its name or beside it.
	MAC MAC `json:"mac,omitzero" effect:"disrupt"`
	// VLAN makes the interface a tagged network on another one.
	VLAN *VLAN `json:"vlan,omitempty" effect:"disrupt"`
	// IPv4 says how it gets addresses of IP version 4. If it is left out: from the network.
	IPv4 *IPConfig `json:"ipv4,omitempty" effect:"disrupt"`
	// IPv6 says how it gets addresses of IP version 6. If it is left out: from the network.
	IPv6 *IPConfig `json:"ipv6,omitempty" effect:"disrupt"`
	// MTU is the size of the largest packet. If it is left out, the driver's.
	MTU uint32 `json:"mtu,omitzero" effect:"disrupt" jsonschema:"minimum=576,maximum=9216,example=1500"`
	// Priority decides which connection an interface gets by itself if there are several: the highest.
	Priority int32 `json:"priority,omitzero" effect:"mutate" jsonschema:"minimum=-999,maximum=999,example=10"`
	// State is absent for a connection that is to be gone.
	State Presence `json:"state,omitempty" effect:"remove" jsonschema:"enum=present,enum=absent,default=present"`
	// Confirm says how a change proves that it did not cut the device off.
	Confirm *Confirm `json:"confirm,omitempty" effect:"none"`
}

// A VLAN is a tagged network on an interface.
type VLAN struct {
	// ID is the tag.
	ID uint32 `json:"id" jsonschema:"minimum=1,maximum=4094,example=7"`
	// Parent is the interface that carries it.
	Parent string `json:"parent" jsonschema:"maxLength=15,pattern=^[a-zA-Z0-9_.-]+$,example=eth0"`
}

// Kind is KindEthernet.
func (Ethernet) Kind() Kind { return KindEthernet }

// Claims is the connection, and the interface if it is named.
func (e Ethernet) Claims() []Resource {
	out := []Resource{Resource("connection:" + e.Name)}
	if e.Interface != "" {
		out = append(out, Resource("interface:"+e.Interface))
	}
	return out
}

// Confirmation says how a change proves itself.
func (e Ethernet) Confirmation() Confirm { return confirmation(e.Confirm) }

func confirmation(c *Confirm) Confirm {
	if c == nil {
		return Confirm{}
	}
	return *c
}

// AddEthernet adds a wired connection to a draft.
func AddEthernet[P Networking](d *Draft[P], id ID, e Ethernet) Ref[Ethernet] { return add(d, id, e) }

var linkRE = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,15}$`)

// Check refuses what no device could have.
func (e Ethernet) Check(r *Report) {
	checkConnection(r, e.Name, e.Interface, e.MAC, e.MTU, e.Priority)
	e.State.check(r.At("state"))
	e.Confirm.check(r.At("confirm"), e.IPv4, e.IPv6)
	if e.State == Absent {
		return
	}
	if e.Interface == "" && e.MAC == "" {
		r.At("interface").Errorf("give the interface, or the mac, that the connection is for")
	}
	if v := e.VLAN; v != nil {
		if v.ID < 1 || v.ID > 4094 {
			r.At("vlan", "id").Errorf("vlan id is %d: want 1 to 4094", v.ID)
		}
		if !isInterface(v.Parent) {
			r.At("vlan", "parent").Errorf("parent %q is no name of an interface", v.Parent)
		}
		switch {
		case e.Interface == "":
			r.At("interface").Errorf("a VLAN needs the name that its interface gets, such as %s.%d", v.Parent, v.ID)
		case e.Interface == v.Parent:
			r.At("vlan", "parent").Errorf("the VLAN and its parent have one name, %s", v.Parent)
		}
		if e.MAC != "" {
			r.At("mac").Errorf("a VLAN is found by its parent, not by a hardware address")
		}
	}
	e.IPv4.check(r.At("ipv4"), false)
	e.IPv6.check(r.At("ipv6"), true)
	if e.IPv4 != nil && e.IPv6 != nil && e.IPv4.Method == MethodDisabled && e.IPv6.Method == MethodDisabled {
		r.At("ipv6").Errorf("a connection with neither version of IP connects nothing")
	}
}

func isInterface(s string) bool {
	return linkRE.MatchString(s) && s != "." && s != ".." && s != "lo"
}

func checkConnection(r *Report, name, iface string, mac MAC, mtu uint32, priority int32) {
	if name == "" || len(name) > 100 || strings.TrimSpace(name) != name || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f || c == 0xfffd }) {
		r.At("name").Errorf("name %q must be 1 to 100 bytes of text, without line breaks and without spaces at its ends", name)
	}
	if slices.Contains([]string{"lo", "all", "default"}, iface) {
		r.At("interface").Errorf("interface %s is the kernel's own", iface)
	} else if iface != "" && !isInterface(iface) {
		r.At("interface").Errorf("interface %q must be letters, digits, '_', '.' and '-', at most 15", iface)
	}
	if mac != "" {
		if _, err := mac.Canonical(); err != nil {
			r.At("mac").Errorf("%v", err)
		}
	}
	if mtu != 0 && (mtu < 576 || mtu > 9216) {
		r.At("mtu").Errorf("mtu is %d: want 576 to 9216", mtu)
	}
	if priority < -999 || priority > 999 {
		r.At("priority").Errorf("priority is %d: want -999 to 999", priority)
	}
}
