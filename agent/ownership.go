package agent

import (
	"bytes"
	"context"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// actions are the ledger entries of the score as they are from now on: one per
// resource it claims, the spec with the first.
func (g *gate) actions(old store.Entry, how store.Provenance, backup, authority string) []store.Action {
	out := make([]store.Action, len(g.it.claims))
	for i, c := range g.it.claims {
		e := store.Entry{
			Resource: string(c), Manifest: g.it.manifest.name, Score: string(g.it.score.ID), Kind: string(g.it.score.Spec.Kind()),
			Generation: g.it.manifest.generation, LastChanged: old.LastChanged, Provenance: how, SpecDigest: g.it.digest, Backup: backup, Authority: authority,
		}
		if i == 0 {
			e.Spec, e.Triggers = g.it.body, old.Triggers
		}
		out[i] = store.Action{Entry: e, Verb: verbApply, Take: true}
	}
	return out
}

// Holds makes books again that do not say what the device says: a mark of ours on a
// thing that no entry claims, an action that was begun and reached its end before a
// crash, a score that got another id or another set of triggers.
func (g *gate) Holds(ctx context.Context, _ score.Score, mark topology.Mark) error {
	if g.dry {
		return nil
	}
	e, owned := g.primary()
	if !owned && (mark != g.it.mark() || g.wasReleased(g.it.claims[0])) {
		return nil // true by itself, and foreign
	}
	for _, c := range g.it.claims {
		if g.Store.IsOpen(string(c)) {
			return g.Done(ctx, interpret.Action{}, interpret.ScoreStatus{Outcome: interpret.Changed})
		}
	}
	if notes := g.unseals(); len(notes) > 0 {
		if err := g.Store.SetNotes(notes); err != nil {
			return err
		}
	}
	now := g.settled()
	generation := g.it.manifest.generation
	if e.Triggers == now && (e.LastChanged > 0 || generation == 0) && g.kept() {
		return nil
	}
	if e.LastChanged == 0 { // it is true now, however it became so: from now on a difference is drift
		e.LastChanged = generation
	}
	how := store.Created
	if owned {
		how = e.Provenance
	}
	actions := g.actions(e, how, e.Backup, e.Authority)
	actions[0].Entry.Triggers = now // never interrupted: that would have been a change
	return g.Store.Record(actions...)
}

// kept reports whether the books say of everything that the score claims that it was
// made by this score as it is now.
func (g *gate) kept() bool {
	for i, c := range g.it.claims {
		e, owned := g.Store.Owner(string(c))
		if !owned || e.Manifest != g.it.manifest.name || e.Score != string(g.it.score.ID) || e.SpecDigest != g.it.digest || i == 0 && !bytes.Equal(e.Spec, g.it.body) {
			return false
		}
	}
	return true
}

// primary is the entry of the resource that the score is about.
func (g *gate) primary() (store.Entry, bool) {
	if len(g.it.claims) == 0 {
		return store.Entry{}, false
	}
	return g.Store.Owner(string(g.it.claims[0]))
}

// owner is the manifest that the ledger names; empty if there is none.
func (p *pass) owner(r score.Resource) string {
	e, _ := p.Store.Owner(string(r))
	return e.Manifest
}

// rival returns an item that owns something that it claims: the one whose manifest the
// ledger names, else the one whose manifest's name comes first. It is the same on every
// device.
func (p *pass) rival(it *item) (*item, score.Resource) {
	for _, r := range it.claims {
		if !r.IsPort() && len(p.plan.claimed[r]) < 2 {
			continue // as nearly always
		}
		claims := p.plan.claims(r)
		w := claims[0]
		for _, c := range claims {
			if p.owner(c.res) == c.it.manifest.name {
				w = c
				break
			}
		}
		if w.it != it {
			return w.it, r
		}
	}
	return nil, ""
}

// absentOwner returns a manifest that owns something that it claims and is not in the
// plan. An incomplete assignment says nothing about it: it may well be there.
func (p *pass) absentOwner(it *item) (string, score.Resource) {
	if p.plan.intent.Assignment.Spec.Complete {
		return "", ""
	}
	for _, c := range it.claims {
		if m := p.owner(c); m != "" && m != it.manifest.name && !p.plan.has(m) {
			return m, c
		}
	}
	return "", ""
}
