package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// restores reports whether what was there before o comes back when o goes.
func (p *pass) restores(o orphan) bool {
	return o.Backup != "" && (o.policy.OnAbsent == score.AbsentRestore || p.scratch(o.Entry))
}

// removal is the gate in front of one removal.
type removal struct {
	*pass
	orphan  orphan
	brake   bool
	partial bool
	behind  string   // what has to come before it; empty: nothing
	going   []string // resources that go with it
	kept    string   // copy of what was edited by hand
	action  interpret.PlannedAction

	unrestored string // why what was there before is not there again, if it may be later
}

func (r *removal) Admit(ctx context.Context, a interpret.Action) (interpret.Verdict, error) {
	o := r.orphan
	if claims := o.score.Spec.Claims(); a.Found && !r.dry && r.consent == nil && r.wasTried(claims, o.going(), oftenNew) {
		return unproved, r.ended(ctx, claims, r.open(o), unproved.Outcome, false)
	}
	prov := interpret.Owned
	switch {
	case r.scratch(o.Entry):
		prov = interpret.Scratch
	case o.Provenance == store.Adopted && a.Found && !r.restores(o): // what is gone, or comes back as it was, need not be kept
		prov = interpret.Adopted
	}
	if m, _, ok := strings.Cut(string(a.FoundMark), "/"); ok && m != o.Manifest && r.plan.wanted(a.FoundMark, score.Resource(o.Resource)) {
		prov = interpret.Foreign // it may be somebody else's by now; a thing that moved may carry its old mark
	}
	effect := a.Effect
	if o.policy.OnAbsent == score.AbsentRelease && prov != interpret.Scratch {
		effect = interpret.Nothing
	}
	p := interpret.PlannedAction{
		Manifest: o.Manifest, Generation: o.Generation, Score: o.score.ID, Kind: score.Kind(o.Kind), Action: interpret.ActionRemove,
		Cause: a.Cause, Effect: effect, Provenance: prov, Resources: o.score.Spec.Claims(), SpecDigest: o.SpecDigest,
	}
	closed, opens := r.closed(o.wide, o.score.Policy)
	q := authority.Question{
		Policy: o.policy, Cause: a.Cause, Effect: effect, Provenance: prov,
		Uncertain: r.Uncertain, Blocked: r.blocked, Partial: r.partial, Brake: r.brake, Closed: closed,
	}
	q.Given, q.Name, _ = r.consent.given(p)
	if q.Given == authority.None && r.begunAs(o.Resource, verbRemove) {
		q.Given, q.Name = authority.Begun, first(o.Authority)
	}
	d := r.unlessRejected(p, opening(r.last(authority.Decide(q), q), opens))
	p.Decision, p.Authority, p.Code, p.Reason = d.Decision, d.Authority, d.Code, d.Reason
	r.action = p
	r.decided(p)
	v := interpret.Verdict{Outcome: outcomeOf(d), Code: p.Code, Message: d.Reason, Authority: d.Authority}
	applies := d.Decision == interpret.DecideApply
	switch {
	case r.dry:
		return v, nil
	case d.Code == authority.CodeReleased, applies && a.Effect == interpret.Nothing:
		// Nothing is touched: it stays, and is the device's own.
		v.Outcome = interpret.Unchanged
		return v, r.giveUp(a.FoundMark)
	case !applies:
		return v, nil
	}
	if over, ending := r.ending(ctx); ending {
		return over, nil
	}
	kept, refusal := r.keepEdited(ctx, o.score)
	if refusal != nil {
		return *refusal, nil
	}
	v.Backup, r.kept = kept, kept
	var actions []store.Action
	for _, e := range r.entries() {
		e.Authority = d.Authority
		actions = append(actions, store.Action{Entry: e, Verb: verbRemove})
		r.going = append(r.going, e.Resource)
	}
	err := r.Store.Begin(actions...)
	v.Allow = err == nil
	v.Prove, v.Opens = r.prover(ctx, o.score.Spec, a.Cause), r.opens(o.score.Spec.Claims(), o.going())
	return v, err
}

// last lets what goes, or is given up, by itself or with a plan do so only when all that comes before
// it is there. Who signs for the removal of this very thing has seen that it is not.
func (r *removal) last(d authority.Answer, q authority.Question) authority.Answer {
	goes := d.Decision == interpret.DecideApply || d.Code == authority.CodeReleased
	if !goes || r.behind == "" || q.Given == authority.Signed || q.Given == authority.Begun || q.Provenance == interpret.Scratch {
		return d
	}
	return authority.Answer{Decision: interpret.DecideReport, Code: CodeLast,
		Reason: "what is left over goes last, and " + r.behind + "; a signed approval (continuo approve) lets it go before"}
}

// entries are those of the orphan, and of what goes with it.
func (r *removal) entries() (out []store.Entry) {
	for _, e := range r.Store.ByScore(r.orphan.Manifest, r.orphan.Score) {
		if e.Resource == r.orphan.Resource || len(e.Spec) == 0 && len(r.plan.claimed[score.Resource(e.Resource)]) == 0 {
			out = append(out, e)
		}
	}
	return out
}

// giveUp releases the orphan. It stays as it is, and is foreign although it may carry a mark.
func (r *removal) giveUp(mark topology.Mark) error {
	var resources []string
	notes := map[string]string{}
	for _, e := range r.entries() {
		resources = append(resources, e.Resource)
		if mark != "" {
			notes[releaseOf(e.Resource)] = string(mark)
		}
	}
	if err := r.Store.SetNotes(notes); err != nil {
		return err
	}
	return r.Store.Release(resources...)
}

// Done gives up, in one write, everything that the score owned and nobody claims any more. What
// was there before comes back first: after a crash in between, all of it is done again.
func (r *removal) Done(ctx context.Context, _ interpret.Action, st interpret.ScoreStatus) error {
	if o := r.orphan; st.Outcome.Converged() && r.restores(o) {
		r.unrestored = r.putBack(ctx, o)
	}
	return r.ended(ctx, r.orphan.score.Spec.Claims(), r.going, st.Outcome, st.Outcome.Converged() && r.unrestored == "")
}

// ended writes down what came of the removal of what a score claims.
func (r *Runner) ended(ctx context.Context, claims []score.Resource, going []string, as interpret.Outcome, gone bool) error {
	results := make([]store.Result, len(going))
	for i, res := range going {
		results[i] = store.Result{Resource: res, Release: gone}
	}
	var notes map[string]string
	if gone {
		notes = r.unsealed(ctx, going)
	}
	return r.Store.EndWith(r.ends(ctx, claims, as, notes), results...)
}

// putBack makes a file again as the backup of o has it. It tells what is in the way and may not be
// later; what will always be is a problem for a person, and the backup is kept.
func (p *pass) putBack(ctx context.Context, o orphan) (later string) {
	st, _, err := p.restore(ctx, o.Backup, authority.None, "")
	switch {
	case err == nil && st.Outcome.Converged():
	case err == nil && st.Outcome == interpret.Failed:
		return fmt.Sprintf("it was removed, and backup %s of what was there before could not be put back yet: %s", o.Backup, st.Message)
	default:
		why := st.Message
		if err != nil {
			why = err.Error()
		}
		p.problems = append(p.problems, fmt.Sprintf("%s was removed, and what was there before could not be put back: %s; it is kept as backup %s", o.Resource, why, o.Backup))
	}
	return ""
}

func (r *removal) Holds(context.Context, score.Score, topology.Mark) error { return nil }
