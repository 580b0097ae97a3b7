package score

import (
	"net/netip"
	"slices"
)

func init() {
	Register(Definition[ContainerNetwork]{
		Doc:    "A network that containers share, behind the device.",
		Needs:  []Capability{CapContainers},
		Sample: ContainerNetwork{Name: "kiosk", Subnets: []Subnet{{Subnet: "192.0.2.0/26", Gateway: "192.0.2.1"}}},
	})
}

// KindContainerNetwork is the kind of ContainerNetwork.
const KindContainerNetwork Kind = "containerNetwork"

// ContainerNetwork is a bridge on the device that containers are attached to by its name.
type ContainerNetwork struct {
	// Name of the network, as containers name it.
	Name string `json:"name" effect:"remove" jsonschema:"maxLength=63,pattern=^[a-zA-Z0-9][a-zA-Z0-9_.-]*$,example=kiosk"`
	// Subnets of the network. If they are left out, the device chooses one that is free.
	Subnets []Subnet `json:"subnets,omitempty" effect:"disrupt"`
	// Internal closes the way out of the device, and in.
	Internal bool `json:"internal,omitzero" effect:"disrupt"`
	// IPv6 gives containers IPv6 addresses as well.
	IPv6 bool `json:"ipv6,omitzero" effect:"disrupt"`
	// NoDNS switches off that containers find each other by name.
	NoDNS bool `json:"noDNS,omitzero" effect:"disrupt"`
}

// A Subnet is a range of addresses for containers.
type Subnet struct {
	// Subnet as an address and the length of its prefix. What is behind the prefix is zero.
	Subnet string `json:"subnet" jsonschema:"maxLength=43,example=192.0.2.0/26"`
	// Gateway is the device's own address in it. If it is left out, the first one.
	Gateway string `json:"gateway,omitempty" jsonschema:"maxLength=39,example=192.0.2.1"`
}

// Kind is KindContainerNetwork.
func (ContainerNetwork) Kind() Kind { return KindContainerNetwork }

// Claims is the network.
func (n ContainerNetwork) Claims() []Resource {
	return []Resource{Resource("containerNetwork:" + n.Name)}
}

// AddContainerNetwork adds a network of containers to a draft.
func AddContainerNetwork[P Containers](d *Draft[P], id ID, n ContainerNetwork) Ref[ContainerNetwork] {
	return add(d, id, n)
}

// Check refuses what podman would refuse, or read otherwise than it is written.
func (n ContainerNetwork) Check(r *Report) {
	switch {
	case len(n.Name) > 63 || !volumeNameRE.MatchString(n.Name):
		r.At("name").Errorf("name %q must be letters, digits, '_', '.' and '-', beginning with a letter or digit, at most 63", n.Name)
	case slices.Contains([]string{"podman", "bridge", "host", "none", "default", "private", "container", "ns", "pasta", "slirp4netns"}, n.Name):
		r.At("name").Errorf("name %q means something else to the container runtime; choose another one", n.Name)
	}
	var all []netip.Prefix
	for i, s := range n.Subnets {
		at := r.At("subnets", i)
		p, err := netip.ParsePrefix(s.Subnet)
		switch {
		case err != nil:
			at.At("subnet").Errorf("subnet %q must be an address with the length of its prefix, such as 192.0.2.0/24", s.Subnet)
			continue
		case p != p.Masked() || p.String() != s.Subnet:
			at.At("subnet").Errorf("subnet %q has to be written %s", s.Subnet, p.Masked())
		case p.Bits() > p.Addr().BitLen()-2:
			at.At("subnet").Errorf("subnet %s has no room for a container", s.Subnet)
		case p.Addr().Is6() && !n.IPv6:
			at.At("subnet").Errorf("subnet %s is IPv6, and ipv6 is not true", s.Subnet)
		}
		for j, q := range all {
			if p.Overlaps(q) {
				at.At("subnet").Errorf("subnet %s overlaps subnet %d, %s", p, j+1, q)
			}
		}
		all = append(all, p)
		if s.Gateway != "" {
			if g, err := netip.ParseAddr(s.Gateway); err != nil || g.String() != s.Gateway || !p.Contains(g) || g == p.Addr() {
				at.At("gateway").Errorf("gateway %q must be an address inside %s, without a prefix, and not its first", s.Gateway, s.Subnet)
			}
		}
	}
}
