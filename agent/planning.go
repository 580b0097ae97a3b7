package agent

import (
	"context"
	"slices"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// maxPlanned bounds the actions that a plan document shows: what travels has a size.
const maxPlanned = 200

// planned returns what a dry pass found, as a plan.
func (p *pass) planned() (interpret.Plan, error) {
	out := interpret.Plan{
		APIVersion: apiVersion, Kind: interpret.PlanKind, Device: p.plan.intent.Assignment.Metadata.Name,
		Generation: p.plan.intent.Generation, Assignment: p.plan.intent.Digest,
	}
	for _, it := range p.plan.items() {
		a := it.action
		switch {
		case a.Action != "":
			a.Restarts = restarted(it, p.plan.items())
		case it.status.Outcome.Converged():
			out.Unchanged++
			continue
		default: // nothing that can be done about it
			a = interpret.PlannedAction{
				Manifest: it.manifest.name, Generation: it.manifest.generation, Score: it.score.ID, Kind: it.score.Spec.Kind(),
				Action: interpret.ActionNone, Resources: it.claims, SpecDigest: it.digest,
				Decision: interpret.DecideRefuse, Code: it.status.Code, Reason: it.status.Message,
			}
		}
		out.Actions = append(out.Actions, a)
	}
	out.Actions = append(out.Actions, p.removals...)
	if err := out.Seal(); err != nil {
		return out, err
	}
	out.Time = now()
	return out, nil
}

// restarted are the scores that are restarted when it changes, and those that are because of them.
func restarted(it *item, all []*item) (ids []score.ID) {
	hit := map[*item]bool{it: true}
	for _, other := range all { // needs first: one run is enough
		if !hit[other] && slices.ContainsFunc(other.triggers, func(t *item) bool { return hit[t] }) {
			hit[other] = true
			ids = append(ids, other.score.ID)
		}
	}
	return ids
}

// shortPlan leaves out what would make a plan too large to travel. Its id stays that of the whole.
func shortPlan(p interpret.Plan) interpret.Plan {
	if len(p.Actions) > maxPlanned {
		p.Truncated = len(p.Actions) - maxPlanned
		p.Actions = slices.Clone(p.Actions[:maxPlanned])
	}
	return p
}

// Plan computes what a pass over in would do, and what of it is allowed. It observes and
// compares, and changes nothing, on the device as in the books.
func (r *Runner) Plan(ctx context.Context, in Intent) (interpret.Plan, error) {
	p := &pass{Runner: r, plan: r.prepared(in), dry: true}
	if _, err := p.run(ctx); err != nil {
		return interpret.Plan{}, err
	}
	return p.planned()
}

// Observe compares the device with in, and changes nothing: a score that is not true is
// Drifted, with the changes that it would take.
func (r *Runner) Observe(ctx context.Context, in Intent) (interpret.DeviceStatus, error) {
	return (&pass{Runner: r, plan: r.prepared(in), dry: true}).run(ctx)
}

// Apply plays in once, as far as its policies let a device act by itself, and returns the
// status of the device. The error is about the books only.
func (r *Runner) Apply(ctx context.Context, in Intent) (interpret.DeviceStatus, error) {
	return r.once(ctx, &pass{Runner: r, plan: r.prepared(in), await: true})
}

// Confirm is Apply with the consent of a person to all changes but destruction: whoever
// stands before the device and sees what is done. What was done is kept as a receipt under
// name, which is used once.
func (r *Runner) Confirm(ctx context.Context, in Intent, name string) (interpret.DeviceStatus, error) {
	p := &pass{Runner: r, plan: r.prepared(in), await: true, consent: &consent{name: name, all: true}}
	st, err := r.once(ctx, p)
	if err != nil {
		return st, err
	}
	actions, failed := p.receiptActions()
	return st, r.keepByHand(name, interpret.VerbInstall, actions, failed, p.begun)
}

// keepByHand keeps the receipt of what a person before the device did.
func (r *Runner) keepByHand(name string, verb interpret.Verb, actions []interpret.ReceiptAction, failed bool, began time.Time) error {
	if len(actions) == 0 {
		return nil
	}
	result := interpret.ResultDone
	if failed {
		result = interpret.ResultFailed
	}
	return r.saveReceipt(shorten(interpret.Receipt{
		APIVersion: apiVersion, Kind: interpret.ReceiptKind, ID: name, Verb: verb, Actor: "a person at the device", Result: result, Actions: actions, Started: began, Finished: now(),
	}))
}

func (r *Runner) once(ctx context.Context, p *pass) (st interpret.DeviceStatus, err error) {
	r.watching(ctx, p.plan, func(ctx context.Context) { st, err = p.run(ctx) })
	return st, err
}
