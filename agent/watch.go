package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/continuo-fleet/continuo/score"
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
		go func() { failed <- a.Events.Watch(wctx, res, a.heard) }()
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
			a.heard("") // anything may have happened meanwhile
		}
		select {
		case <-ctx.Done():
		case <-a.replan:
		case <-time.After(longGap):
		}
	}
}

// heard notes that something may have changed; the empty resource stands for everything.
func (a *Agent) heard(r topology.Resource) {
	a.mu.Lock()
	if a.dirty == nil {
		a.dirty = map[topology.Resource]bool{}
	}
	a.dirty[r] = true
	a.mu.Unlock()
	signal(a.events)
}

// takeDirty returns what changed since the last call; nothing if that may be anything.
func (a *Agent) takeDirty() []topology.Resource {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.dirty[""]
	out := slices.Collect(maps.Keys(a.dirty))
	a.dirty = nil
	if all {
		return nil
	}
	return out
}

// concerned are the items that claim one of the resources, and those that depend on them,
// in order. It is nil if one of the resources is nobody's: then anything may be concerned.
func (p *plan) concerned(about []topology.Resource) (items []*item) {
	hit := map[*item]bool{}
	for _, r := range about {
		claims := p.claims(score.Resource(r))
		if len(claims) == 0 {
			return nil
		}
		for _, c := range claims {
			hit[c.it] = true
		}
	}
	for _, it := range p.items() { // needs first: one run is enough
		if hit[it] || slices.ContainsFunc(it.needs, func(n *item) bool { return hit[n] }) {
			hit[it] = true
			items = append(items, it)
		}
	}
	return items
}
