package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// gate is the door in front of every change to one score: it asks the authority, backs
// up what is foreign, and writes down ownership and begin before anything is touched.
type gate struct {
	*Runner
	plan    *plan
	it      *item
	blocked bool
	renewed bool // a score that restarts this one has changed since its last try

	effort effort
}

// wish is what makes a try another one.
func (g *gate) wish() string {
	return fmt.Sprint(g.it.digest, " ", g.it.manifest.generation, " ", g.triggers())
}

// Verbs in the journal.
const (
	verbApply  = "apply"
	verbRemove = "remove"
)

func (g *gate) Admit(ctx context.Context, a interpret.Action) (interpret.Verdict, error) {
	entry, owned := g.primary()
	prov, refusal := g.provenance(a, entry, owned)
	if refusal != nil {
		return *refusal, nil
	}
	if v, early := g.pace.holds(g.it.mark(), g.wish()); early {
		g.effort = held
		return v, nil
	}
	d := authority.Decide(authority.Question{
		Policy: g.it.policy, Cause: a.Cause, Effect: a.Effect, Provenance: prov, Replaces: replaces(a), Blocked: g.blocked,
	})
	if d.Decision != interpret.DecideApply {
		return g.denied(d), nil
	}
	backup := entry.Backup
	if prov == interpret.Foreign && a.Found {
		name, err := g.backUp(ctx)
		if err != nil {
			f := topology.FaultOf(err)
			return interpret.Verdict{Outcome: interpret.Failed, Code: interpret.Code(f.Code),
				Message: "cannot back up what is there, so nothing was changed: " + f.Text}, nil
		}
		backup = name
	}
	how := store.Created
	if owned {
		how = entry.Provenance
	} else if a.Found && a.FoundMark != g.it.mark() {
		how = store.Adopted
	}
	if err := g.Store.Begin(g.actions(entry, how, backup)...); err != nil {
		return interpret.Verdict{}, err
	}
	g.effort = tried
	return interpret.Verdict{
		Allow: true, Authority: d.Authority, Backup: backup, Mark: g.it.mark(),
		Retry: owned && entry.SpecDigest == g.it.digest && a.Cause != interpret.CauseDependency && !g.renewed,
	}, nil
}

// provenance says whose the thing is. A mark of another manifest that may still want
// it is a conflict; the mark of one that does not means that the thing moves.
func (g *gate) provenance(a interpret.Action, e store.Entry, owned bool) (interpret.Provenance, *interpret.Verdict) {
	if owned && e.Provenance == store.Adopted {
		return interpret.Adopted, nil
	}
	if owned || !a.Found || a.FoundMark == g.it.mark() {
		return interpret.Owned, nil
	}
	if m, _, ok := strings.Cut(string(a.FoundMark), "/"); ok {
		if m != g.it.manifest.name && g.plan.wanted(a.FoundMark, g.it.claims[0]) {
			return "", &interpret.Verdict{Outcome: interpret.Conflict, Code: interpret.CodeOwnedBy,
				Message: fmt.Sprintf("it carries the mark of manifest %s", m)}
		}
		return interpret.Owned, nil
	}
	return interpret.Foreign, nil
}

func (g *gate) denied(d authority.Answer) interpret.Verdict {
	v := interpret.Verdict{Code: d.Code, Message: d.Reason}
	switch d.Decision {
	case interpret.DecidePending:
		v.Outcome = interpret.Pending
	case interpret.DecideRefuse:
		v.Outcome = interpret.Conflict
	default:
		v.Outcome = interpret.Drifted
	}
	return v
}

// replaces reports whether any change overwrites what is kept nowhere else.
func replaces(a interpret.Action) bool {
	return slices.ContainsFunc(a.Changes, func(c interpret.Change) bool { return c.Replaces })
}

// backUp copies every foreign file that the score claims into the store. Content that
// cannot be kept is not overwritten.
func (g *gate) backUp(ctx context.Context) (name string, err error) {
	const limit = 64 << 20
	for _, c := range g.it.claims {
		path, ok := strings.CutPrefix(string(c), "file:")
		if !ok {
			continue
		}
		if _, owned := g.Store.Owner(string(c)); owned {
			continue
		}
		if g.Files == nil {
			return "", topology.Faultf(topology.CodeForeign, "nobody can read %s", path)
		}
		st, err := g.Files.File(ctx, path)
		if err != nil {
			return "", err
		}
		if st.Type != topology.Regular {
			continue
		}
		content, err := g.Files.Content(ctx, path, limit)
		if err != nil {
			return "", err
		}
		b, err := g.Store.SaveBackup(store.Backup{Path: path, Mode: st.Mode, UID: int(st.UID), GID: int(st.GID)}, content)
		if err != nil {
			return "", err
		}
		name = b.Name
	}
	return name, nil
}

// actions are the ledger entries of the score as they are from now on: one per
// resource it claims, the spec with the first.
func (g *gate) actions(old store.Entry, how store.Provenance, backup string) []store.Action {
	out := make([]store.Action, len(g.it.claims))
	for i, c := range g.it.claims {
		e := store.Entry{
			Resource: string(c), Manifest: g.it.manifest.name, Score: string(g.it.score.ID), Kind: string(g.it.score.Spec.Kind()),
			Generation: g.it.manifest.generation, LastChanged: old.LastChanged, Provenance: how, SpecDigest: g.it.digest, Backup: backup,
		}
		if i == 0 {
			e.Spec, e.Triggers = g.it.spec, old.Triggers
		}
		out[i] = store.Action{Entry: e, Verb: verbApply, Take: true}
	}
	return out
}

func (g *gate) Done(_ context.Context, _ interpret.Action, st interpret.ScoreStatus) error {
	var results []store.Result
	for i, c := range g.it.claims {
		if !g.Store.IsOpen(string(c)) {
			continue // a power cut may leave a part of what ends together
		}
		r := store.Result{Resource: string(c)}
		switch {
		case st.Outcome == interpret.Changed:
			r.LastChanged = g.it.manifest.generation
			if i == 0 {
				r.Triggers = g.settled()
			}
		case i == 0 && g.restarts() && cameUp(st.Code):
			r.Triggers = g.settled()
		case i == 0 && g.restarts():
			r.Triggers = interrupted + g.triggers().String()
		}
		results = append(results, r)
	}
	return g.Store.End(results...)
}

// cameUp reports whether an action that failed did start the thing as it is described
// now: it ended by itself, and nothing of an older description can be running.
func cameUp(c interpret.Code) bool { return topology.Code(c) == topology.CodeExited }

// Holds makes books again that do not say what the device says: a mark of ours on a
// thing that no entry claims, an action that was begun and reached its end before a
// crash, a score that got another id or another set of triggers.
func (g *gate) Holds(ctx context.Context, _ score.Score, mark topology.Mark) error {
	e, owned := g.primary()
	if !owned && mark != g.it.mark() {
		return nil // true by itself, and foreign
	}
	for _, c := range g.it.claims {
		if g.Store.IsOpen(string(c)) {
			return g.Done(ctx, interpret.Action{}, interpret.ScoreStatus{Outcome: interpret.Changed})
		}
	}
	now := g.settled()
	if e.Triggers == now && g.kept() {
		return nil
	}
	how := store.Created
	if owned {
		how = e.Provenance
	}
	actions := g.actions(e, how, e.Backup)
	actions[0].Entry.Triggers = now // never interrupted: that would have been a change
	return g.Store.Record(actions...)
}

// kept reports whether the books say of everything that the score claims that it was
// made by this score as it is now.
func (g *gate) kept() bool {
	for _, c := range g.it.claims {
		e, owned := g.Store.Owner(string(c))
		if !owned || e.Manifest != g.it.manifest.name || e.Score != string(g.it.score.ID) || e.SpecDigest != g.it.digest {
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
