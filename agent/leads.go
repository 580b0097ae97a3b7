package agent

import (
	"context"
	"fmt"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// leadsAstray refuses a container that would be shown, by a link on the device, what it would not be shown by its
// name: podman follows links, and no validation sees them. Whoever may change a link can change it again after this
// look, until the container starts, and at each start without the agent: where a directory is not root's alone, name
// what it leads to.
func (p *pass) leadsAstray(ctx context.Context, s score.Score) (st interpret.ScoreStatus, refused bool) {
	if p.Files == nil || s.Spec == nil || s.Decommission {
		return st, false
	}
	for _, v := range score.TouchedBy(s.Spec).Seen {
		to, err := p.Files.Resolve(ctx, v.Source)
		if err != nil {
			f := topology.FaultOf(err)
			return interpret.ScoreStatus{Outcome: interpret.Failed, Code: interpret.Code(f.Code), Message: "cannot find out where a volume leads: " + f.Text}, true
		}
		if to == v.Source {
			continue
		}
		led := v
		led.Source = to
		code, why := interpret.CodeInvalid, led.Shows()
		if why == "" {
			code, why, _ = p.Ceiling.RefusesPath(to)
		}
		if why != "" {
			return interpret.ScoreStatus{Outcome: interpret.Refused, Code: code, Message: fmt.Sprintf("%s leads to %s: %s", v.Source, to, why)}, true
		}
	}
	return st, false
}
