package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

const (
	reachTimeout = 10 * time.Second // of one try to reach what proves a change
	reachPause   = time.Second      // between two of them
)

// prover returns what proves that a change left the device in reach: its fleet answers on a new
// connection, and so does what the score names besides. It is nil for a score that cuts nobody
// off, and where there is nothing to reach.
//
// A wish that was true before is made true again without proof where nothing could be reached
// before, either: there is nothing to lose then, and a device must come back from a restart
// without its fleet.
func (p *pass) prover(ctx context.Context, s score.Spec, cause interpret.Cause) func(context.Context) error {
	spec, ok := s.(score.Confirming)
	if !ok {
		return nil
	}
	confirm, known := spec.Confirmation(), cause == interpret.CauseDrift
	var means []func(context.Context) error
	if p.Reach != nil {
		means = append(means, p.Reach)
	}
	if confirm.Connect != "" && p.Eyes != nil && p.Eyes.Probes != nil {
		means = append(means, func(ctx context.Context) error { return p.Eyes.Probes.Connect(ctx, confirm.Connect) })
	}
	cutOff := len(means) == 0
	switch {
	case cutOff && !known:
		return nil
	case known:
		cutOff = cutOff || reached(ctx, means) != nil
	}
	return func(ctx context.Context) error {
		if known && cutOff {
			return nil
		}
		return inReach(ctx, means, confirm.Window())
	}
}

// inReach waits until everything is reached at once, or says what was not when the window closed.
func inReach(ctx context.Context, means []func(context.Context) error, window time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	for {
		err := reached(ctx, means)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return errors.New("the agent was told to stop before the proof")
			}
			return fmt.Errorf("within %s: %w", window, err)
		case <-time.After(reachPause):
		}
	}
}

func reached(ctx context.Context, means []func(context.Context) error) error {
	for _, reach := range means {
		ctx, cancel := context.WithTimeout(ctx, reachTimeout)
		err := reach(ctx)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// Recover takes back what a process that is gone changed and did not prove. It is called once,
// before anything is played.
func (r *Runner) Recover(ctx context.Context) error {
	if r.Checkpoints == nil {
		return nil
	}
	back, err := r.Checkpoints.Recover(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, res := range back {
		if r.reverted == nil {
			r.reverted = map[score.Resource]bool{}
		}
		r.reverted[score.Resource(res)] = true
	}
	return err
}

// takenBack is what is reported, once, of a score whose change Recover has taken back. To try it
// again at once could cut the device off again, each time that it makes the agent stop; its pace
// does that later. What was proved before and is only made true again is not put off: a device
// would be without its firewall until then.
func (g *gate) takenBack() (st interpret.ScoreStatus, was bool) {
	if g.dry {
		return st, false
	}
	cause := g.cause()
	if !g.wasReverted(g.it.claims) || cause == interpret.CauseDrift && !g.it.score.Decommission {
		return st, false
	}
	g.effort = tried
	return unproved(cause), true
}

// wasReverted reports, once, whether Recover has taken back a change of any of these.
func (r *Runner) wasReverted(resources []score.Resource) (was bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range resources {
		was = was || r.reverted[c]
		delete(r.reverted, c)
	}
	return was
}

// unproved is what is reported of a change that Recover has taken back.
func unproved(cause interpret.Cause) interpret.ScoreStatus {
	return interpret.ScoreStatus{Outcome: interpret.RolledBack, Code: interpret.Code(topology.CodeConnectivity), Cause: cause,
		Message: "it was taken back, because the agent stopped before it was proved that the fleet could be reached"}
}
