package memory_test

import (
	"context"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// firewallHands are the hands of the suite.
type firewallHands struct{ d *memory.Device }

func (h firewallHands) AddRule() error {
	h.d.AddRuleByHand("tcp dport 1 drop")
	return nil
}

func (h firewallHands) Dismantle() error {
	st, err := h.d.Firewall().Firewall(context.Background())
	if err == nil && len(st.Rules) > 0 {
		st.Rules = st.Rules[1:]
		h.d.SetFirewallByHand(st)
	}
	return err
}

func (h firewallHands) Theirs() error           { return nil } // a device in memory has ours only
func (h firewallHands) Others() (string, error) { return "", nil }

func (h firewallHands) NewProcess(*testing.T) (topology.Firewall, topology.Recoverer) {
	return h.d.Firewall(), h.d
}
