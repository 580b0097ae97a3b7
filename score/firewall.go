package score

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
)

func init() {
	Register(Definition[Firewall]{
		Doc:   "What may come in to the device from the network.",
		Needs: []Capability{CapFirewall},
		Sample: Firewall{Input: InputDrop, Allow: []Allow{
			{Ports: []PortSpan{{First: 22}}, From: []string{"192.0.2.0/24"}},
			{Ports: []PortSpan{{First: 8000, More: 10}}, Interface: "eth0"},
		}},
	})
}

// KindFirewall is the kind of Firewall.
const KindFirewall Kind = "firewall"

// Input is what becomes of what comes in and is not allowed by name.
type Input string

// Inputs.
const (
	InputAccept Input = "accept"
	InputDrop   Input = "drop"
)

// Firewall is the one table of the packet filter that is the fleet's; those of others are left alone, and what they drop
// stays dropped. It governs what comes in for the device itself. Answers to what the device asked, traffic inside of the
// device, IPv6 neighbour discovery and DHCP answers always come in. What the device passes on is not touched: a port that
// a container publishes is passed on to it before this firewall is asked, so allow neither opens nor closes it; publish
// it on one address, such as 127.0.0.1, to restrict it.
type Firewall struct {
	// Input is what becomes of what comes in and is not allowed below.
	Input Input `json:"input" effect:"mutate" jsonschema:"enum=accept,enum=drop,example=drop"`
	// Allow lists what comes in.
	Allow []Allow `json:"allow,omitempty" effect:"mutate"`
	// ICMP lets in what tells about the network, such as ping. Without it only what IPv6 cannot live without comes in. If it
	// is left out, true.
	ICMP *bool `json:"icmp,omitempty" effect:"mutate" jsonschema:"default=true"`
	// Confirm says how a change proves that the fleet still reaches the device; otherwise what was there before comes back.
	Confirm *Confirm `json:"confirm,omitempty" effect:"none"`
}

// An Allow lets in what is of all that it says.
type Allow struct {
	// Ports of the device. If they are left out, all.
	Ports []PortSpan `json:"ports,omitempty"`
	// Protocol of the ports. If it is left out, tcp if there are ports, and any protocol else.
	Protocol string `json:"protocol,omitempty" jsonschema:"enum=tcp,enum=udp,example=tcp"`
	// From lists networks that it comes from. If they are left out, any.
	From []string `json:"from,omitempty" jsonschema:"example=192.0.2.0/24,example=2001:db8::/32"`
	// Interface that it comes in by. If it is left out, any.
	Interface string `json:"interface,omitempty" jsonschema:"maxLength=15,pattern=^[A-Za-z0-9][A-Za-z0-9_.-]*$,example=eth0"`
}

// A PortSpan is a port of the device, "22", or a run of ports, "8000-8010".
type PortSpan struct {
	First uint16
	More  uint16 // how many follow the first
}

// PortSpanPattern is the shape of the text of a PortSpan.
const PortSpanPattern = `^[0-9]{1,5}(-[0-9]{1,5})?$`

var portSpanRE = regexp.MustCompile(PortSpanPattern)

func (p PortSpan) String() string { return span(p.First, p.More) }

// MarshalText writes the canonical text.
func (p PortSpan) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads any spelling.
func (p *PortSpan) UnmarshalText(b []byte) error {
	first, more, ok := parseSpan(string(b))
	if !ok || !portSpanRE.Match(b) {
		return fmt.Errorf("cannot read port %q: want \"22\" or \"8000-8010\"", b)
	}
	*p = PortSpan{first, more}
	return nil
}

// Kind is KindFirewall.
func (Firewall) Kind() Kind { return KindFirewall }

// Claims is the one firewall that a device has.
func (Firewall) Claims() []Resource { return []Resource{"firewall"} }

// Confirmation is how a change proves itself.
func (f Firewall) Confirmation() Confirm {
	if f.Confirm == nil {
		return Confirm{}
	}
	return *f.Confirm
}

// AddFirewall adds the firewall to a draft.
func AddFirewall[P Firewalls](d *Draft[P], id ID, f Firewall) Ref[Firewall] { return add(d, id, f) }

var interfaceRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$`)

// maxFirewallRules is how many rules the lists of a firewall may come to, one for each port and network.
const maxFirewallRules = 500

// Check refuses what the filter would, and warns about what cuts people off.
func (f Firewall) Check(r *Report) {
	if words := []string{string(InputAccept), string(InputDrop)}; !slices.Contains(words, string(f.Input)) {
		r.At("input").Errorf("unknown input %q%s", f.Input, didYouMean(string(f.Input), words))
	}
	rules, ssh := 0, false
	for i, a := range f.Allow {
		a.check(r.At("allow", i))
		rules += max(len(a.Ports), 1) * max(len(a.From), 1)
		ssh = ssh || a.lets(22)
	}
	if rules > maxFirewallRules {
		r.At("allow").Errorf("allow comes to %d rules, one for each port and network, and may come to %d: name fewer ports and networks, or larger ones", rules, maxFirewallRules)
	}
	switch {
	case f.Input == InputAccept && len(f.Allow) > 0:
		r.At("allow").Warnf("allow has no effect with input: accept, which lets in everything")
	case f.Input == InputDrop && !ssh:
		r.At("allow").Warnf("nothing lets in ssh (port 22): who looks after the device by ssh cannot any more")
	}
	if f.Confirm != nil {
		f.Confirm.check(r.At("confirm"))
	}
}

// lets reports whether a lets in a TCP port, from anywhere.
func (a Allow) lets(port int) bool {
	return a.Protocol != "udp" && (len(a.Ports) == 0 || slices.ContainsFunc(a.Ports, func(p PortSpan) bool {
		return int(p.First) <= port && port <= int(p.First)+int(p.More)
	}))
}

func (a Allow) check(r *Report) {
	if len(a.Ports) == 0 && len(a.From) == 0 && a.Interface == "" {
		r.Errorf("it allows everything: give ports, from or an interface, or write input: accept")
	}
	for i, p := range a.Ports {
		if p.First == 0 || int(p.First)+int(p.More) > 65535 {
			r.At("ports", i).Errorf("port %s is out of range: 1 to 65535", p)
		}
	}
	if words := []string{"tcp", "udp"}; a.Protocol != "" && !slices.Contains(words, a.Protocol) {
		r.At("protocol").Errorf("unknown protocol %q%s", a.Protocol, didYouMean(a.Protocol, words))
	}
	for i, from := range a.From {
		checkNetwork(r.At("from", i), from)
	}
	if a.Interface != "" && !interfaceRE.MatchString(a.Interface) {
		r.At("interface").Errorf("interface %q must be letters, digits, '_', '.' and '-', at most 15, such as eth0", a.Interface)
	}
}

// checkNetwork refuses what is no network, and what is one only at second sight.
func checkNetwork(r *Report, text string) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
			r.Errorf("from is %q, an address without a prefix: write %s/%s for this address alone", text, text, strconv.Itoa(a.BitLen()))
			return
		}
		r.Errorf("from is %q: want a network such as 192.0.2.0/24 or 2001:db8::/32", text)
		return
	}
	switch {
	case p.Addr().Is4In6():
		r.Errorf("from is %q, an IPv4 address written as IPv6: write it as IPv4", text)
	case p != p.Masked():
		r.Errorf("from is %q, an address inside of the network: write %s", text, p.Masked())
	case p.String() != text:
		r.Errorf("from is %q: write %s", text, p)
	}
}
