package agent

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
)

// scoreTimeout bounds one score: a device that hangs must not hang the agent with it.
const scoreTimeout = 15 * time.Minute

// play plays one score, after those it needs.
func (p *pass) play(ctx context.Context, it *item) error {
	g := p.gate(it)
	st, err := p.outcome(ctx, g)
	if err == nil {
		if !g.told && g.effort != held {
			p.refused(it, st)
		}
		p.wellness(ctx, it, &st)
	}
	st.ID, st.Kind, st.SpecDigest, st.ObservedGeneration = it.score.ID, it.score.Spec.Kind(), it.digest, it.manifest.generation
	if it.score.Policy != nil {
		policy := it.policy // the item's is written again by the next pass, while reports are read
		st.Policy = &policy
	}
	if e, owned := g.primary(); owned {
		st.LastChangedGeneration = e.LastChanged
		st.Authority = cmp.Or(st.Authority, e.Authority)
	}
	if err != nil {
		what := "nothing was changed, because the books could not be kept"
		if g.effort == tried {
			what = "it was played, and the books could not be kept"
		}
		st.Outcome, st.Code, st.Message = interpret.Failed, CodeStore, fmt.Sprintf("%s: %v", what, err)
	}
	if !p.dry {
		p.pace.note(it.mark(), g.wish(), st, g.effort, it.tempo())
		if !st.Outcome.Converged() {
			st.NextTry = p.pace.tries(it.mark())
		}
		if v, late := p.pace.holds(it.mark(), g.wish()); late && (g.effort == tried || g.effort == held) && !st.Outcome.Converged() && !p.await {
			st.Message = v.Message // with the next try: the same until then
			if last, failed := p.pace.failure(it.mark(), g.wish()); failed {
				st.Path = last.Path
			}
		}
		if poll := it.engine().Poll; poll > 0 {
			p.pace.look(it.mark(), time.Now().Add(time.Duration(poll)))
		}
		p.remember(it, &st)
	}
	it.status, it.action, it.effort, it.unread = st, g.action, g.effort, nil
	if !st.Outcome.Converged() && !p.dry {
		it.unread = g.unread()
	}
	return err
}

func (p *pass) outcome(ctx context.Context, g *gate) (st interpret.ScoreStatus, err error) {
	it := g.it
	for _, need := range it.needs {
		p.lanes.await(need)
	}
	if it.problem != "" {
		return interpret.ScoreStatus{Outcome: interpret.Refused, Code: it.invalidity, Message: it.problem}, nil
	}
	if code, why, refused := p.Ceiling.Refuses(it.score); refused {
		return interpret.ScoreStatus{Outcome: interpret.Refused, Code: code, Message: why}, nil
	}
	if st, refused := p.leadsAstray(ctx, it.score); refused {
		return st, nil
	}
	if it.status.Outcome != "" { // it could not be fetched, or not yet
		g.effort = it.effort
		return it.status, nil
	}
	if w, res := p.rival(it); w != nil {
		return interpret.ScoreStatus{Outcome: interpret.Conflict, Code: interpret.CodeOwnedBy,
			Message: fmt.Sprintf("%s is owned by score %q of manifest %q", res, w.score.ID, w.manifest.name)}, nil
	}
	if m, res := p.absentOwner(it); m != "" {
		return interpret.ScoreStatus{Outcome: interpret.Conflict, Code: interpret.CodeOwnedBy,
			Message: fmt.Sprintf("%s is owned by manifest %q, of which this one says nothing", res, m)}, nil
	}
	g.secrets = g.rotation(ctx)
	wish := interpret.Wish{Score: it.score, Cause: g.cause()}
	wish.Restart, g.renewed = g.restart()
	ctx, g.sealed = p.seal(ctx, it.score.Spec, it.claims, it.digest)
	if _, back := p.plan.back[it.manifest.name]; back {
		wish.Because = interpret.CauseRollback
	}
	for _, need := range it.needs {
		switch {
		case need.status.Converged() || p.dry:
		case it.score.Decommission:
			return interpret.ScoreStatus{Outcome: interpret.Waiting, Code: interpret.CodeDependency,
				Message: fmt.Sprintf("it waits for score %q, which needs it and is %s", need.score.ID, word(need.status))}, nil
		default:
			return g.waits(ctx, wish, interpret.CodeDependency, fmt.Sprintf("it waits for score %q, which is %s", need.score.ID, word(need.status))), nil
		}
	}
	if !p.dry && p.lookedAt(it.score) {
		return g.waits(ctx, wish, CodeStorageCheck, "it waits until what containers are made from was looked at: the device was switched off without warning"), nil
	}
	unlock := p.groups.lock(ctx, it, p.lanes)
	if unlock != nil {
		defer unlock()
	}
	if unlock == nil || p.halted() {
		return interpret.ScoreStatus{Outcome: interpret.Waiting, Message: "a newer intent or a stop came first"}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, it.timeout())
	defer cancel()
	if wish.Restart == nil && p.hangs(it) {
		wish.Restart, wish.Because = hanging(), interpret.CauseLiveness
	}
	if it.score.Decommission {
		return p.decommission(ctx, g)
	}
	st, err = p.Table.Play(ctx, wish, g)
	return g.counted(st), err
}

// counted is a status in which what is ignored does not count.
func (g *gate) counted(st interpret.ScoreStatus) interpret.ScoreStatus {
	if st.Outcome == interpret.Drifted && toldOnly(st.Code) && g.ignores() {
		st.Outcome, g.ignored = interpret.Unchanged, true
	}
	if g.ignored {
		st.Conditions = interpret.Conditions{}
	}
	return st
}

// toldOnly reports whether a code is of what somebody else did and the device never undoes: no gate is asked about that.
func toldOnly(c interpret.Code) bool {
	return c == interpret.CodeSupervision || c == interpret.CodeObserved
}

// waits looks at a score that cannot be played yet: what is true already stays so, and what is
// not waits, unless there is nothing that the device would do about it.
func (g *gate) waits(ctx context.Context, wish interpret.Wish, code interpret.Code, why string) interpret.ScoreStatus {
	ctx, cancel := context.WithTimeout(ctx, scoreTimeout)
	defer cancel()
	st := g.Table.Observe(ctx, wish)
	if st.Outcome != interpret.Drifted || toldOnly(st.Code) {
		return g.counted(st)
	}
	st.Outcome, st.Code, st.Message = interpret.Waiting, code, why
	return st
}

func word(st interpret.ScoreStatus) string {
	if st.Outcome.Converged() {
		return "not up yet"
	}
	return string(st.Outcome)
}

// cause is why a difference is there: the wish is new, or was never true, or a secret of it has another value, or reality moved. A
// manifest without a generation counts as changed by this device if it was ever played.
func (g *gate) cause() interpret.Cause {
	e, owned := g.primary()
	applied := e.LastChanged > 0 || g.it.manifest.generation == 0 && e.Applied > 0
	if owned && e.SpecDigest == g.it.digest && applied {
		if g.rotated(e) {
			return interpret.CauseSecret
		}
		return interpret.CauseDrift
	}
	if _, back := g.plan.back[g.it.manifest.name]; back {
		return interpret.CauseRollback
	}
	return interpret.CauseIntent
}
