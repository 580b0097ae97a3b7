package agent

import (
	"context"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// decommission removes what a score describes, because the score says so in words. What is
// gone already is as it should be.
func (p *pass) decommission(ctx context.Context, g *gate) (interpret.ScoreStatus, error) {
	st, err := p.Table.Remove(ctx, g.it.score, interpret.CauseExplicit, &ending{gate: g})
	if st.Outcome.Converged() {
		st.Conditions = interpret.Conditions{} // that it is not written, or does not run, is what was asked for
	}
	return st, err
}

// brakes finds the manifests that decommission more at once than their policy lets a device do by
// itself: a template that goes wrong says it of everything.
func (p *pass) brakes() map[string]bool {
	n := map[*plannedManifest]int{}
	all := 0
	for _, it := range p.plan.items() {
		if !it.score.Decommission {
			continue
		}
		if _, owned := p.gate(it).primary(); owned {
			n[it.manifest]++
			all++
		}
	}
	out := map[string]bool{}
	if all == 0 {
		return out
	}
	owned, _ := p.removable(nil)
	for m := range n {
		out[m.name] = all > authority.Brake(authority.Effective(p.Ceiling.Policy, m.policy, nil), owned)
	}
	return out
}

// ending is the gate in front of what is decommissioned.
type ending struct {
	*gate
	going []string
}

func (e *ending) Admit(ctx context.Context, a interpret.Action) (interpret.Verdict, error) {
	entry, owned := e.primary()
	if !a.Found {
		return interpret.Verdict{Outcome: interpret.Unchanged}, e.forget()
	}
	prov, refusal := e.provenance(a, entry, owned)
	if refusal != nil {
		return *refusal, nil
	}
	if v, was := e.takenBack(a); was {
		return v, e.gate.Done(ctx, a, interpret.ScoreStatus{Outcome: v.Outcome})
	}
	if v, early := e.pace.holds(e.it.mark(), e.wish()); early && !e.dry && e.consent == nil {
		e.effort = held
		return v, nil
	}
	v := e.decide(a, prov)
	if !v.Allow {
		return v, nil
	}
	if over, ending := e.gate.ending(ctx); ending {
		return over, nil
	}
	last := e.it.score
	if len(entry.Spec) > 0 && score.Decode(entry.Spec, &last) != nil {
		last = e.it.score
	}
	if v.Backup, refusal = e.keepEdited(ctx, last); refusal != nil {
		return *refusal, nil
	}
	how := store.Created
	if owned {
		how = entry.Provenance
	}
	actions := e.actions(entry, how, entry.Backup, v.Authority)
	for i := range actions {
		actions[i].Verb = verbRemove
		e.going = append(e.going, actions[i].Entry.Resource)
	}
	if err := e.Store.Begin(actions...); err != nil {
		return interpret.Verdict{}, err
	}
	e.effort = tried
	v.Prove, v.Opens = e.prover(ctx, last.Spec, a.Cause), e.opens(e.it.claims, e.trying())
	return v, nil
}

// forget gives up what is not there any more.
func (e *ending) forget() error {
	if e.dry || e.blocked {
		return nil
	}
	var gone []string
	for _, c := range e.it.claims {
		if _, owned := e.Store.Owner(string(c)); owned {
			gone = append(gone, string(c))
		}
	}
	return e.Store.Release(gone...)
}

func (e *ending) Done(ctx context.Context, _ interpret.Action, st interpret.ScoreStatus) error {
	return e.ended(ctx, e.it.claims, e.going, st.Outcome, st.Outcome.Converged())
}

func (*ending) Holds(context.Context, score.Score, topology.Mark) error { return nil }
