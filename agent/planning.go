package agent

import (
	"slices"

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

// restarted are the scores that are restarted, or read again, when it changes, and those that are because of them.
func restarted(it *item, all []*item) (ids []score.ID) {
	hit := map[*item]bool{it: true}
	for _, other := range all { // needs first: one run is enough
		if !hit[other] && slices.ContainsFunc(other.triggers, func(t triggering) bool { return hit[t.item] }) {
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
