package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// gate is the door in front of every change to one score: it asks the authority, backs
// up what is foreign, and writes down ownership and begin before anything is touched.
type gate struct {
	*pass
	it      *item
	renewed bool     // a score that restarts this one has changed since its last try
	ignored bool     // how it differs does not count
	secrets string   // what is to be kept of them; empty if it has none, or not all of them can be had
	sealed  []string // files that it claims and that may hold a secret which it does not name

	effort effort
	action interpret.PlannedAction // the last one that it was asked about
	told   bool                    // the audit has what was decided
}

// wish is what makes a try another one.
func (g *gate) wish() string {
	return g.it.digest + " " + strconv.FormatUint(g.it.manifest.generation, 10) + " " + g.triggers().String()
}

// Verbs in the journal.
const (
	verbApply  = "apply"
	verbRemove = "remove"
)

// decide answers what may happen to a, and says so in the action, too. It writes nothing, and lets
// nothing happen in a dry pass.
func (g *gate) decide(a interpret.Action, prov interpret.Provenance) interpret.Verdict {
	p := g.planned(a)
	p.Provenance = prov
	closed, opens := g.closed(g.it.manifest.policy, g.it.score.Policy)
	q := authority.Question{
		Policy: g.it.policy, Cause: a.Cause, Effect: a.Effect, Provenance: prov, Replaces: replaces(a),
		Blocked: g.blocked, Uncertain: g.Uncertain, Brake: a.Cause == interpret.CauseExplicit && g.braked[g.it.manifest.name],
		Closed: closed,
	}
	var changed bool
	q.Given, q.Name, changed = g.consent.given(p)
	verb := verbApply
	if a.Cause == interpret.CauseExplicit {
		verb = verbRemove
	}
	if e, owned := g.primary(); owned && q.Given == authority.None && e.SpecDigest == g.it.digest && g.begunAs(e.Resource, verb) {
		q.Given, q.Name = authority.Begun, first(e.Authority)
	}
	d := g.unlessRejected(p, opening(authority.Decide(q), opens))
	v := interpret.Verdict{Authority: d.Authority, Code: d.Code, Message: d.Reason}
	switch {
	case g.it.engine().Noop:
		d.Decision, v.Outcome, v.Code, v.Message = interpret.DecideReport, interpret.Drifted, interpret.CodeNoop, "the score says to only look"
	case changed && d.Decision != interpret.DecideApply:
		v.Outcome, v.Code, v.Message = interpret.Conflict, interpret.CodePlanChanged, "it is not as it was when the plan was made: plan again"
	default:
		v.Allow = d.Decision == interpret.DecideApply
		v.Outcome = outcomeOf(d)
	}
	if a.Cause == interpret.CauseDrift && d.Decision == interpret.DecideReport && g.ignores() {
		v.Outcome, g.ignored = interpret.Unchanged, true // it is said, and does not count
	}
	p.Decision, p.Authority, p.Code, p.Reason = d.Decision, d.Authority, v.Code, v.Message
	p.Backup = a.Found && replaces(a) && (prov == interpret.Foreign || d.Decision != interpret.DecideApply)
	g.action, g.told = p, true
	g.decided(p)
	if v.Allow && g.dry {
		v.Allow, v.Outcome = false, interpret.Drifted
	}
	return v
}

// ignores reports whether drift is said, and does not count.
func (g *gate) ignores() bool { return g.it.policy.OnDrift == score.DriftIgnore && !g.blocked }

// first is the authority under which something was begun, however often it was interrupted since.
func first(name string) string { return strings.TrimPrefix(name, string(authority.Begun)+":") }

// begunAs reports whether the journal says that this was begun and not ended: then it carries
// the right to finish it.
func (r *Runner) begunAs(resource, verb string) bool {
	return r.Store.IsOpen(resource) && slices.ContainsFunc(r.Store.OpenActions(), func(o store.OpenAction) bool {
		return o.Entry.Resource == resource && o.Verb == verb
	})
}

// outcomeOf is what is reported of an action that may not happen.
func outcomeOf(d authority.Answer) interpret.Outcome {
	switch {
	case d.Decision == interpret.DecidePending:
		return interpret.Pending
	case d.Decision == interpret.DecideRefuse && d.Code == authority.CodeForeign:
		return interpret.Conflict
	case d.Decision == interpret.DecideRefuse:
		return interpret.Refused
	}
	return interpret.Drifted
}

// replaces reports whether any change overwrites what is kept nowhere else.
func replaces(a interpret.Action) bool {
	return slices.ContainsFunc(a.Changes, func(c interpret.Change) bool { return c.Replaces })
}

func (g *gate) Admit(ctx context.Context, a interpret.Action) (interpret.Verdict, error) {
	entry, owned := g.primary()
	prov, refusal := g.provenance(a, entry, owned)
	if refusal != nil {
		g.action = g.planned(a)
		g.action.Decision, g.action.Code, g.action.Reason = interpret.DecideRefuse, refusal.Code, refusal.Message
		return *refusal, nil
	}
	if v, was := g.takenBack(a); was {
		return v, g.Done(ctx, a, interpret.ScoreStatus{Outcome: v.Outcome})
	}
	if v, early := g.pace.holds(g.it.mark(), g.wish()); early && !g.dry && g.consent == nil {
		g.effort = held
		return v, nil
	}
	v := g.decide(a, prov)
	if !v.Allow {
		return v, nil
	}
	if over, ending := g.ending(ctx); ending {
		return over, nil
	}
	if again, ok := g.pace.spend(g.it.mark(), g.it.engine().Limit); !ok && g.consent == nil {
		g.pace.look(g.it.mark(), again)
		return interpret.Verdict{Outcome: interpret.Drifted, Code: interpret.CodeLimit,
			Message: fmt.Sprintf("it was changed as often as its limit allows; next time at %s UTC", again.UTC().Format(time.TimeOnly))}, nil
	}
	backup := entry.Backup // of what was there before it was ours
	if a.Found && (prov == interpret.Foreign || g.consent != nil && replaces(a) && edited(entry, a.Text) && !holdsSecret(g.it.score) && len(g.sealed) == 0) {
		name, err := g.backUp(ctx, g.consent != nil)
		if refusal := unkept(err); refusal != nil {
			return *refusal, nil
		}
		if v.Backup = name; prov == interpret.Foreign {
			backup = name
		}
	}
	how := store.Created
	if owned {
		how = entry.Provenance
	} else if a.Found && (prov == interpret.Foreign || a.FoundMark != g.it.mark()) {
		how = store.Adopted
	}
	if a.Cause == interpret.CauseIntent || a.Cause == interpret.CauseRollback {
		entry.LastChanged = 0 // until it is true for once, it is no drift
	}
	if err := g.Store.BeginWith(g.seals(g.owns()), g.actions(entry, how, backup, v.Authority)...); err != nil {
		return interpret.Verdict{}, err
	}
	g.effort = tried
	v.Mark = g.it.mark()
	v.Prove, v.Opens = g.prover(ctx, g.it.score.Spec, a.Cause), g.opens(g.it.claims, g.trying())
	v.Retry = owned && entry.SpecDigest == g.it.digest && a.Cause != interpret.CauseDependency && a.Cause != interpret.CauseSecret && !g.renewed
	return v, nil
}

// wasReleased reports whether a thing was given up: a mark of ours that it may carry still, of whatever
// score it was, means nothing.
func (r *Runner) wasReleased(res score.Resource) bool {
	_, ok := r.Store.Note(releaseOf(string(res)))
	return ok
}

// owns is what to note when the score takes what it claims: it is given up no more.
func (g *gate) owns() map[string]string {
	notes := map[string]string{}
	for _, c := range g.it.claims {
		if g.wasReleased(c) {
			notes[releaseOf(string(c))] = ""
		}
	}
	return notes
}

// provenance says whose the thing is. A mark of another manifest that may still want
// it is a conflict; the mark of one that does not means that the thing moves.
func (g *gate) provenance(a interpret.Action, e store.Entry, owned bool) (interpret.Provenance, *interpret.Verdict) {
	if owned && e.Provenance == store.Adopted {
		return interpret.Adopted, nil
	}
	switch {
	case owned || !a.Found:
		return interpret.Owned, nil
	case g.wasReleased(g.it.claims[0]):
		return interpret.Foreign, nil
	case a.FoundMark == g.it.mark():
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

func (g *gate) Done(ctx context.Context, a interpret.Action, st interpret.ScoreStatus) error {
	g.it.text = diffOf(a.Text, g.it.claims)
	if st.Outcome == interpret.Failed && errors.Is(ctx.Err(), context.Canceled) && !madeNothing(a, st) {
		return nil // the agent was told to stop: what was begun stays so, and the next start may finish it
	}
	var notes map[string]string
	if st.Outcome == interpret.Changed {
		notes = g.unseals()
	}
	var results []store.Result
	for i, c := range g.it.claims {
		if !g.Store.IsOpen(string(c)) {
			continue // a power cut may leave a part of what ends together
		}
		r := store.Result{Resource: string(c)}
		switch {
		case st.Outcome == interpret.Failed && madeNothing(a, st), st.Outcome == interpret.RolledBack, st.Outcome == interpret.Refused:
			r.Revert = true // it is as it was, so it proves nothing, and what was never true is no drift
		case st.Outcome == interpret.Changed:
			r.LastChanged = g.it.manifest.generation
			if i == 0 {
				r.Triggers = g.settled()
			}
		case i == 0 && g.restarts() && cameUp(st.Code):
			r.Triggers = g.settled()
		case i == 0 && g.restarts():
			e, _ := g.primary()
			r.Triggers = unfinished(a) + withSecrets(g.triggers().String(), rotationOf(e))
		}
		results = append(results, r)
	}
	return g.Store.EndWith(g.ends(ctx, g.it.claims, st.Outcome, notes), results...)
}

// madeNothing reports whether an action that failed left everything as it was: it proves no
// ownership of what somebody else may put there. What describes a thing that is made is written before
// anything else of it is made.
func madeNothing(a interpret.Action, st interpret.ScoreStatus) bool {
	absent := !a.Found && a.Effect == interpret.Create && st.Conditions.Written != nil && !*st.Conditions.Written
	return absent || topology.Code(st.Code) == topology.CodeChanged
}

// cameUp reports whether an action that failed did start the thing as it is described
// now: it ended by itself, and nothing of an older description can be running.
func cameUp(c interpret.Code) bool { return topology.Code(c) == topology.CodeExited }
