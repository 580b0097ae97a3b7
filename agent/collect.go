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

// An orphan is what the ledger owns and no manifest names any more: the entry that has
// the score, and what goes with it.
type orphan struct {
	store.Entry
	score  score.Score
	policy score.Policy // of the manifest that it was made for
	broken string       // why the score cannot be read
}

// orphans lists what the ledger owns and the plan does not name, in the order in which it
// was first owned, and what they and others own besides.
func (p *pass) orphans() (main []orphan, rest []store.Entry) {
	complete := p.plan.intent.Assignment.Spec.Complete
	for _, e := range p.Store.Entries() {
		switch {
		case len(p.plan.claimed[score.Resource(e.Resource)]) > 0:
		case p.plan.unread[markOf(e.Manifest, e.Score)]: // it may well be wanted
		case !complete && !p.plan.has(e.Manifest): // nothing is said about it
		case len(e.Spec) == 0:
			rest = append(rest, e)
		default:
			o := orphan{Entry: e}
			if err := score.Decode(e.Spec, &o.score); err != nil {
				o.broken = fmt.Sprintf("cannot read what was applied: %v", err)
			} else if opaque, ok := o.score.Spec.(score.Opaque); ok {
				o.broken = "cannot read what was applied: " + opaque.Why
			}
			o.policy = p.policyOf(e.Manifest, o.score.Policy)
			main = append(main, o)
		}
	}
	return main, rest
}

// collect removes what the ledger owns and no manifest names, last made first. It does
// so only after a pass in which every score converged, but for what stands in the way of
// one that did not; what it may not remove it reports.
func (p *pass) collect(ctx context.Context, st interpret.DeviceStatus) ([]interpret.Orphan, error) {
	main, rest := p.orphans()
	st.FoldDevice()
	whole := st.State == interpret.StateConverged || p.dry
	seen := whole || st.State == interpret.StateRolledBack          // which says that all is as the version before has it
	if seen && !p.dry && !p.halted() && p.Uncertain && !p.blocked { // everything was observed, and its marks are in the books again
		if err := p.Store.Repair(); err != nil {
			return nil, err
		}
		defer func() { p.Uncertain = false }() // the next pass may collect
	}
	owned, removals := p.removable(main)
	var left []interpret.Orphan
	stay := map[string][]score.ID{} // by manifest: what is still there
	for _, o := range slices.Backward(main) {
		out := interpret.Orphan{Resource: score.Resource(o.Resource), Manifest: o.Manifest, Score: score.ID(o.Score)}
		gone, err := false, error(nil)
		switch needed := dependants(o, stay, main); {
		case o.broken != "":
			out.Code, out.Message = interpret.CodeUnreadable, o.broken
		case needed != "":
			out.Code, out.Message = interpret.CodeDependency, fmt.Sprintf("it waits for %q, which needs it and is still there", needed)
		default:
			gone, err = p.removeOne(ctx, o, p.brake(o.policy, owned, removals), whole, &out)
		}
		if err != nil {
			return left, err
		}
		if gone {
			p.removed = append(p.removed, out)
		} else {
			stay[o.Manifest] = append(stay[o.Manifest], o.score.ID)
			left = append(left, out)
		}
		p.progressed()
	}
	return p.releaseRest(main, rest, left)
}

// dependants names an orphan that needs o and stayed.
func dependants(o orphan, stay map[string][]score.ID, all []orphan) score.ID {
	for _, other := range all {
		if other.Manifest == o.Manifest && other.broken == "" && slices.Contains(stay[o.Manifest], other.score.ID) && slices.Contains(other.score.Needs(), o.score.ID) {
			return other.score.ID
		}
	}
	return ""
}

// removable counts the scores that the device owns, and those that would be removed. What a
// version made that is being rolled back does not count.
func (p *pass) removable(orphans []orphan) (owned, removals int) {
	for _, e := range p.Store.Entries() {
		if len(e.Spec) > 0 {
			owned++
		}
	}
	for _, o := range orphans {
		if !p.scratch(o.Entry) {
			removals++
		}
	}
	return owned, removals
}

// brake reports whether more would be removed at once than a policy lets a device do by
// itself. An assignment without any score, which is what a failed template or an empty
// repository gives, trips it always.
func (p *pass) brake(pol score.Policy, owned, removals int) bool {
	return removals > authority.Brake(pol, owned) || p.plan.intent.Assignment.Spec.Scores == 0
}

// inTheWay reports whether a score that is no longer wanted holds a port that another
// one claims now, as a container does that got another name: the new one cannot start
// before the old one is gone. It stays while the new one could not start all the same.
func (p *pass) inTheWay(s score.Score) bool {
	return slices.ContainsFunc(s.Spec.Claims(), func(r score.Resource) bool {
		return r.IsPort() && slices.ContainsFunc(p.plan.claims(r), func(c claim) bool { return !c.it.unfetched })
	})
}

// removeOne undoes what o was made for, if that may happen. What was applied last goes
// only if its absence means something.
func (p *pass) removeOne(ctx context.Context, o orphan, brake, whole bool, out *interpret.Orphan) (gone bool, err error) {
	complete := p.plan.intent.Assignment.Spec.Complete
	g := &removal{pass: p, orphan: o, brake: brake, partial: !complete || p.halted() || !whole && !p.inTheWay(o.score)}
	ctx, cancel := context.WithTimeout(ctx, scoreTimeout)
	defer cancel()
	st, err := p.Table.Remove(ctx, o.score, interpret.CauseAbsent, g)
	if g.action.Action != "" {
		p.removals = append(p.removals, g.action)
	}
	if err != nil {
		return false, err
	}
	out.Code, out.Message = st.Code, st.Message
	gone = st.Outcome.Converged() && !p.dry
	if gone && o.policy.OnAbsent == score.AbsentRestore && o.Backup != "" {
		if err := p.putBack(ctx, o.Backup); err != nil {
			p.problems = append(p.problems, fmt.Sprintf("%s was removed, and what was there before could not be put back: %v; it is kept as backup %s", o.Resource, err, o.Backup))
		}
	}
	return gone, nil
}

// releaseRest gives up entries of scores that are still wanted and do not claim them any
// more, such as a port. A file that such a score wrote is there, so it is reported.
func (p *pass) releaseRest(main []orphan, rest []store.Entry, left []interpret.Orphan) ([]interpret.Orphan, error) {
	if p.dry {
		return left, nil
	}
	goes := map[topology.Mark]bool{} // scores whose main entry is an orphan too: the rest goes with it
	for _, o := range main {
		goes[markOf(o.Manifest, o.Score)] = true
	}
	var free []string
	for _, e := range rest {
		switch {
		case goes[markOf(e.Manifest, e.Score)]:
		case strings.HasPrefix(e.Resource, "file:"):
			left = append(left, interpret.Orphan{Resource: score.Resource(e.Resource), Manifest: e.Manifest, Score: score.ID(e.Score), Code: interpret.CodeNotOwned,
				Message: "its score does not write it any more, and still needs what it describes; remove it by hand, or name it in the score again"})
		case !p.blocked:
			free = append(free, e.Resource)
		}
	}
	return left, p.Store.Release(free...)
}

// removal is the gate in front of one removal.
type removal struct {
	*pass
	orphan  orphan
	brake   bool
	partial bool
	going   []string // resources that go with it
	begun   bool
	action  interpret.PlannedAction
}

func (r *removal) Admit(_ context.Context, a interpret.Action) (interpret.Verdict, error) {
	o := r.orphan
	release := o.policy.OnAbsent == score.AbsentRelease || a.Effect == interpret.Nothing && o.policy.OnAbsent != score.AbsentReport
	if release && !r.partial && !r.blocked && !r.dry {
		// Nothing is touched: it stays, and is the device's own.
		return interpret.Verdict{Outcome: interpret.Unchanged}, r.giveUp(a.FoundMark)
	}
	prov := interpret.Owned
	switch {
	case r.scratch(o.Entry):
		prov = interpret.Scratch
	case o.Provenance == store.Adopted && a.Found: // what is gone need not be kept
		prov = interpret.Adopted
	}
	if m, _, ok := strings.Cut(string(a.FoundMark), "/"); ok && m != o.Manifest && r.plan.wanted(a.FoundMark, score.Resource(o.Resource)) {
		prov = interpret.Foreign // it may be somebody else's by now; a thing that moved may carry its old mark
	}
	p := interpret.PlannedAction{
		Manifest: o.Manifest, Generation: o.Generation, Score: o.score.ID, Kind: score.Kind(o.Kind), Action: interpret.ActionRemove,
		Cause: a.Cause, Effect: a.Effect, Provenance: prov, Resources: o.score.Spec.Claims(), SpecDigest: o.SpecDigest,
	}
	q := authority.Question{
		Policy: o.policy, Cause: a.Cause, Effect: a.Effect, Provenance: prov,
		Uncertain: r.Uncertain, Blocked: r.blocked, Partial: r.partial, Brake: r.brake, Closed: r.closed(o.policy, nil),
	}
	q.Given, q.Name, _ = r.consent.given(p)
	if q.Given == authority.None && r.begunAs(o.Resource, verbRemove) {
		q.Given, q.Name = authority.Begun, o.Authority
	}
	d := authority.Decide(q)
	p.Decision, p.Authority, p.Code, p.Reason = d.Decision, d.Authority, d.Code, d.Reason
	r.action = p
	v := interpret.Verdict{Outcome: outcomeOf(d.Decision), Code: p.Code, Message: d.Reason, Authority: d.Authority}
	if d.Decision != interpret.DecideApply || r.dry {
		return v, nil
	}
	var actions []store.Action
	for _, e := range r.entries() {
		e.Authority = d.Authority
		actions = append(actions, store.Action{Entry: e, Verb: verbRemove})
		r.going = append(r.going, e.Resource)
	}
	err := r.Store.Begin(actions...)
	v.Allow, r.begun = err == nil, err == nil
	return v, err
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
			notes[noteReleased+e.Resource] = string(mark)
		}
	}
	if err := r.Store.SetNotes(notes); err != nil {
		return err
	}
	return r.Store.Release(resources...)
}

// Done gives up, in one write, everything that the score owned and nobody claims any more.
func (r *removal) Done(_ context.Context, _ interpret.Action, st interpret.ScoreStatus) error {
	results := make([]store.Result, len(r.going))
	for i, res := range r.going {
		results[i] = store.Result{Resource: res, Release: st.Outcome.Converged()}
	}
	return r.Store.End(results...)
}

func (r *removal) Holds(context.Context, score.Score, topology.Mark) error { return nil }
