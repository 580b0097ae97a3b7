package agent

import (
	"context"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Containers lists the containers of a device, whoever made them.
type Containers interface {
	AllContainers(ctx context.Context) ([]topology.NamedContainer, error)
}

const (
	// surveyEvery is how long it is believed what others made: to ask wakes the container
	// runtime, which costs a small device more than the agent does.
	surveyEvery = time.Hour
	// maxUnmanaged bounds what a status names of it.
	maxUnmanaged = 50
)

// lookAround finds out what others made: once, and again whenever somebody wants to know. It
// is no part of a pass: nothing waits for it, and nothing is decided by it.
func (a *Agent) lookAround(ctx context.Context) {
	for {
		all, err := a.Containers.AllContainers(ctx)
		if err == nil {
			others := a.Runner.foreign(all)
			a.mu.Lock()
			a.others = others
			a.mu.Unlock()
			a.republish()
		} else if ctx.Err() == nil {
			a.Log.WithError(err).Debug("cannot find out what else is on this device")
		}
		select {
		case <-ctx.Done():
			return
		case <-a.survey:
		}
	}
}

// foreign are the containers that carry no mark of ours, or were given up.
func (r *Runner) foreign(all []topology.NamedContainer) (out []score.Resource) {
	for _, c := range all {
		if res := score.Resource("container:" + c.Name); c.Mark == "" || r.wasReleased(res) {
			out = append(out, res)
		}
	}
	return out
}

// unmanaged is what of others no manifest names. There may be no plan.
func unmanaged(others []score.Resource, pl *plan) (named []score.Resource, more uint64) {
	for _, res := range others {
		switch {
		case pl != nil && len(pl.claimed[res]) > 0:
		case len(named) == maxUnmanaged:
			more++
		default:
			named = append(named, res)
		}
	}
	return named, more
}

// Unmanaged fills in what is there and no manifest of in names, for a command on the device.
func (r *Runner) Unmanaged(ctx context.Context, c Containers, in Intent, st *interpret.DeviceStatus) {
	if all, err := c.AllContainers(ctx); err == nil {
		st.Unmanaged, st.UnmanagedMore = unmanaged(r.foreign(all), r.prepared(in))
	}
}
