package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// watch hurries the next pass when something changed outside.
func (a *Agent) watch(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-a.replan:
		}
		a.watchPlan(ctx)
	}
}

// watchPlan watches the resources of the plan that is played until there is another one.
func (a *Agent) watchPlan(ctx context.Context) {
	for ctx.Err() == nil {
		a.mu.Lock()
		pl := a.played
		a.mu.Unlock()
		var res []topology.Resource
		for r := range pl.claimed {
			res = append(res, topology.Resource(r))
		}
		wctx, cancel := context.WithCancel(ctx)
		failed := make(chan error, 1)
		go func() { failed <- a.Events.Watch(wctx, res, func(topology.Resource) { signal(a.events) }) }()
		well := time.AfterFunc(longGap, func() { a.Resolved(CodeWatch) })
		select {
		case <-a.replan:
			well.Stop()
			cancel()
			<-failed
			continue
		case err := <-failed:
			well.Stop()
			cancel()
			if ctx.Err() != nil {
				return
			}
			a.problem(CodeWatch, fmt.Sprintf("cannot watch for changes; a full pass every %s finds them: %v", a.Relist, err))
			signal(a.events) // what happened meanwhile
		}
		select {
		case <-ctx.Done():
		case <-a.replan:
		case <-time.After(longGap):
		}
	}
}
