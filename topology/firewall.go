package topology

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// HasFirewall is implemented by topologies that can filter what comes in.
type HasFirewall interface{ Firewall() Firewall }

// A FirewallConfig is all that is ours of the filter of a device. It governs what comes in
// for the device itself, not what is passed on to others, such as containers.
type FirewallConfig struct {
	Drop  bool           // what no rule lets in is dropped
	Rules []FirewallRule // each lets something in
	Mark  Mark
}

// A FirewallRule lets in what is of all that it says. Rules can be compared.
type FirewallRule struct {
	Interface   string // the network interface that it comes in by
	Established bool   // it belongs to a connection that was let in before, or that the device opened
	From        netip.Prefix
	Protocol    string    // tcp, udp, icmp or ipv6-icmp
	FromPorts   PortRange // ports of the sender
	Ports       PortRange // ports of the device
	Types       PortRange // types of ipv6-icmp messages
	// Foreign is set, and nothing else, if somebody else made the rule and it says what rules of ours never do.
	Foreign string
}

// A PortRange is a run of numbers. The zero value is no restriction.
type PortRange struct{ First, Last uint16 }

func (p PortRange) String() string {
	if p.First == p.Last {
		return fmt.Sprint(p.First)
	}
	return fmt.Sprintf("%d-%d", p.First, p.Last)
}

// String is the rule as administrators write it.
func (r FirewallRule) String() string {
	if r.Foreign != "" {
		return r.Foreign
	}
	var w []string
	say := func(when bool, words ...any) {
		if when {
			w = append(w, strings.TrimSuffix(fmt.Sprintln(words...), "\n"))
		}
	}
	say(r.Interface != "", "iifname", `"`+r.Interface+`"`)
	say(r.Established, "ct state established,related")
	family, source := "ip", r.From.String()
	if r.From.Addr().Is6() {
		family = "ip6"
	}
	if r.From.IsSingleIP() {
		source = r.From.Addr().String()
	}
	switch {
	case !r.From.IsValid():
	case r.From.Bits() == 0:
		say(true, "meta nfproto", map[string]string{"ip": "ipv4", "ip6": "ipv6"}[family])
	default:
		say(true, family, "saddr", source)
	}
	switch ports := r.FromPorts != (PortRange{}) || r.Ports != (PortRange{}); {
	case r.Types != (PortRange{}):
		say(true, "icmpv6 type", r.Types)
	case ports:
		say(r.FromPorts != (PortRange{}), r.Protocol, "sport", r.FromPorts)
		say(r.Ports != (PortRange{}), r.Protocol, "dport", r.Ports)
	default:
		say(r.Protocol != "", "meta l4proto", r.Protocol)
	}
	return strings.Join(append(w, "accept"), " ")
}

// MaxFirewallRules is how many rules a firewall may have.
const MaxFirewallRules = 512

// Check returns a fault, CodeInvalid, if c is not what a firewall can be.
func (c FirewallConfig) Check() error {
	if len(c.Rules) > MaxFirewallRules {
		return Faultf(CodeInvalid, "the firewall has %d rules, and may have %d: name fewer ports and sources, or larger ones", len(c.Rules), MaxFirewallRules)
	}
	for _, r := range c.Rules {
		ports := r.Protocol == "tcp" || r.Protocol == "udp"
		bad := r.Foreign != "" || len(r.Interface) > 15 || strings.ContainsAny(r.Interface, "\x00 /\"\n") || strings.HasSuffix(r.Interface, "*") ||
			!ports && r.Protocol != "" && r.Protocol != "icmp" && r.Protocol != "ipv6-icmp" ||
			!ports && (r.FromPorts != PortRange{} || r.Ports != PortRange{}) ||
			r.FromPorts.First > r.FromPorts.Last || r.Ports.First > r.Ports.Last ||
			r.Types != (PortRange{}) && (r.Protocol != "ipv6-icmp" || r.Types.First > r.Types.Last || r.Types.Last > 255) ||
			r.From != (netip.Prefix{}) && (!r.From.IsValid() || r.From != r.From.Masked() || r.From.Addr().Is4In6() || r.From.Addr().Zone() != "")
		if bad {
			return Faultf(CodeInvalid, "a firewall cannot have the rule %q", r)
		}
	}
	return nil
}

// FirewallState is what the device has.
type FirewallState struct {
	Present bool // our table is there
	Mark    Mark
	Drop    bool
	Rules   []FirewallRule // as the kernel has them, in their order
	Others  []string       // what else somebody put into our table
}

// FirewallReader observes the filter.
type FirewallReader interface {
	Firewall(ctx context.Context) (FirewallState, error)
}

// FirewallWriter changes the filter. It touches nothing of what others put beside our table,
// and no packet ever meets a part of a change.
type FirewallWriter interface {
	FirewallReader

	// SetFirewall makes the firewall be c, and nothing else. It does not survive a restart
	// of the device: whoever set it sets it again.
	SetFirewall(ctx context.Context, c FirewallConfig) error

	// RemoveFirewall removes it.
	RemoveFirewall(ctx context.Context) error

	// CheckpointFirewall makes a checkpoint of all that is in our table, also by others. A
	// table that could not be brought back as it is is a fault, CodeForeign. There is one
	// checkpoint at a time.
	CheckpointFirewall(ctx context.Context, window time.Duration) (Checkpoint, error)
}

// Firewall is the filter of what comes in.
type Firewall interface{ FirewallWriter }
