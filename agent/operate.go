package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
)

// perform does one operation.
func (a *Agent) perform(ctx context.Context, o order) interpret.Receipt {
	refuse := func(code interpret.Code, format string, args ...any) interpret.Receipt {
		return o.receipt(a, interpret.ResultRefused, code, fmt.Sprintf(format, args...))
	}
	if code, why, refused := a.Runner.Ceiling.RefusesVerb(o.op.Verb); refused {
		return refuse(code, "%s", why)
	}
	present, control := a.present()
	switch {
	case !o.op.Expires.IsZero() && time.Now().After(o.op.Expires):
		return refuse(CodeExpired, "it was to be done until %s", o.op.Expires.UTC().Format(time.RFC3339))
	case present == nil && o.op.Verb != interpret.VerbRestore:
		return refuse(CodeNothingToDo, "nothing was published for this device yet")
	case control.Blocked && o.op.Verb != interpret.VerbPlan && o.op.Verb != interpret.VerbRollbackCheck:
		return refuse(interpret.CodeBlocked, "this device was told to only observe")
	case a.Recovered.Newer && o.op.Verb != interpret.VerbPlan:
		return refuse(CodeNewerState, "the books of this device were written by a newer version")
	}
	switch o.op.Verb {
	case interpret.VerbPlan:
		signal(a.survey)
		return a.answerPlan(ctx, o)
	case interpret.VerbInstall, interpret.VerbApprove:
		return a.install(ctx, o)
	case interpret.VerbReject:
		return a.reject(ctx, o)
	case interpret.VerbAdopt:
		return a.adopt(ctx, o)
	case interpret.VerbRelease:
		return a.release(o)
	case interpret.VerbRestore:
		return a.restoreBackup(ctx, o)
	case interpret.VerbRollbackCheck:
		return a.rollbackCheck(ctx, o)
	}
	return refuse(CodeUnknownVerb, "this agent knows no operation %q", o.op.Verb)
}

// preview is a dry pass over what is in force, or would be.
func (a *Agent) preview(ctx context.Context) (interpret.Plan, error) {
	present, control := a.present()
	p := &pass{Runner: a.Runner, plan: present, dry: true, blocked: control.Blocked}
	if _, err := p.run(ctx); err != nil {
		return interpret.Plan{}, err
	}
	return p.planned()
}

func (a *Agent) failed(o order, err error) interpret.Receipt {
	return o.receipt(a, interpret.ResultFailed, CodeStore, "the books could not be kept: "+err.Error())
}

func (a *Agent) answerPlan(ctx context.Context, o order) interpret.Receipt {
	p, err := a.preview(ctx)
	if err != nil {
		return a.failed(o, err)
	}
	r := o.receipt(a, interpret.ResultDone, "", "")
	r.Generation, r.Plan = p.Generation, new(shortPlan(p))
	return r
}

// install does exactly the plan that was confirmed, or lets exactly the actions of it happen
// that were approved.
func (a *Agent) install(ctx context.Context, o order) interpret.Receipt {
	now, err := a.preview(ctx)
	if err != nil {
		return a.failed(o, err)
	}
	if o.op.Verb == interpret.VerbApprove && o.op.Plan == "" {
		if code, why := approvedByRequest(now, o.op.Approvals); code != "" {
			r := o.receipt(a, interpret.ResultRefused, code, why)
			r.Generation = now.Generation
			return r
		}
	} else if now.ID != o.op.Plan {
		r := o.receipt(a, interpret.ResultRefused, interpret.CodePlanChanged, "the device, or what it is to be, is not as it was when this plan was made: look at the plan of now, and confirm that")
		r.Generation, r.Plan = now.Generation, new(shortPlan(now))
		return r
	}
	c := confirmed(o.op.ID, now)
	if o.op.Verb == interpret.VerbApprove {
		c = &consent{name: o.op.ID, device: now.Device, approvals: o.op.Approvals}
		for _, ap := range o.op.Approvals {
			if code, why := matches(now, ap); code != "" {
				r := o.receipt(a, interpret.ResultRefused, code, why)
				r.Generation = now.Generation
				return r
			}
		}
	}
	st, p, err := a.play(ctx, c, nil)
	if err != nil {
		return a.failed(o, err)
	}
	actions, failed := p.receiptActions()
	left, lacks := p.left(now, c)
	r := o.receipt(a, interpret.ResultDone, "", "")
	switch {
	case p.superseded:
		r = o.receipt(a, interpret.ResultFailed, CodePrefetch, "what it needs from elsewhere is being fetched, and until then nothing of it is done: ask again when it is here")
	case p.halted():
		r = o.receipt(a, interpret.ResultFailed, CodeSuperseded, "a newer assignment, or an order to stop, came in the middle of it")
	case failed || lacks:
		r = o.receipt(a, interpret.ResultFailed, "", "some of it did not come true: see the actions")
	}
	r.Generation, r.Actions = st.Generation, append(actions, left...)
	return shorten(r)
}

// left are the actions that c covers and that were not even tried, each with the reason. Lacks tells
// that one of them is missed: what the plan says that it cannot be had by consent to it, is not.
func (p *pass) left(was interpret.Plan, c *consent) (left []interpret.ReceiptAction, lacks bool) {
	now := map[topology.Mark]interpret.ReceiptAction{}
	for _, it := range p.plan.items() {
		if st := it.status; it.effort != tried && !st.Outcome.Converged() {
			now[it.mark()] = interpret.ReceiptAction{Manifest: it.manifest.name, Score: it.score.ID, Kind: st.Kind, Outcome: st.Outcome, Code: st.Code,
				Message: st.Message, Cause: st.Cause, Resources: it.claims}
		}
	}
	for _, a := range p.removals {
		if a.Decision != interpret.DecideApply {
			now[markOf(a.Manifest, string(a.Score))] = interpret.ReceiptAction{Manifest: a.Manifest, Score: a.Score, Kind: a.Kind, Code: a.Code, Message: a.Reason,
				Outcome: outcomeOf(authority.Answer{Decision: a.Decision, Code: a.Code}), Cause: a.Cause, Resources: a.Resources}
		}
	}
	for _, a := range was.Actions {
		x, is := now[markOf(a.Manifest, string(a.Score))]
		if !is || !c.covers(a) {
			continue
		}
		x.Action = a.Action
		left = append(left, x)
		named := len(c.approvals) > 0 // one by one, and so none of them is there by the way
		lacks = lacks || named || a.Decision == interpret.DecideApply || a.Code == interpret.CodeConfirm || a.Code == interpret.CodeWindow || x.Code == interpret.CodePlanChanged
	}
	return left, lacks
}

// matches finds the action of a plan that an approval names, or says in which part it names
// another.
func matches(p interpret.Plan, ap interpret.Approval) (interpret.Code, string) {
	for _, a := range p.Actions {
		if a.Manifest != ap.Manifest || a.Score != ap.Score {
			continue
		}
		who := fmt.Sprintf("%s/%s", a.Manifest, a.Score)
		switch {
		case a.Action != ap.Action:
			return CodeApprovalAction, fmt.Sprintf("%s: the plan says %s, the approval %s", who, a.Action, ap.Action)
		case a.Effect != ap.Effect:
			return CodeApprovalAction, fmt.Sprintf("%s: the plan says that it does %s, the approval %s", who, a.Effect, ap.Effect)
		case !slices.Equal(a.Resources, ap.Resources):
			return CodeApprovalResource, fmt.Sprintf("%s: the plan is about %v, the approval about %v", who, a.Resources, ap.Resources)
		case a.SpecDigest != ap.SpecDigest:
			return CodeApprovalParameters, fmt.Sprintf("%s: the approval is of another version of the score", who)
		}
		return "", ""
	}
	return CodeWrongApproval, fmt.Sprintf("the plan has no action for %s/%s", ap.Manifest, ap.Score)
}

func (a *Agent) restoreBackup(ctx context.Context, o order) interpret.Receipt {
	st, path, err := a.Runner.restore(ctx, o.op.Backup, authority.Plan, o.op.ID)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, store.ErrDamaged):
		return o.receipt(a, interpret.ResultRefused, CodeNoBackup, err.Error())
	case err != nil:
		return a.failed(o, err)
	}
	r := o.receipt(a, interpret.ResultDone, "", "")
	if !st.Outcome.Converged() {
		r = o.receipt(a, interpret.ResultFailed, st.Code, st.Message)
	}
	r.Actions = []interpret.ReceiptAction{a.Runner.restored(path, st)}
	return r
}
