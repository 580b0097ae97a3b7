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
	policy score.Policy // in force for it
	wide   score.Policy // of the manifest that it was made for
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
			o.wide = p.policyOf(e.Manifest)
			o.policy = authority.Effective(p.Ceiling.Policy, o.wide, o.score.Policy)
			main = append(main, o)
		}
	}
	return main, rest
}

// collect removes what the ledger owns and no manifest names, last made first, after all
// that could come in its place (see unsettled), but for what stands in the way of that; what
// it may not remove it reports.
func (p *pass) collect(ctx context.Context, st interpret.DeviceStatus) ([]interpret.Orphan, error) {
	main, rest := p.orphans()
	st.FoldDevice()
	seen := st.State == interpret.StateConverged || st.State == interpret.StateRolledBack // which says that all is as the version before has it
	if seen && !p.dry && !p.halted() && p.Uncertain && !p.blocked {                       // everything was observed, and its marks are in the books again
		if err := p.Store.Repair(); err != nil {
			return nil, err
		}
		defer func() { p.Uncertain = false }() // the next pass may collect
	}
	owned, removals := p.removable(main)
	unsettled := p.unsettled()
	var left []interpret.Orphan
	stay := map[string][]score.ID{} // by manifest: what is still there
	for _, o := range dependantsFirst(main) {
		out := interpret.Orphan{Resource: score.Resource(o.Resource), Manifest: o.Manifest, Score: score.ID(o.Score)}
		gone, err := false, error(nil)
		switch needed := dependants(o, stay, main); {
		case o.broken != "":
			out.Code, out.Message = interpret.CodeUnreadable, o.broken
		case needed != "":
			out.Code, out.Message = interpret.CodeDependency, fmt.Sprintf("it waits for %q, which needs it and is still there", needed)
		default:
			gone, err = p.removeOne(ctx, o, p.brake(o.policy, owned, removals), unsettled(o.Manifest), &out)
		}
		if err != nil {
			return left, err
		}
		if !gone {
			stay[o.Manifest] = append(stay[o.Manifest], o.score.ID)
			left = append(left, out)
		}
		p.progressed()
	}
	return p.releaseRest(ctx, main, rest, left)
}

// dependantsFirst are the orphans in the order in which they go: what needs another one
// before that, and what was made last first.
func dependantsFirst(main []orphan) []orphan {
	type key struct {
		manifest string
		id       score.ID
	}
	needed := map[key][]int{} // by whom
	for i := range main {
		if main[i].broken != "" {
			continue
		}
		for _, need := range main[i].score.Needs() {
			k := key{main[i].Manifest, need}
			needed[k] = append(needed[k], i)
		}
	}
	out, seen := make([]orphan, 0, len(main)), make([]bool, len(main))
	var visit func(int)
	visit = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		for _, by := range slices.Backward(needed[key{main[i].Manifest, score.ID(main[i].Score)}]) {
			visit(by)
		}
		out = append(out, main[i])
	}
	for i := range slices.Backward(main) {
		visit(i)
	}
	return out
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

// removable counts the scores that the device owns, and those that it would remove by itself:
// not what is only reported or released, and not what a version made that is being rolled back.
func (p *pass) removable(orphans []orphan) (owned, removals int) {
	for _, e := range p.Store.Entries() {
		if len(e.Spec) > 0 {
			owned++
		}
	}
	for _, o := range orphans {
		collects := o.policy.OnAbsent == score.AbsentCollect || o.policy.OnAbsent == score.AbsentRestore
		if collects && o.broken == "" && o.Provenance != store.Adopted && !p.scratch(o.Entry) {
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
// only if its absence means something. Behind is what has to come before it; empty: nothing.
func (p *pass) removeOne(ctx context.Context, o orphan, brake bool, behind string, out *interpret.Orphan) (gone bool, err error) {
	g := &removal{pass: p, orphan: o, brake: brake, partial: !p.plan.intent.Assignment.Spec.Complete || p.halted()}
	if !p.inTheWay(o.score) {
		g.behind = behind
	}
	paced, wish := removalMark(o), o.SpecDigest
	if v, early := p.pace.holds(paced, wish); early && p.consent == nil {
		out.Code, out.Message = v.Code, v.Message
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, scoreTimeout)
	defer cancel()
	ctx, _ = p.seal(ctx, o.score.Spec, o.score.Spec.Claims(), o.SpecDigest)
	st, err := p.Table.Remove(ctx, o.score, interpret.CauseAbsent, g)
	if st.Outcome == interpret.RolledBack {
		p.pace.note(paced, wish, st, tried, tempo{})
	}
	if g.action.Action != "" {
		p.removals = append(p.removals, g.action)
	}
	if err != nil {
		return false, err
	}
	out.Code, out.Message = st.Code, st.Message
	did := interpret.ReceiptAction{
		Manifest: o.Manifest, Score: o.score.ID, Kind: score.Kind(o.Kind), Action: interpret.ActionRemove, Outcome: interpret.Changed,
		Cause: interpret.CauseAbsent, Authority: g.action.Authority, Resources: []score.Resource{out.Resource}, Backup: g.kept,
	}
	switch {
	case p.dry || !st.Outcome.Converged():
		return false, nil
	case g.unrestored != "":
		out.Code, out.Message = CodeRestore, g.unrestored
		return false, nil
	case st.Outcome == interpret.Unchanged:
		did.Action, did.Outcome, did.Code, did.Message = interpret.ActionNone, interpret.Unchanged, st.Code, st.Message
		p.gone = append(p.gone, did)
	default:
		p.gone = append(p.gone, did)
	}
	return true, nil
}

// going is the wish that o goes, for the notes of what was tried.
func (o orphan) going() string { return removalPrefix + o.SpecDigest }

// open lists what of o was begun and is not ended.
func (r *Runner) open(o orphan) (out []string) {
	for _, e := range r.Store.ByScore(o.Manifest, o.Score) {
		if r.Store.IsOpen(e.Resource) {
			out = append(out, e.Resource)
		}
	}
	return out
}

// removalMark is what the pace of the removal of o goes by: one that cut the device off does so
// again with every try.
func removalMark(o orphan) topology.Mark { return removalPrefix + markOf(o.Manifest, o.Score) }

const removalPrefix = "removal of "

// isGone reports whether a file is certainly not there: the score removed it, as a drop-in that was taken out of it.
func (p *pass) isGone(ctx context.Context, resource string) bool {
	if p.Files == nil {
		return false
	}
	st, err := p.Files.File(ctx, strings.TrimPrefix(resource, "file:"))
	return err == nil && st.Type == topology.Absent
}

// releaseRest gives up entries of scores that are still wanted and do not claim them any
// more, such as a port. A file that such a score wrote is there, so it is reported.
func (p *pass) releaseRest(ctx context.Context, main []orphan, rest []store.Entry, left []interpret.Orphan) ([]interpret.Orphan, error) {
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
		case strings.HasPrefix(e.Resource, "file:") && !p.isGone(ctx, e.Resource):
			left = append(left, interpret.Orphan{Resource: score.Resource(e.Resource), Manifest: e.Manifest, Score: score.ID(e.Score), Code: interpret.CodeNotOwned,
				Message: "its score does not write it any more, and still needs what it describes; remove it by hand, or name it in the score again"})
		case !p.blocked:
			free = append(free, e.Resource)
		}
	}
	return left, p.Store.Release(free...)
}
