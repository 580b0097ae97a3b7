package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
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
	r.mu.Lock()
	r.tried = r.Store.Notes(noteTried)
	r.mu.Unlock()
	if r.Checkpoints == nil {
		return nil
	}
	_, err := r.Checkpoints.Recover(ctx)
	return err
}
