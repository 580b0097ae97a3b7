// Package firewall interprets score.Firewall.
//
// The rules are asked of the kernel and compared one by one, so that a rule changed by
// hand is seen, whoever changed it and however. They live in the kernel only: after a
// start of the device the agent sets them again, which is drift like any other.
package firewall

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer.
type Needs interface{ topology.HasFirewall }

// Kind binds the interpreter to t.
func Kind[T Needs](t T) interpret.Binding {
	f := t.Firewall()
	return interpret.Of[score.Firewall, Observed, topology.FirewallReader, topology.FirewallWriter](interpreter{}, f, f)
}

// Observed is the actual firewall.
type Observed struct {
	// Present is true if the table of the fleet is there.
	Present bool `json:"present"`
	// Input is what becomes of what no rule lets in: accept or drop.
	Input score.Input `json:"input,omitempty"`
	// Rules are as the kernel has them, in the words of nft.
	Rules []string `json:"rules,omitempty"`
	// Others is what somebody else put into the table.
	Others []string `json:"others,omitempty"`

	rules []topology.FirewallRule
	mark  topology.Mark
}

// Exists reports whether the table is there.
func (o Observed) Exists() bool { return o.Present }

// OwnedBy is the mark in the comment of the table.
func (o Observed) OwnedBy() topology.Mark { return o.mark }

// Conditions: what is there is in force.
func (o Observed) Conditions() interpret.Conditions {
	return interpret.Conditions{Effective: new(o.Present)}
}

// Fields of changes.
const (
	fieldPresent = "present"
	fieldInput   = "input"
	fieldRules   = "rules"
	fieldOthers  = "others"
)

// slack is how much longer than its proof a change may take before it is taken back by itself.
const slack = 10 * time.Second

type interpreter struct{}

func (interpreter) FieldOf(topology.Code) string { return "allow" }

func (interpreter) Observe(ctx context.Context, r topology.FirewallReader, _ score.Firewall) (Observed, error) {
	st, err := r.Firewall(ctx)
	if err != nil || !st.Present {
		return Observed{}, err
	}
	o := Observed{Present: true, Input: score.InputAccept, Others: st.Others, rules: st.Rules, mark: st.Mark}
	if st.Drop {
		o.Input = score.InputDrop
	}
	for _, rule := range st.Rules {
		o.Rules = append(o.Rules, rule.String())
	}
	return o, nil
}

func (interpreter) Diff(s score.Firewall, o Observed) []interpret.Change {
	if !o.Present {
		return []interpret.Change{{Field: fieldPresent, Have: "false", Want: "true", Effect: interpret.Create}}
	}
	var out []interpret.Change
	differ := func(field, have, want string) {
		out = append(out, interpret.Change{Field: field, Have: have, Want: want, Effect: interpret.Mutate, Replaces: true})
	}
	if o.Input != s.Input {
		differ(fieldInput, string(o.Input), string(s.Input))
	}
	if want := rules(s); !slices.Equal(want, o.rules) {
		have, missing := without(o.rules, want), without(want, o.rules)
		if len(have)+len(missing) == 0 { // the same ones, in another order or number
			have, missing = o.rules, want
		}
		differ(fieldRules, list(have), list(missing))
	}
	if len(o.Others) > 0 {
		differ(fieldOthers, strings.Join(o.Others, ", "), "")
	}
	return out
}

// without lists the rules of a that b does not have.
func without(a, b []topology.FirewallRule) []topology.FirewallRule {
	return slices.DeleteFunc(slices.Clone(a), func(r topology.FirewallRule) bool { return slices.Contains(b, r) })
}

func list(rules []topology.FirewallRule) string {
	words := make([]string, len(rules))
	for i, r := range rules {
		words[i] = r.String()
	}
	return strings.Join(words, "; ")
}

func (interpreter) Apply(ctx context.Context, w topology.FirewallWriter, s score.Firewall, t interpret.Task) error {
	return w.SetFirewall(ctx, topology.FirewallConfig{Drop: s.Input == score.InputDrop, Rules: rules(s), Mark: t.Mark})
}

// Checkpoint makes one unless everything is let in afterwards, as it is when the firewall is removed.
func (interpreter) Checkpoint(ctx context.Context, w topology.FirewallWriter, s score.Firewall, t interpret.Task) (topology.Checkpoint, error) {
	if s.Input == score.InputAccept || len(t.Changes) == 0 {
		return nil, nil
	}
	return w.CheckpointFirewall(ctx, s.Confirmation().Window()+slack)
}

// Remove removes the table, which lets in everything that no table of others drops.
func (interpreter) Remove(ctx context.Context, w topology.FirewallWriter, _ score.Firewall) error {
	return w.RemoveFirewall(ctx)
}

// Text is what the firewall says, for the receipt. Only root may ask the kernel for it.
func (in interpreter) Text(ctx context.Context, r topology.FirewallReader, s score.Firewall) (text string, public, ok bool) {
	o, err := in.Observe(ctx, r, s)
	if err != nil || !o.Present {
		return "", false, false
	}
	lines := slices.Concat([]string{"policy " + string(o.Input)}, o.Rules, o.Others)
	return strings.Join(lines, "\n") + "\n", false, true
}
