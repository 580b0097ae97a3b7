package standard_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/firewall"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

func init() {
	others["firewall.input"] = []func(reflect.Value){set(score.InputAccept)}
	others["firewall.allow"] = []func(reflect.Value){set([]score.Allow(nil)), set([]score.Allow{{Interface: "eth1"}})}
	others["firewall.icmp"] = []func(reflect.Value){set(new(false))}
	others["firewall.confirm"] = []func(reflect.Value){set(&score.Confirm{Connect: "192.0.2.1:53"})}
}

var guarded = score.Firewall{Input: score.InputDrop, Allow: []score.Allow{{Ports: []score.PortSpan{{First: 22}}}}}

func TestFirewall(t *testing.T) {
	r := newRig(t)
	s := score.Firewall{Input: score.InputDrop, ICMP: new(false), Allow: []score.Allow{
		{Ports: []score.PortSpan{{First: 22}, {First: 8000, More: 10}}, From: []string{"192.0.2.0/24", "2001:db8::/32"}, Interface: "eth0"},
		{From: []string{"198.51.100.7/32"}},
		{Ports: []score.PortSpan{{First: 5353}}, Protocol: "udp"},
	}}
	st := r.play(s)
	r.want(st, interpret.Changed, "")
	o := read[firewall.Observed](t, st)
	want := []string{
		"ct state established,related accept",
		`iifname "lo" accept`,
		"icmpv6 type 130-136 accept",
		"udp sport 67 udp dport 68 accept",
		"ip6 saddr fe80::/10 udp sport 547 udp dport 546 accept",
		`iifname "eth0" ip saddr 192.0.2.0/24 tcp dport 22 accept`,
		`iifname "eth0" ip saddr 192.0.2.0/24 tcp dport 8000-8010 accept`,
		`iifname "eth0" ip6 saddr 2001:db8::/32 tcp dport 22 accept`,
		`iifname "eth0" ip6 saddr 2001:db8::/32 tcp dport 8000-8010 accept`,
		"ip saddr 198.51.100.7 accept",
		"udp dport 5353 accept",
	}
	if !o.Present || o.Input != score.InputDrop || !slices.Equal(o.Rules, want) {
		t.Errorf("got %+v\nwant %q", o, want)
	}
	r.settled(s)
	s.ICMP = nil
	st = r.play(s)
	r.want(st, interpret.Changed, "")
	if rules := read[firewall.Observed](t, st).Rules; !slices.Contains(rules, "meta l4proto icmp accept") || !slices.Contains(rules, "meta l4proto ipv6-icmp accept") {
		t.Errorf("got %q", rules)
	}
}

// Whatever somebody does inside of our table is drift, and is made right again.
func TestFirewallChangedByHand(t *testing.T) {
	good := func(r rig) topology.FirewallState {
		r.want(r.play(guarded), interpret.Changed, "")
		st, err := r.Firewall().Firewall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	tests := []struct {
		name   string
		change func(*topology.FirewallState)
		want   []string
	}{
		{"opened", func(st *topology.FirewallState) { st.Drop = false }, []string{"input mutate"}},
		{"rule added", func(st *topology.FirewallState) {
			st.Rules = append(st.Rules, topology.FirewallRule{Protocol: "tcp", Ports: topology.PortRange{First: 23, Last: 23}})
		}, []string{"rules mutate"}},
		{"foreign rule added", func(st *topology.FirewallState) {
			st.Rules = append(st.Rules, topology.FirewallRule{Foreign: "tcp dport 22 drop"})
		}, []string{"rules mutate"}},
		{"rule removed", func(st *topology.FirewallState) { st.Rules = st.Rules[1:] }, []string{"rules mutate"}},
		{"other order", func(st *topology.FirewallState) { slices.Reverse(st.Rules) }, []string{"rules mutate"}},
		{"twice", func(st *topology.FirewallState) { st.Rules = append(st.Rules, st.Rules[0]) }, []string{"rules mutate"}},
		{"chain added", func(st *topology.FirewallState) { st.Others = []string{`chain "more"`} }, []string{"others mutate"}},
		{"removed", func(st *topology.FirewallState) { *st = topology.FirewallState{} }, []string{"present create"}},
		{"all at once", func(st *topology.FirewallState) {
			st.Drop, st.Rules, st.Others = false, nil, []string{"flags 0x1"}
		}, []string{"input mutate", "rules mutate", "others mutate"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			st := good(r)
			st.Rules = slices.Clone(st.Rules)
			tt.change(&st)
			r.SetFirewallByHand(st)
			out := r.play(guarded)
			r.want(out, interpret.Changed, "")
			if got := fields(out); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			r.settled(guarded)
		})
	}
}

// A firewall that cuts the device off is taken back (cases 104).
func TestFirewallThatCutsOff(t *testing.T) {
	r := newRig(t)
	r.want(r.play(guarded), interpret.Changed, "")
	before := r.settled(guarded).Observed
	bad := score.Firewall{Input: score.InputDrop}

	st := r.with(bad, &open{prove: errors.New("no answer")}, nil)
	r.want(st, interpret.RolledBack, topology.CodeConnectivity)
	if string(st.Observed) != string(before) {
		t.Errorf("after it was taken back: %s", st.Observed)
	}
	r.settled(guarded)

	// What could not be done is taken back as well, and what could not be kept.
	for op, outcome := range map[memory.Op]interpret.Outcome{memory.OpSetFirewall: interpret.Failed, memory.OpCommitFirewall: interpret.RolledBack, memory.OpCheckpointFirewall: interpret.Failed} {
		r.FailOnce(op, "", topology.Faultf(topology.CodeIO, "the card is broken"))
		st := r.play(bad)
		r.want(st, outcome, topology.CodeIO)
		r.settled(guarded)
	}

	// What lets in everything needs no proof.
	rec := r.Record()
	r.want(r.with(score.Firewall{Input: score.InputAccept}, &open{prove: errors.New("no answer")}, nil), interpret.Changed, "")
	if got := ops(rec); !slices.Equal(got, []memory.Op{memory.OpSetFirewall}) {
		t.Errorf("it took %v", got)
	}
}
