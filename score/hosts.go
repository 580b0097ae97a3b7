package score

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

func init() {
	Register(Definition[Hosts]{
		Doc:    "Names of other machines, in the hosts file of the device.",
		Needs:  []Capability{CapFiles},
		Sample: Hosts{Entries: []HostEntry{{Address: "192.0.2.10", Names: []string{"broker.example.org", "broker"}}}},
	})
}

// KindHosts is the kind of Hosts.
const KindHosts Kind = "hosts"

// Hosts is a block of lines in /etc/hosts that is the score's own. All other lines stay as they
// are, byte for byte. One score of a device can have it.
type Hosts struct {
	// Entries are the lines of the block, in this order: of two that give one name, the first counts.
	Entries []HostEntry `json:"entries" effect:"mutate"`
}

// A HostEntry gives names to an address.
type HostEntry struct {
	// Address is an IPv4 or IPv6 address.
	Address string `json:"address" jsonschema:"maxLength=45,example=192.0.2.10"`
	// Names of the machine, the one that a look-up of the address answers with first.
	Names []string `json:"names" jsonschema:"example=broker.example.org"`
}

// HostsFile is the file that Hosts is a block of.
const HostsFile = "/etc/hosts"

// Kind is KindHosts.
func (Hosts) Kind() Kind { return KindHosts }

// Claims is the hosts file: with a score of kind file for it, there would be two owners.
func (Hosts) Claims() []Resource { return []Resource{fileResource(HostsFile)} }

// AddHosts adds names of machines to a draft.
func AddHosts[P Files](d *Draft[P], id ID, h Hosts) Ref[Hosts] { return add(d, id, h) }

var machineRE = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*$`)

// Bounds of a hosts block.
const (
	maxHostEntries = 1000
	maxHostNames   = 50
)

// Check refuses what is no address and no name.
func (h Hosts) Check(r *Report) {
	if len(h.Entries) == 0 {
		r.At("entries").Errorf("no entry: leave the score out if there is none")
	}
	if len(h.Entries) > maxHostEntries {
		r.At("entries").Errorf("%d entries are more than %d: names for so many machines belong in a name server", len(h.Entries), maxHostEntries)
		return
	}
	type family struct {
		name string
		four bool
	}
	seen := map[family]string{}
	for i, e := range h.Entries {
		at := r.At("entries", i)
		ip, err := netip.ParseAddr(e.Address)
		if err != nil || ip.Zone() != "" || ip.Is4In6() {
			at.At("address").Errorf("address %.50q is no IPv4 or IPv6 address", e.Address)
		} else if ip.String() != e.Address {
			at.At("address").Errorf("address %s is written %s", e.Address, ip)
		}
		if len(e.Names) == 0 || len(e.Names) > maxHostNames {
			at.At("names").Errorf("an entry has 1 to %d names, this one has %d", maxHostNames, len(e.Names))
		}
		for j, name := range e.Names {
			if len(name) > 253 || !machineRE.MatchString(name) {
				at.At("names", j).Errorf("name %.70q is no name of a machine: letters, digits, '-' and '.', no '.' at its end", name)
				continue
			}
			if strings.EqualFold(name, "localhost") {
				at.At("names", j).Errorf("localhost is the device itself, and stays so")
			}
			if slices.Contains(e.Names[:j], name) {
				at.At("names", j).Errorf("name %q is listed twice", name)
				continue
			}
			if first, twice := seen[family{name, ip.Is4()}]; twice {
				at.At("names", j).Warnf("name %q has the address %s already, and the first counts", name, first)
			} else {
				seen[family{name, ip.Is4()}] = e.Address
			}
		}
	}
}
