package conform

import (
	"context"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// A FirewallBench is a firewall to test. It is removed when the test is over.
type FirewallBench struct {
	Firewall  topology.Firewall
	Recoverer topology.Recoverer
	Events    topology.Events
	Hands     FirewallHands
}

// FirewallHands are an administrator with a firewall tool of his own.
type FirewallHands interface {
	// AddRule adds a rule to our table that rules of ours never are.
	AddRule() error
	// Dismantle removes one rule of ours.
	Dismantle() error
	// Theirs makes filters beside ours, and Others is all that is not ours, as text.
	Theirs() error
	Others() (string, error)
	// NewProcess forgets what the process that made a checkpoint knew, as a crash does.
	NewProcess(t *testing.T) (topology.Firewall, topology.Recoverer)
}

// Firewall is the suite of a firewall.
func Firewall(t *testing.T, bench func(*testing.T) FirewallBench) {
	suite(t, func(t *testing.T) FirewallBench {
		b := bench(t)
		after(t, func(ctx context.Context) {
			if err := b.Firewall.RemoveFirewall(ctx); err != nil {
				t.Errorf("cannot remove it: %v", err)
			}
		})
		return b
	}, firewallTests)
}

func (b FirewallBench) is(t *testing.T, want topology.FirewallConfig) {
	t.Helper()
	st, err := b.Firewall.Firewall(t.Context())
	ok(t, err)
	if !st.Present || st.Drop != want.Drop || st.Mark != want.Mark || len(st.Others) > 0 || len(st.Rules) != len(want.Rules) ||
		len(want.Rules) > 0 && !reflect.DeepEqual(st.Rules, want.Rules) {
		t.Fatalf("it is  %+v\n  want %+v", st, want)
	}
}

func (b FirewallBench) set(t *testing.T, c topology.FirewallConfig) {
	t.Helper()
	ok(t, b.Firewall.SetFirewall(t.Context(), c))
	b.is(t, c)
}

func port(n uint16) topology.PortRange { return topology.PortRange{First: n, Last: n} }

// guarded lets in what keeps a device in reach, and then all that rules can say.
func guarded() topology.FirewallConfig {
	return topology.FirewallConfig{Drop: true, Mark: "m/fw", Rules: []topology.FirewallRule{
		{Established: true},
		{Interface: "lo"},
		{Protocol: "icmp"},
		{Protocol: "ipv6-icmp", Types: topology.PortRange{First: 130, Last: 136}},
		{Protocol: "udp", FromPorts: port(67), Ports: port(68)},
		{Protocol: "udp", From: netip.MustParsePrefix("fe80::/10"), FromPorts: port(547), Ports: port(546)},
		{Protocol: "tcp", Ports: port(22)},
		{Protocol: "tcp", Ports: topology.PortRange{First: 8000, Last: 8010}, From: netip.MustParsePrefix("192.0.2.0/24"), Interface: "eth0"},
		{Protocol: "udp", Ports: topology.PortRange{First: 1, Last: 65535}, From: netip.MustParsePrefix("2001:db8::/33")},
		{Protocol: "tcp", Ports: port(443), From: netip.MustParsePrefix("198.51.100.7/32")},
		{Protocol: "tcp", From: netip.MustParsePrefix("2001:db8::1/128")},
		{From: netip.MustParsePrefix("0.0.0.0/0"), Interface: "a-long-name.123"},
		{Protocol: "ipv6-icmp", Types: port(128)},
	}}
}

var firewallTests = []test[FirewallBench]{
	{"set, changed and removed", func(t *testing.T, b FirewallBench) {
		st, err := b.Firewall.Firewall(t.Context())
		ok(t, err)
		if st.Present {
			t.Fatalf("there is one before: %+v", st)
		}
		b.set(t, guarded())
		b.set(t, guarded())
		b.set(t, topology.FirewallConfig{Mark: "other/score", Rules: guarded().Rules[:1]})
		b.set(t, topology.FirewallConfig{})
		for range 2 {
			ok(t, b.Firewall.RemoveFirewall(t.Context()))
			if st, err = b.Firewall.Firewall(t.Context()); err != nil || st.Present {
				t.Fatalf("removed: %+v, %v", st, err)
			}
		}
	}},
	{"changed by hand", func(t *testing.T, b FirewallBench) {
		b.set(t, guarded())
		hands(t, b.Hands.AddRule())
		st, err := b.Firewall.Firewall(t.Context())
		ok(t, err)
		if n := len(st.Rules) - 1; n != len(guarded().Rules) || st.Rules[n].Foreign == "" || st.Rules[n].String() == "" {
			t.Fatalf("a rule that somebody added is seen as %+v", st.Rules)
		}
		b.set(t, guarded())
		hands(t, b.Hands.Dismantle())
		if st, err = b.Firewall.Firewall(t.Context()); err != nil || len(st.Rules) != len(guarded().Rules)-1 {
			t.Fatalf("a rule that somebody removed: %+v, %v", st, err)
		}
	}},
	{"changed by hand, and seen at once (H25)", func(t *testing.T, b FirewallBench) {
		b.set(t, guarded())
		seen := EventBench{Events: b.Events}.watch(t, "firewall")
		told(t, seen, "firewall", b.Hands.AddRule)
		quiet(seen)
		told(t, seen, "firewall", b.Hands.Dismantle)
	}},
	{"those of others are left alone", func(t *testing.T, b FirewallBench) {
		hands(t, b.Hands.Theirs())
		before, err := b.Hands.Others()
		hands(t, err)
		b.set(t, guarded())
		cp, err := b.Firewall.CheckpointFirewall(t.Context(), time.Minute)
		ok(t, err)
		b.set(t, topology.FirewallConfig{Drop: true})
		ok(t, cp.Rollback(t.Context()))
		ok(t, b.Firewall.RemoveFirewall(t.Context()))
		now, err := b.Hands.Others()
		hands(t, err)
		equal(t, "what others have", now, before)
	}},
	{"rule that there cannot be", func(t *testing.T, b FirewallBench) {
		b.set(t, guarded())
		for _, r := range []topology.FirewallRule{
			{Ports: port(22)}, {Protocol: "sctp"}, {Protocol: "icmp", Ports: port(1)}, {Interface: "longer-than-there-are"}, {Interface: "a b"},
			{Protocol: "tcp", Ports: topology.PortRange{First: 2, Last: 1}}, {From: netip.PrefixFrom(netip.MustParseAddr("192.0.2.1"), 24)},
			{From: netip.MustParsePrefix("::ffff:192.0.2.1/128")}, {Protocol: "udp", Types: port(1)}, {Foreign: "drop"}, {Interface: "eth*"},
		} {
			fails(t, b.Firewall.SetFirewall(t.Context(), topology.FirewallConfig{Drop: true, Rules: []topology.FirewallRule{r}}), topology.CodeInvalid)
		}
		many := topology.FirewallConfig{Drop: true, Rules: make([]topology.FirewallRule, topology.MaxFirewallRules+1)}
		fails(t, b.Firewall.SetFirewall(t.Context(), many), topology.CodeInvalid)
		b.is(t, guarded())
		many.Rules = many.Rules[1:]
		for i := range many.Rules {
			many.Rules[i] = guarded().Rules[7]
		}
		b.set(t, many)
	}},
	{"canceled", func(t *testing.T, b FirewallBench) {
		b.set(t, guarded())
		fails(t, b.Firewall.SetFirewall(canceled(t), topology.FirewallConfig{}), topology.CodeCanceled)
		fails(t, b.Firewall.RemoveFirewall(canceled(t)), topology.CodeCanceled)
		_, err := b.Firewall.CheckpointFirewall(canceled(t), time.Minute)
		fails(t, err, topology.CodeCanceled)
		b.is(t, guarded())
	}},
	{"checkpoint that is kept", func(t *testing.T, b FirewallBench) {
		b.set(t, guarded())
		cp, err := b.Firewall.CheckpointFirewall(t.Context(), time.Minute)
		ok(t, err)
		other := topology.FirewallConfig{Mark: "m/new", Rules: guarded().Rules[2:]}
		b.set(t, other)
		ok(t, cp.Commit(t.Context()))
		back, err := b.Recoverer.Recover(t.Context())
		ok(t, err)
		if len(back) > 0 {
			t.Errorf("what was kept was taken back: %v", back)
		}
		b.is(t, other)
	}},
	{"checkpoint that is rolled back", func(t *testing.T, b FirewallBench) {
		b.set(t, guarded())
		cp, err := b.Firewall.CheckpointFirewall(t.Context(), time.Minute)
		ok(t, err)
		b.set(t, topology.FirewallConfig{Drop: true})
		ok(t, cp.Rollback(t.Context()))
		b.is(t, guarded())
		fails(t, cp.Commit(t.Context()), topology.CodeConnectivity)
		// Nothing was there.
		ok(t, b.Firewall.RemoveFirewall(t.Context()))
		cp, err = b.Firewall.CheckpointFirewall(t.Context(), time.Minute)
		ok(t, err)
		b.set(t, topology.FirewallConfig{Drop: true})
		ok(t, cp.Rollback(t.Context()))
		if st, err := b.Firewall.Firewall(t.Context()); err != nil || st.Present {
			t.Errorf("rolled back to nothing: %+v, %v", st, err)
		}
	}},
	{"checkpoint whose window is over", func(t *testing.T, b FirewallBench) {
		b.set(t, guarded())
		cp, err := b.Firewall.CheckpointFirewall(t.Context(), time.Second)
		ok(t, err)
		ok(t, b.Firewall.SetFirewall(t.Context(), topology.FirewallConfig{Drop: true}))
		eventually(t, "that it comes back", b.Firewall.Firewall, func(st topology.FirewallState) bool { return len(st.Rules) > 0 })
		b.is(t, guarded())
		fails(t, cp.Commit(t.Context()), topology.CodeConnectivity)
		ok(t, cp.Rollback(t.Context()))
		b.is(t, guarded())
	}},
	{"checkpoint of a process that is gone", func(t *testing.T, b FirewallBench) {
		b.set(t, guarded())
		_, err := b.Firewall.CheckpointFirewall(t.Context(), time.Hour)
		ok(t, err)
		b.set(t, topology.FirewallConfig{Drop: true})
		fw, rec := b.Hands.NewProcess(t)
		back, err := rec.Recover(t.Context())
		ok(t, err)
		if len(back) != 1 || back[0] != "firewall" {
			t.Errorf("taken back: %v", back)
		}
		b.Firewall = fw
		b.is(t, guarded())
		if back, err = rec.Recover(t.Context()); err != nil || len(back) > 0 {
			t.Errorf("the second time: %v, %v", back, err)
		}
		cp, err := fw.CheckpointFirewall(t.Context(), time.Hour) // and it goes on
		ok(t, err)
		ok(t, cp.Commit(t.Context()))
	}},
}
