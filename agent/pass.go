package agent

import (
	"context"
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// A pass is one run of a plan.
type pass struct {
	*Runner
	plan    *plan
	blocked bool
	dry     bool
	await   bool          // wait for the verdict of probes: nobody comes back to look
	halt    chan struct{} // closed: finish what has begun, begin nothing more; may be nil

	fetcher    *fetcher  // fetches in the background; nil: the pass does it first
	follower   *follower // asks again in the background; nil: nobody does
	superseded bool      // what a newer intent needs is being fetched

	only []*item                // play these alone: the others are as they were; nil: all
	last interpret.DeviceStatus // what the pass before said, and a pass over a part says of the rest

	played   []*item         // those of the pass
	braked   map[string]bool // manifests that decommission more than a device removes by itself
	begun    time.Time
	changed  bool
	consent  *consent                  // what a person allowed for this pass; may be nil
	removals []interpret.PlannedAction // what was asked about what is no longer named
	gone     []interpret.ReceiptAction // what was collected, or given up, of that
	problems []string                  // what else went wrong

	lanes      *lanes
	unfinished []string // what could not be done at its end, and is tried again by the next one
}

// run plays every score of the plan once and collects what is no longer wanted. The
// error is about the books only.
func (p *pass) run(ctx context.Context) (interpret.DeviceStatus, error) {
	p.begun, p.lanes = now(), newLanes(p.parallel(), p.halt)
	ctx = topology.InBatch(ctx, p.lanes)
	items := p.items()
	p.braked = p.brakes()
	if !p.dry && !p.blocked {
		p.prefetch(ctx, items)
	}
	err := p.playAll(ctx, items)
	st := p.status()
	switch {
	case p.only != nil:
		st.Orphans = p.last.Orphans
	case err == nil:
		st.Orphans, err = p.collect(ctx, st)
	}
	for _, e := range p.lanes.finish(ctx) {
		p.unfinished = append(p.unfinished, topology.FaultOf(e).Text)
	}
	if err == nil && !p.dry && !p.blocked && p.only == nil {
		err = p.keepPolicies()
	}
	st.FoldDevice()
	st.Started, st.Finished = p.begun, now()
	return st, err
}

// items are those of the plan, ready for the pass.
func (p *pass) items() []*item {
	items := p.only
	if items == nil {
		items = p.plan.items()
	}
	p.played = items
	var of *plannedManifest // whose policy shared is: one for all its scores
	var shared score.Policy
	for _, it := range items {
		it.done, it.status, it.effort, it.unfetched = make(chan struct{}), interpret.ScoreStatus{}, looked, false
		if of != it.manifest {
			of, shared = it.manifest, authority.Effective(p.Ceiling.Policy, it.manifest.policy, nil)
		}
		it.policy, it.action, it.text = shared, interpret.PlannedAction{}, nil
		if it.score.Policy != nil {
			it.policy = authority.Effective(p.Ceiling.Policy, it.manifest.policy, it.score.Policy)
		}
	}
	return items
}

// gate is the door in front of it.
func (p *pass) gate(it *item) *gate {
	return &gate{pass: p, it: it}
}

func (p *pass) playAll(ctx context.Context, items []*item) error {
	var first error
	var mu sync.Mutex
	p.lanes.each(items, func(it *item) {
		defer p.progressed()
		defer p.lanes.played(it)
		if err := p.play(ctx, it); err != nil {
			mu.Lock()
			defer mu.Unlock()
			if first == nil {
				first = err
			}
		}
	})
	return first
}

func (p *pass) progressed() {
	if p.progress != nil {
		p.progress()
	}
}

func (p *pass) halted() bool {
	select {
	case <-p.halt:
		return true
	default:
		return false
	}
}
