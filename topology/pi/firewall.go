package pi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/internal/nftables"
	"github.com/continuo-fleet/continuo/topology"
)

// firewall is the table inet continuo of nftables. It is kept by the kernel and nowhere else.
type firewall struct {
	below    bool // the device is a directory, see Options.Root
	services *services
	dir      string   // of open checkpoints
	revert   []string // the program that ends them, see Options.Revert
}

const (
	firewallTable = "continuo"
	firewallChain = "input"
	// commentPrefix stands before the mark in the comment of the table, for people.
	commentPrefix = "continuo: "
	commentType   = 0 // NFTNL_UDATA_TABLE_COMMENT, as nft shows it
	drop, accept  = 0, 1
)

// hookInput is where the chain is asked. The policy is that of the configuration.
var hookInput = nftables.Hook{Type: "filter", Number: unix.NF_INET_LOCAL_IN, Priority: 0}

// Firewall reads our table.
func (f *firewall) Firewall(ctx context.Context) (topology.FirewallState, error) {
	t, err := f.read(ctx)
	if t == nil || err != nil {
		return topology.FirewallState{}, err
	}
	return firewallState(*t), nil
}

func (f *firewall) read(ctx context.Context) (*nftables.Table, error) {
	if f.below {
		return nil, errNoMachine
	}
	t, err := nftables.Read(ctx, firewallTable)
	return t, nftFault("read", err)
}

// firewallState says what is in a table.
func firewallState(t nftables.Table) topology.FirewallState {
	st := topology.FirewallState{Present: true, Mark: commented(t.UserData)}
	other := func(format string, args ...any) { st.Others = append(st.Others, fmt.Sprintf(format, args...)) }
	if t.Flags != 0 {
		other("flags %#x", t.Flags)
	}
	if t.Others > 0 {
		other("%d sets or other objects", t.Others)
	}
	found := false
	for _, ch := range t.Chains {
		h := ch.Hook
		if ch.Name != firewallChain || h == nil || h.Type != hookInput.Type || h.Number != hookInput.Number || h.Priority != hookInput.Priority {
			other("chain %.64q", ch.Name)
			continue
		}
		found, st.Drop = true, h.Policy == drop
		for _, r := range ch.Rules {
			st.Rules = append(st.Rules, ruleOf(r))
		}
	}
	if !found {
		other("no chain %s", firewallChain)
	}
	return st
}

// SetFirewall replaces our table.
func (f *firewall) SetFirewall(ctx context.Context, c topology.FirewallConfig) error {
	if err := c.Check(); err != nil {
		return err
	}
	if f.below {
		_, err := f.read(ctx)
		return err
	}
	comment := commentPrefix + string(c.Mark) + "\x00"
	if len(comment) > 250 { // the kernel keeps 256 bytes
		return topology.Faultf(topology.CodeInvalid, "the mark %q is too long for the firewall", c.Mark)
	}
	hook := hookInput
	if hook.Policy = accept; c.Drop {
		hook.Policy = drop
	}
	chain := nftables.Chain{Name: firewallChain, Hook: &hook}
	for _, r := range c.Rules {
		chain.Rules = append(chain.Rules, nftables.NewRule(exprs(r)))
	}
	return nftFault("set", nftables.Replace(ctx, nftables.Table{
		Name: firewallTable, UserData: append([]byte{commentType, byte(len(comment))}, comment...), Chains: []nftables.Chain{chain},
	}))
}

// RemoveFirewall removes our table.
func (f *firewall) RemoveFirewall(ctx context.Context) error {
	if t, err := f.read(ctx); t == nil || err != nil {
		return err
	}
	return nftFault("remove", nftables.Remove(ctx, firewallTable))
}

// commented is the mark in the comment of a table.
func commented(data []byte) topology.Mark {
	for len(data) >= 2 && len(data) >= 2+int(data[1]) {
		if data[0] == commentType {
			text, _, _ := strings.Cut(string(data[2:2+int(data[1])]), "\x00")
			if mark, ours := strings.CutPrefix(text, commentPrefix); ours {
				return topology.Mark(mark)
			}
		}
		data = data[2+int(data[1]):]
	}
	return ""
}

func nftFault(verb string, err error) error {
	if err == nil {
		return nil
	}
	f := topology.FaultOf(err)
	switch {
	case errors.Is(err, nftables.ErrNoNFTables):
		return topology.Faultf(topology.CodeUnavailable, "cannot %s the firewall: %v", verb, err)
	case f.Code == topology.CodePermission:
		return topology.Faultf(f.Code, "cannot %s the firewall: %v; the unit of the agent must leave it CAP_NET_ADMIN (continuo-agent unit prints one that does)", verb, err)
	}
	return topology.Faultf(f.Code, "cannot %s the firewall: %v", verb, err)
}
