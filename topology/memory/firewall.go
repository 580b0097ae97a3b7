package memory

import (
	"context"
	"slices"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

const firewallResource = topology.Resource("firewall")

type firewall struct{ d *Device }

func (f firewall) Firewall(ctx context.Context) (topology.FirewallState, error) {
	if err := f.d.control.call(ctx, OpFirewall, firewallResource); err != nil {
		return topology.FirewallState{}, err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	st := f.d.firewall
	st.Rules, st.Others = slices.Clone(st.Rules), slices.Clone(st.Others)
	return st, nil
}

func (f firewall) SetFirewall(ctx context.Context, c topology.FirewallConfig) error {
	if err := f.d.control.call(ctx, OpSetFirewall, firewallResource); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	f.d.SetFirewallByHand(topology.FirewallState{Present: true, Mark: c.Mark, Drop: c.Drop, Rules: slices.Clone(c.Rules)})
	return nil
}

func (f firewall) RemoveFirewall(ctx context.Context) error {
	if err := f.d.control.call(ctx, OpRemoveFirewall, firewallResource); err != nil {
		return err
	}
	f.d.SetFirewallByHand(topology.FirewallState{})
	return nil
}

func (f firewall) CheckpointFirewall(ctx context.Context, window time.Duration) (topology.Checkpoint, error) {
	if err := f.d.control.call(ctx, OpCheckpointFirewall, firewallResource); err != nil {
		return nil, err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	before := f.d.firewall
	return f.d.checkpoint(firewallResource, window, func() { f.d.firewall = before }), nil
}

// SetFirewallByHand changes what is in our table of the firewall by hand.
func (d *Device) SetFirewallByHand(st topology.FirewallState) {
	d.hands(func() {
		d.firewall = st
		d.changed(firewallResource)
	})
}

// AddRuleByHand adds a rule to our table that no score could ask for.
func (d *Device) AddRuleByHand(text string) {
	d.hands(func() {
		d.firewall.Rules = append(slices.Clone(d.firewall.Rules), topology.FirewallRule{Foreign: text})
		d.changed(firewallResource)
	})
}
