package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
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
		res = append(res, pl.secrets()...)
		wctx, cancel := context.WithCancel(ctx)
		failed := make(chan error, 1)
		go func() {
			failed <- a.Events.Watch(wctx, res, func(r topology.Resource) {
				if r != "" || !a.begins(pl) {
					a.heard(r)
				}
			})
		}()
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
			if !a.begins(pl) {
				a.heard("") // anything may have happened meanwhile
			}
		}
		select {
		case <-ctx.Done():
		case <-a.replan:
		case <-time.After(longGap):
		}
	}
}

// begins reports whether the first pass over pl is still to come, so that nothing is missed
// by not having watched until now, and lets it begin.
func (a *Agent) begins(pl *plan) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unwatched == nil || a.played != pl {
		return false
	}
	close(a.unwatched)
	a.unwatched = nil
	return true
}

// awaitWatch gives the watcher time to see what happens to a plan before the first pass
// over it looks. If that takes longer, there is another pass when it does.
func (a *Agent) awaitWatch(ctx context.Context) {
	a.mu.Lock()
	begins := a.unwatched
	a.mu.Unlock()
	if begins == nil {
		return
	}
	select {
	case <-begins:
	case <-ctx.Done():
	case <-time.After(shortly):
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unwatched = nil
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

// takeDirty returns what may have changed since the last call, and whether anything may.
// Without a resource, that is everything.
func (a *Agent) takeDirty() (about []topology.Resource, any bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	dirty := a.dirty
	a.dirty = nil
	if dirty[""] {
		return nil, true
	}
	return slices.Collect(maps.Keys(dirty)), len(dirty) > 0
}

// echo reports whether what was heard may be what the agent itself did just before. It is
// asked once about each.
func (a *Agent) echo(about []topology.Resource) bool {
	ours := a.ours
	a.ours = nil
	return len(about) > 0 && !slices.ContainsFunc(about, func(r topology.Resource) bool { return !ours[r] })
}

// touched are the resources of what a pass changed.
func (p *pass) touched() map[topology.Resource]bool {
	out := map[topology.Resource]bool{}
	for _, it := range p.played {
		if it.status.Outcome == interpret.Changed {
			for _, c := range it.claims {
				out[topology.Resource(c)] = true
			}
		}
	}
	return out
}

// concerned are the items that claim one of the resources or use such a secret, and those that
// depend on them, in order. It is nil if one of the resources is nobody's: then anything may be
// concerned.
func (p *plan) concerned(about []topology.Resource) (items []*item) {
	hit := map[*item]bool{}
	for _, r := range about {
		claims, users := p.claims(score.Resource(r)), p.users(r)
		if len(claims)+len(users) == 0 {
			return nil
		}
		for _, c := range claims {
			hit[c.it] = true
		}
		for _, it := range users {
			hit[it] = true
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

// secret is a secret as a resource, for who watches.
func secret(name string) topology.Resource { return topology.Resource("secret:" + name) }

// secrets are those that the items use, each once.
func (p *plan) secrets() (out []topology.Resource) {
	seen := map[topology.Resource]bool{}
	for _, it := range p.items() {
		for _, name := range it.secretNames() {
			if r := secret(name); !seen[r] {
				seen[r] = true
				out = append(out, r)
			}
		}
	}
	return out
}

// users are the items that use a secret.
func (p *plan) users(r topology.Resource) (out []*item) {
	if !strings.HasPrefix(string(r), string(secret(""))) {
		return nil
	}
	for _, it := range p.items() {
		if slices.ContainsFunc(it.secretNames(), func(name string) bool { return secret(name) == r }) {
			out = append(out, it)
		}
	}
	return out
}

func (it *item) secretNames() []string {
	if user, ok := it.score.Spec.(score.SecretUser); ok {
		return user.SecretNames()
	}
	return nil
}
