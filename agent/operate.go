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
	"github.com/continuo-fleet/continuo/score"
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
	if now.ID != o.op.Plan {
		r := o.receipt(a, interpret.ResultRefused, interpret.CodePlanChanged, "the device, or what it is to be, is not as it was when this plan was made: look at the plan of now, and confirm that")
		r.Generation, r.Plan = now.Generation, new(shortPlan(now))
		return r
	}
	c := confirmed(o.op.ID, now)
	if o.op.Verb == interpret.VerbApprove {
		c = &consent{name: o.op.ID, approvals: o.op.Approvals}
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
		case !slices.Equal(a.Resources, ap.Resources):
			return CodeApprovalResource, fmt.Sprintf("%s: the plan is about %v, the approval about %v", who, a.Resources, ap.Resources)
		case a.SpecDigest != ap.SpecDigest:
			return CodeApprovalParameters, fmt.Sprintf("%s: the approval is of another version of the score", who)
		}
		return "", ""
	}
	return CodeWrongApproval, fmt.Sprintf("the plan has no action for %s/%s", ap.Manifest, ap.Score)
}

// chosen are the items that an operation names: those of one manifest, all if it names none.
func chosen(p *plan, op interpret.Operation) (items []*item, missing string) {
	for _, it := range p.items() {
		if it.manifest.name == op.Manifest && (len(op.Scores) == 0 || slices.Contains(op.Scores, it.score.ID)) {
			items = append(items, it)
		}
	}
	for _, id := range op.Scores {
		if !slices.ContainsFunc(items, func(it *item) bool { return it.score.ID == id }) {
			return nil, fmt.Sprintf("manifest %q has no score %q on this device", op.Manifest, id)
		}
	}
	if len(items) == 0 {
		return nil, fmt.Sprintf("there is no manifest %q on this device", op.Manifest)
	}
	return items, ""
}

// adopt takes over what is there. Its content is kept, and nothing of it is changed; what
// differs is corrected by the next pass, as far as the policy lets it.
func (a *Agent) adopt(ctx context.Context, o order) interpret.Receipt {
	present, control := a.present()
	items, missing := chosen(present, o.op)
	if missing != "" {
		return o.receipt(a, interpret.ResultRefused, CodeNothingToDo, missing)
	}
	for _, it := range items {
		if code, why, refused := a.Runner.Ceiling.RefusesAdoption(it.score); refused {
			return o.receipt(a, interpret.ResultRefused, code, why)
		}
	}
	p := &pass{Runner: a.Runner, plan: present, dry: true, blocked: control.Blocked}
	if _, err := p.run(ctx); err != nil { // looks at what is there
		return a.failed(o, err)
	}
	r := o.receipt(a, interpret.ResultDone, "", "")
	taken := 0
	for _, it := range items {
		x := interpret.ReceiptAction{Manifest: it.manifest.name, Score: it.score.ID, Kind: it.score.Spec.Kind(), Action: interpret.ActionNone,
			Outcome: interpret.Unchanged, Authority: "plan:" + o.op.ID, Resources: it.claims}
		if st, in := p.inTheWayOfAdoption(it); in {
			x.Outcome, x.Code, x.Message, x.Authority = st.Outcome, st.Code, st.Message, ""
			r.Actions = append(r.Actions, x)
			continue
		}
		backup, some, err := p.takeOver(ctx, it, o.op.ID)
		if err != nil {
			return a.failed(o, err)
		}
		if taken++; some {
			x.Backup = backup
			r.Actions = append(r.Actions, x)
		}
	}
	switch {
	case taken == 0:
		r.Result, r.Code, r.Message = interpret.ResultRefused, CodeNothingToDo, "nothing of it can be taken over: see the actions"
	case taken < len(items) && len(o.op.Scores) > 0:
		r.Result, r.Message = interpret.ResultFailed, "not all of it can be taken over: see the actions"
	}
	r.Finished = now()
	return shorten(r)
}

// inTheWayOfAdoption says why a score cannot take over what it claims, after p has looked.
func (p *pass) inTheWayOfAdoption(it *item) (st interpret.ScoreStatus, some bool) {
	switch st = it.status; {
	case st.Outcome == interpret.Conflict && st.Code == authority.CodeForeign && it.action.Action != "": // this is what it is for
	case st.Outcome == interpret.Conflict, st.Outcome == interpret.Failed, st.Outcome == interpret.Refused, st.Outcome == interpret.Unsupported, len(it.claims) == 0:
		return st, true
	}
	if it.action.Action == interpret.ActionCreate {
		return interpret.ScoreStatus{Outcome: interpret.Refused, Code: CodeNothingToDo, Message: "there is nothing to take over: it is not there"}, true
	}
	if e, owned := p.gate(it).primary(); owned && e.Manifest != it.manifest.name {
		return interpret.ScoreStatus{Outcome: interpret.Conflict, Code: interpret.CodeOwnedBy, Message: fmt.Sprintf("it is owned by manifest %q", e.Manifest)}, true
	}
	return st, false
}

// takeOver makes a score own what it claims, after a backup. What it owns already stays as it is.
func (p *pass) takeOver(ctx context.Context, it *item, operation string) (backup string, some bool, err error) {
	g := p.gate(it)
	if _, owned := g.primary(); owned {
		return "", false, nil
	}
	if backup, err = g.backUp(ctx, false); err != nil {
		return "", false, err
	}
	actions := g.actions(store.Entry{}, store.Adopted, backup, "plan:"+operation)
	for i := range actions {
		actions[i].Entry.SpecDigest, actions[i].Entry.Generation = "", 0 // never applied: what differs is new
	}
	if err := p.Store.Record(actions...); err != nil {
		return "", false, err
	}
	return backup, true, p.Store.SetNotes(g.owns())
}

// noteReleased is the prefix of the notes of what was given up and may still carry a mark of
// ours: it is foreign all the same.
const noteReleased = "released/"

// release gives up what scores own. It stays as it is.
func (a *Agent) release(o order) interpret.Receipt {
	var resources []string
	notes := map[string]string{}
	r := o.receipt(a, interpret.ResultDone, "", "")
	for _, e := range a.Runner.Store.ByManifest(o.op.Manifest) {
		if len(o.op.Scores) == 0 || slices.Contains(o.op.Scores, score.ID(e.Score)) {
			resources = append(resources, e.Resource)
			notes[noteReleased+e.Resource] = "by " + o.op.ID
			r.Actions = append(r.Actions, interpret.ReceiptAction{Manifest: e.Manifest, Score: score.ID(e.Score), Kind: score.Kind(e.Kind),
				Outcome: interpret.Unchanged, Authority: "plan:" + o.op.ID, Resources: []score.Resource{score.Resource(e.Resource)}})
		}
	}
	if len(resources) == 0 {
		return o.receipt(a, interpret.ResultRefused, CodeNothingToDo, fmt.Sprintf("this device owns nothing of manifest %q that was named", o.op.Manifest))
	}
	if err := a.Runner.Store.SetNotes(notes); err != nil {
		return a.failed(o, err)
	}
	if err := a.Runner.Store.Release(resources...); err != nil {
		return a.failed(o, err)
	}
	return shorten(r)
}

func (a *Agent) restoreBackup(ctx context.Context, o order) interpret.Receipt {
	st, err := a.Runner.restore(ctx, o.op.Backup, authority.Plan, o.op.ID)
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
	r.Actions = []interpret.ReceiptAction{restored(st)}
	return r
}
