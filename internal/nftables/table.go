package nftables

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// A Table is a table of the family inet. It can be kept as JSON.
type Table struct {
	Name     string
	Flags    uint32 `json:",omitempty"`
	UserData []byte `json:",omitempty"`
	// Others counts what is in it beside chains: sets, maps, objects, flow tables.
	Others int `json:",omitempty"`
	Chains []Chain
}

// A Chain is a list of rules.
type Chain struct {
	Name     string
	Hook     *Hook  `json:",omitempty"` // nil: rules of others jump to it
	Flags    uint32 `json:",omitempty"`
	UserData []byte `json:",omitempty"`
	Rules    []Rule `json:",omitempty"`
}

// A Hook is where a chain is asked.
type Hook struct {
	Type     string // filter, nat, route
	Number   uint32
	Priority int32
	Policy   uint32 // the verdict of packets that no rule decides about
}

// A Rule is a list of expressions, as the kernel has them.
type Rule struct {
	Exprs    []byte
	UserData []byte `json:",omitempty"`
}

// What one table may hold at most, to be read.
const (
	maxChains = 256
	maxRules  = 4096
	maxAttrs  = 64
)

// Numbers that golang.org/x/sys lacks.
const (
	tableUserData = 6
	chainFlags    = 10
	chainUserData = 12
	maxTries      = 10
)

// Read returns a table, or nil if there is none of that name.
func Read(ctx context.Context, name string) (*Table, error) {
	for try := 1; ; try++ {
		t, err := readOnce(ctx, name)
		switch {
		case errors.Is(err, unix.ENOENT):
			return nil, nil
		case errors.Is(err, errAgain) && try < maxTries:
			continue
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EAFNOSUPPORT), errors.Is(err, unix.EOPNOTSUPP):
			return nil, ErrNoNFTables
		}
		return t, err
	}
}

// readOnce reads on a socket of its own: one where a list was not read to its end gives no other.
func readOnce(ctx context.Context, name string) (*Table, error) {
	c, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	defer c.close()
	return c.read(name)
}

func (c *conn) read(name string) (*Table, error) {
	var t Table
	var use uint32
	var first uint16
	err := c.ask(unix.NFT_MSG_GETTABLE, 0, addText(nil, unix.NFTA_TABLE_NAME, name), func(generation uint16, b []byte) (err error) {
		first = generation
		t, use, err = parseTable(b)
		return err
	})
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	err = c.ask(unix.NFT_MSG_GETCHAIN, unix.NLM_F_DUMP, nil, func(generation uint16, b []byte) error {
		if generation != first {
			return errAgain
		}
		table, ch, err := parseChain(b)
		if err != nil || table != name {
			return err
		}
		if len(t.Chains) == maxChains {
			return fmt.Errorf("cannot read the table %s of nftables: it has more than %d chains; nft delete table inet %s removes it", name, maxChains, name)
		}
		at[ch.Name] = len(t.Chains)
		t.Chains = append(t.Chains, ch)
		return nil
	})
	if err != nil {
		return nil, err
	}
	n := 0
	err = c.ask(unix.NFT_MSG_GETRULE, unix.NLM_F_DUMP, addText(nil, unix.NFTA_RULE_TABLE, name), func(generation uint16, b []byte) error {
		if generation != first {
			return errAgain
		}
		table, chain, r, err := parseRule(b)
		if err != nil || table != name {
			return err
		}
		i, ok := at[chain]
		if n++; !ok || n > maxRules {
			return fmt.Errorf("cannot read the table %s of nftables: it has more than %d rules, or one without a chain; nft delete table inet %s removes it", name, maxRules, name)
		}
		t.Chains[i].Rules = append(t.Chains[i].Rules, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.Others = max(int(use)-len(t.Chains), 0)
	return &t, nil
}

// Replace makes t, in the place of the table of that name if there is one. It makes no sets
// or other objects.
func Replace(ctx context.Context, t Table) error {
	c, err := dial(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	err = c.transact(func(message func(typ, flags uint16, attrs []byte)) {
		c.drop(message, t.Name)
		message(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, t.attrs())
		for _, ch := range t.Chains {
			message(unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE, ch.attrs(t.Name))
		}
		for _, ch := range t.Chains {
			for _, r := range ch.Rules {
				message(unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, r.attrs(t.Name, ch.Name))
			}
		}
	})
	return supported(err)
}

// Remove removes a table with all that is in it. One that is not there is no error.
func Remove(ctx context.Context, name string) error {
	c, err := dial(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	return supported(c.transact(func(message func(typ, flags uint16, attrs []byte)) { c.drop(message, name) }))
}

// drop removes a table whether it is there or not: to remove what is not there is an error, to make what is there none.
func (c *conn) drop(message func(typ, flags uint16, attrs []byte), name string) {
	table := addText(nil, unix.NFTA_TABLE_NAME, name)
	message(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, table)
	message(unix.NFT_MSG_DELTABLE, 0, table)
}

func supported(err error) error {
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("%w, or lacks a part of it: %v", ErrNoNFTables, err)
	}
	return err
}

func (t Table) attrs() []byte {
	b := addText(nil, unix.NFTA_TABLE_NAME, t.Name)
	b = addNumber(b, unix.NFTA_TABLE_FLAGS, t.Flags)
	return addData(b, tableUserData, t.UserData)
}

func (ch Chain) attrs(table string) []byte {
	b := addText(nil, unix.NFTA_CHAIN_TABLE, table)
	b = addText(b, unix.NFTA_CHAIN_NAME, ch.Name)
	if h := ch.Hook; h != nil {
		b = addNested(b, unix.NFTA_CHAIN_HOOK, addNumber(addNumber(nil, unix.NFTA_HOOK_HOOKNUM, h.Number), unix.NFTA_HOOK_PRIORITY, uint32(h.Priority)))
		b = addText(b, unix.NFTA_CHAIN_TYPE, h.Type)
		b = addNumber(b, unix.NFTA_CHAIN_POLICY, h.Policy)
	}
	if ch.Flags &^= 1; ch.Flags != 0 { // the kernel says by itself that a chain has a hook
		b = addNumber(b, chainFlags, ch.Flags)
	}
	return addData(b, chainUserData, ch.UserData)
}

func (r Rule) attrs(table, chain string) []byte {
	b := addText(nil, unix.NFTA_RULE_TABLE, table)
	b = addText(b, unix.NFTA_RULE_CHAIN, chain)
	b = addNested(b, unix.NFTA_RULE_EXPRESSIONS, r.Exprs)
	return addData(b, unix.NFTA_RULE_USERDATA, r.UserData)
}

func addData(b []byte, typ uint16, data []byte) []byte {
	if len(data) == 0 {
		return b
	}
	return add(b, typ, data)
}

func parseTable(b []byte) (t Table, use uint32, err error) {
	list, err := parse(b, maxAttrs)
	for _, a := range list {
		switch a.typ {
		case unix.NFTA_TABLE_NAME:
			t.Name = a.text()
		case unix.NFTA_TABLE_FLAGS:
			t.Flags, _ = a.number()
		case unix.NFTA_TABLE_USE:
			use, _ = a.number()
		case tableUserData:
			t.UserData = append([]byte(nil), a.val...)
		}
	}
	return t, use, err
}

func parseChain(b []byte) (table string, ch Chain, err error) {
	list, err := parse(b, maxAttrs)
	if err != nil {
		return "", ch, err
	}
	var h Hook
	for _, a := range list {
		switch a.typ {
		case unix.NFTA_CHAIN_TABLE:
			table = a.text()
		case unix.NFTA_CHAIN_NAME:
			ch.Name = a.text()
		case unix.NFTA_CHAIN_TYPE:
			h.Type = a.text()
		case unix.NFTA_CHAIN_POLICY:
			h.Policy, _ = a.number()
		case chainFlags:
			ch.Flags, _ = a.number()
		case chainUserData:
			ch.UserData = append([]byte(nil), a.val...)
		case unix.NFTA_CHAIN_HOOK:
			ch.Hook = &h
			inner, err := parse(a.val, maxAttrs)
			if err != nil {
				return "", ch, err
			}
			for _, a := range inner {
				n, _ := a.number()
				switch a.typ {
				case unix.NFTA_HOOK_HOOKNUM:
					h.Number = n
				case unix.NFTA_HOOK_PRIORITY:
					h.Priority = int32(n)
				}
			}
		}
	}
	return table, ch, nil
}

func parseRule(b []byte) (table, chain string, r Rule, err error) {
	list, err := parse(b, maxAttrs)
	for _, a := range list {
		switch a.typ {
		case unix.NFTA_RULE_TABLE:
			table = a.text()
		case unix.NFTA_RULE_CHAIN:
			chain = a.text()
		case unix.NFTA_RULE_EXPRESSIONS:
			r.Exprs = append([]byte(nil), a.val...)
		case unix.NFTA_RULE_USERDATA:
			r.UserData = append([]byte(nil), a.val...)
		}
	}
	return table, chain, r, err
}
