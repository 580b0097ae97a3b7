package agent

import (
	"slices"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
)

// A consent is what a person allowed, once, beyond what the policies grant. The nil consent
// allows nothing.
type consent struct {
	name   string // of the operation, for the records
	device string // whose it is
	// all: whoever asks stands before the device, and sees what is done.
	all bool
	// plan is what was confirmed, and nothing else, by mark of the score.
	plan map[topology.Mark]interpret.PlannedAction
	// approvals are actions that may happen whatever they destroy.
	approvals []interpret.Approval
}

// confirmed returns the consent to a plan.
func confirmed(name string, p interpret.Plan) *consent {
	c := &consent{name: name, plan: map[topology.Mark]interpret.PlannedAction{}}
	for _, a := range p.Actions {
		c.plan[markOf(a.Manifest, string(a.Score))] = a
	}
	return c
}

// given returns the authority that c has for an action. Changed tells that the action is
// another than the one that was confirmed.
func (c *consent) given(a interpret.PlannedAction) (g authority.Given, name string, changed bool) {
	if c == nil {
		return authority.None, "", false
	}
	for _, ap := range c.approvals {
		if ap.Manifest == a.Manifest && ap.Score == a.Score && ap.Action == a.Action && ap.Effect == a.Effect && ap.SpecDigest == a.SpecDigest && slices.Equal(ap.Resources, a.Resources) {
			if id, err := interpret.RequestID(c.device, a); ap.Request != "" && (err != nil || id != ap.Request) {
				return authority.None, "", true
			}
			return authority.Signed, c.name, false
		}
	}
	if c.all {
		return authority.Plan, c.name, false
	}
	was, planned := c.plan[markOf(a.Manifest, string(a.Score))]
	switch {
	case !planned && a.Cause == interpret.CauseDependency && c.restarts(a):
		return authority.Plan, c.name, false
	case !planned:
		return authority.None, "", false
	case was.Action != a.Action || was.SpecDigest != a.SpecDigest || !slices.Equal(was.Changes, withoutTriggers(a.Changes)) && !slices.Equal(was.Changes, a.Changes):
		return authority.None, "", true
	}
	return authority.Plan, c.name, false
}

// covers reports whether c is about an action of a plan.
func (c *consent) covers(a interpret.PlannedAction) bool {
	if _, planned := c.plan[markOf(a.Manifest, string(a.Score))]; planned {
		return true
	}
	return slices.ContainsFunc(c.approvals, func(ap interpret.Approval) bool { return ap.Manifest == a.Manifest && ap.Score == a.Score })
}

// restarts reports whether the plan says that a score is restarted because of another one.
func (c *consent) restarts(a interpret.PlannedAction) bool {
	for _, p := range c.plan {
		if p.Manifest == a.Manifest && slices.Contains(p.Restarts, a.Score) {
			return true
		}
	}
	return false
}

// withoutTriggers leaves out what the engine adds when a trigger has changed in this very pass.
func withoutTriggers(changes []interpret.Change) []interpret.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c interpret.Change) bool {
		return c.Field == interpret.FieldRestart || c.Field == interpret.FieldReload
	})
}

// planned is an action as a plan names it.
func (g *gate) planned(a interpret.Action) interpret.PlannedAction {
	p := interpret.PlannedAction{
		Manifest: g.it.manifest.name, Generation: g.it.manifest.generation, Score: g.it.score.ID, Kind: g.it.score.Spec.Kind(),
		Cause: a.Cause, Effect: a.Effect, Changes: a.Changes, Resources: g.it.claims, SpecDigest: g.it.digest,
	}
	switch {
	case a.Cause == interpret.CauseExplicit:
		p.Action = interpret.ActionDecommission
	case a.Cause == interpret.CauseAbsent:
		p.Action = interpret.ActionRemove
	case !a.Found:
		p.Action = interpret.ActionCreate
	case onlyTriggered(a.Changes, interpret.FieldReload):
		p.Action = interpret.ActionReload
	case len(withoutTriggers(a.Changes)) == 0:
		p.Action = interpret.ActionRestart
	default:
		p.Action = interpret.ActionChange
	}
	return p
}
