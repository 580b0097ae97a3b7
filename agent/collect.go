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

// The brake: a device does not remove more than this by itself in one pass.
const (
	brakeRemovals = 5
	brakeFraction = 5 // one fifth of what it owns
)

// collect removes what the ledger owns and no manifest names, last made first. It does
// so only after a pass in which every score converged, but for what stands in the way of
// one that did not; what it may not remove it reports.
func (p *pass) collect(ctx context.Context, st interpret.DeviceStatus) ([]interpret.Orphan, error) {
	complete := p.plan.intent.Assignment.Spec.Complete
	var orphans []store.Entry
	owned := 0
	for _, e := range p.Store.Entries() {
		if len(e.Spec) > 0 {
			owned++
		}
		switch {
		case len(p.plan.claimed[score.Resource(e.Resource)]) > 0:
		case p.plan.unread[topology.Mark(e.Manifest+"/"+e.Score)]: // it may well be wanted
		case !complete && !p.plan.has(e.Manifest): // nothing is said about it
		default:
			orphans = append(orphans, e)
		}
	}
	st.FoldDevice()
	whole := st.State == interpret.StateConverged
	if whole && !p.halted() && p.Uncertain && !p.blocked { // everything was observed, and its marks are in the books again
		if err := p.Store.Repair(); err != nil {
			return nil, err
		}
		defer func() { p.Uncertain = false }() // the next pass may collect
	}
	if len(orphans) == 0 {
		return nil, nil
	}
	removals := 0
	for _, e := range orphans {
		if len(e.Spec) > 0 {
			removals++
		}
	}
	q := authority.Question{
		Policy: authority.Effective(nil, score.Policy{Preset: score.Converge}, nil), Cause: interpret.CauseAbsent, Effect: interpret.Remove,
		Uncertain: p.Uncertain, Blocked: p.blocked,
		// an assignment without any score is what a failed template or an empty repository gives
		Brake: removals > max(brakeRemovals, owned/brakeFraction) || p.plan.intent.Assignment.Spec.Scores == 0,
	}
	var left []interpret.Orphan
	for _, e := range slices.Backward(orphans) {
		if len(e.Spec) == 0 {
			continue // it goes with the entry that has the spec
		}
		o, gone, err := p.removeOne(ctx, e, q, func(s score.Score) bool {
			return complete && !p.halted() && (whole || p.inTheWay(s))
		})
		if err != nil {
			return left, err
		}
		if gone {
			p.removed = append(p.removed, o)
		} else {
			left = append(left, o)
		}
		p.progressed()
	}
	return p.releaseRest(orphans, left)
}

// inTheWay reports whether a score that is no longer wanted holds a port that another
// one claims now, as a container does that got another name: the new one cannot start
// before the old one is gone. It stays while the new one could not start all the same.
func (p *pass) inTheWay(s score.Score) bool {
	return slices.ContainsFunc(s.Spec.Claims(), func(r score.Resource) bool {
		return r.IsPort() && slices.ContainsFunc(p.plan.claims(r), func(c claim) bool { return !c.it.unfetched })
	})
}

// removeOne undoes what e was made for, if q lets it. What was applied last goes only if
// its absence means something, which absent tells.
func (p *pass) removeOne(ctx context.Context, e store.Entry, q authority.Question, absent func(score.Score) bool) (interpret.Orphan, bool, error) {
	o := interpret.Orphan{Resource: score.Resource(e.Resource), Manifest: e.Manifest, Score: score.ID(e.Score)}
	s := score.Score{ID: o.Score}
	env, err := score.Encode(map[string]any{"kind": e.Kind, "id": e.Score, "spec": e.Spec})
	if err == nil {
		err = score.Decode(env, &s)
	}
	if err != nil {
		o.Code, o.Message = interpret.CodeUnreadable, fmt.Sprintf("cannot read what was applied: %v", err)
		return o, false, nil
	}
	q.Partial = !absent(s)
	ctx, cancel := context.WithTimeout(ctx, scoreTimeout)
	defer cancel()
	st, err := p.Table.Remove(ctx, s, &removal{Runner: p.Runner, plan: p.plan, entry: e, q: q})
	if err != nil {
		return o, false, err
	}
	o.Code, o.Message = st.Code, st.Message
	return o, st.Outcome == interpret.Changed, nil
}

// releaseRest gives up entries of scores that are still wanted and do not claim them any
// more, such as a port. A file that such a score wrote is there, so it is reported.
func (p *pass) releaseRest(orphans []store.Entry, left []interpret.Orphan) ([]interpret.Orphan, error) {
	main := map[topology.Mark]bool{} // scores whose main entry is an orphan too: the rest goes with it
	for _, e := range orphans {
		if len(e.Spec) > 0 {
			main[topology.Mark(e.Manifest+"/"+e.Score)] = true
		}
	}
	var free []string
	for _, e := range orphans {
		switch {
		case len(e.Spec) > 0 || main[topology.Mark(e.Manifest+"/"+e.Score)]:
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
	*Runner
	plan  *plan
	entry store.Entry
	q     authority.Question
	going []string // resources that go with it
}

func (r *removal) Admit(_ context.Context, a interpret.Action) (interpret.Verdict, error) {
	r.q.Provenance = interpret.Owned
	if r.entry.Provenance == store.Adopted && a.Found { // what is gone need not be kept
		r.q.Provenance = interpret.Adopted
	}
	if m, _, ok := strings.Cut(string(a.FoundMark), "/"); ok && m != r.entry.Manifest && r.plan.wanted(a.FoundMark, score.Resource(r.entry.Resource)) {
		r.q.Provenance = interpret.Foreign // it may be somebody else's by now; a thing that moved may carry its old mark
	}
	d := authority.Decide(r.q)
	switch d.Decision {
	case interpret.DecideApply:
	case interpret.DecidePending:
		return interpret.Verdict{Outcome: interpret.Pending, Code: CodeBrake, Message: d.Reason}, nil
	default:
		code := interpret.CodeNotOwned
		if r.q.Blocked {
			code = interpret.CodeBlocked
		}
		return interpret.Verdict{Outcome: interpret.Drifted, Code: code, Message: d.Reason}, nil
	}
	var actions []store.Action
	for _, e := range r.Store.ByScore(r.entry.Manifest, r.entry.Score) {
		if e.Resource == r.entry.Resource || len(e.Spec) == 0 && len(r.plan.claimed[score.Resource(e.Resource)]) == 0 {
			actions = append(actions, store.Action{Entry: e, Verb: verbRemove})
			r.going = append(r.going, e.Resource)
		}
	}
	err := r.Store.Begin(actions...)
	return interpret.Verdict{Allow: err == nil, Authority: d.Authority}, err
}

// Done gives up, in one write, everything that the score owned and nobody claims any more.
func (r *removal) Done(_ context.Context, _ interpret.Action, st interpret.ScoreStatus) error {
	results := make([]store.Result, len(r.going))
	for i, res := range r.going {
		results[i] = store.Result{Resource: res, Release: st.Outcome == interpret.Changed}
	}
	return r.Store.End(results...)
}

func (r *removal) Holds(context.Context, score.Score, topology.Mark) error { return nil }
