package agent

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/agent/health"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// A Runner plays intents on one device. It keeps nothing that is not in the store,
// except how often what failed, and what each score was before.
type Runner struct {
	Table *interpret.Table
	Store *store.Store
	// Files lets foreign content be backed up before it is overwritten; without it no
	// foreign content is overwritten.
	Files topology.FileReader
	// Ceiling is what the device lets be done to it at all, whoever signed for it.
	Ceiling authority.Ceiling
	// Eyes are what the probes of scores look through; nil: what scores say of health is not looked at.
	Eyes *health.Eyes
	// Health watches the scores that are played; an Agent sets it.
	Health *health.Watch
	// Parallel is how many scores are played at once; 0 means 4.
	Parallel int
	// Uncertain is set if books were lost: nothing is collected until a pass has found
	// every score true, and so has seen the marks on everything.
	Uncertain bool

	pace     pace
	groups   groups
	backedUp atomic.Bool // since old backups were removed last
	mu       sync.Mutex
	previous map[topology.Mark]interpret.ScoreStatus
	progress func() // called when something of a pass is over; may be nil
}

// scoreTimeout bounds one score: a device that hangs must not hang the agent with it.
const scoreTimeout = 15 * time.Minute

// A pass is one run of a plan.
type pass struct {
	*Runner
	plan    *plan
	blocked bool
	dry     bool
	await   bool          // wait for the verdict of probes: nobody comes back to look
	halt    chan struct{} // closed: finish what has begun, begin nothing more; may be nil

	fetcher    *fetcher // fetches in the background; nil: the pass does it first
	superseded bool     // what a newer intent needs is being fetched

	only []*item                // play these alone: the others are as they were; nil: all
	last interpret.DeviceStatus // what the pass before said, and a pass over a part says of the rest

	played   []*item         // those of the pass
	braked   map[string]bool // manifests that decommission more than a device removes by itself
	begun    time.Time
	changed  bool
	consent  *consent                  // what a person allowed for this pass; may be nil
	removals []interpret.PlannedAction // what was asked about what is no longer named
	removed  []interpret.Orphan        // what was collected
	kept     map[score.Resource]string // copies of what was edited by hand, of that
	givenUp  []interpret.Orphan        // what was given up, and stays
	problems []string                  // what else went wrong
}

// run plays every score of the plan once and collects what is no longer wanted. The
// error is about the books only.
func (p *pass) run(ctx context.Context) (interpret.DeviceStatus, error) {
	p.begun = now()
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

func (r *Runner) parallel() int { return cmp.Or(r.Parallel, 4) }

// each calls f for every item, in their order, from as many goroutines as the runner
// may use. An item that waits for another is always behind it.
func (p *pass) each(items []*item, f func(*item)) {
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range min(p.parallel(), len(items)) {
		wg.Go(func() {
			for i := taken.Add(1); i <= int64(len(items)); i = taken.Add(1) {
				f(items[i-1])
				p.progressed()
			}
		})
	}
	wg.Wait()
}

// gate is the door in front of it.
func (p *pass) gate(it *item) *gate {
	return &gate{pass: p, it: it}
}

func (p *pass) playAll(ctx context.Context, items []*item) error {
	var first error
	var mu sync.Mutex
	p.each(items, func(it *item) {
		defer close(it.done)
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

// play plays one score, after those it needs.
func (p *pass) play(ctx context.Context, it *item) error {
	g := p.gate(it)
	st, err := p.outcome(ctx, g)
	if err == nil {
		p.wellness(ctx, it, &st)
	}
	st.ID, st.Kind, st.SpecDigest, st.ObservedGeneration = it.score.ID, it.score.Spec.Kind(), it.digest, it.manifest.generation
	if it.score.Policy != nil {
		policy := it.policy // the item's is written again by the next pass, while reports are read
		st.Policy = &policy
	}
	if e, owned := g.primary(); owned {
		st.LastChangedGeneration = e.LastChanged
		st.Authority = cmp.Or(st.Authority, e.Authority)
	}
	if err != nil {
		what := "nothing was changed, because the books could not be kept"
		if g.effort == tried {
			what = "it was played, and the books could not be kept"
		}
		st.Outcome, st.Code, st.Message = interpret.Failed, CodeStore, fmt.Sprintf("%s: %v", what, err)
	}
	if !p.dry {
		p.pace.note(it.mark(), g.wish(), st, g.effort, it.engine())
		if !st.Outcome.Converged() {
			st.NextTry = p.pace.tries(it.mark())
		}
		if v, late := p.pace.holds(it.mark(), g.wish()); late && (g.effort == tried || g.effort == held) && !st.Outcome.Converged() && !p.await {
			st.Message = v.Message // with the next try: the same until then
			if last, failed := p.pace.failure(it.mark(), g.wish()); failed {
				st.Path = last.Path
			}
		}
		if poll := it.engine().Poll; poll > 0 {
			p.pace.look(it.mark(), time.Now().Add(time.Duration(poll)))
		}
		p.remember(it, &st)
	}
	it.status, it.action, it.effort, it.unread = st, g.action, g.effort, nil
	if !st.Outcome.Converged() && !p.dry {
		it.unread = g.unread()
	}
	return err
}

func (p *pass) outcome(ctx context.Context, g *gate) (st interpret.ScoreStatus, err error) {
	it := g.it
	for _, need := range it.needs {
		<-need.done
	}
	if it.problem != "" {
		return interpret.ScoreStatus{Outcome: interpret.Refused, Code: it.invalidity, Message: it.problem}, nil
	}
	if code, why, refused := p.Ceiling.Refuses(it.score); refused {
		return interpret.ScoreStatus{Outcome: interpret.Refused, Code: code, Message: why}, nil
	}
	if it.status.Outcome != "" { // it could not be fetched, or not yet
		g.effort = it.effort
		return it.status, nil
	}
	if w, res := p.plan.rival(it, p.owner); w != nil {
		return interpret.ScoreStatus{Outcome: interpret.Conflict, Code: interpret.CodeOwnedBy,
			Message: fmt.Sprintf("%s is owned by score %q of manifest %q", res, w.score.ID, w.manifest.name)}, nil
	}
	if m, res := p.plan.absentOwner(it, p.owner); m != "" {
		return interpret.ScoreStatus{Outcome: interpret.Conflict, Code: interpret.CodeOwnedBy,
			Message: fmt.Sprintf("%s is owned by manifest %q, of which this one says nothing", res, m)}, nil
	}
	wish := interpret.Wish{Score: it.score, Cause: g.cause()}
	wish.Restart, g.renewed = g.restart()
	if _, back := p.plan.back[it.manifest.name]; back {
		wish.Because = interpret.CauseRollback
	}
	for _, need := range it.needs {
		switch {
		case need.status.Converged() || p.dry:
		case it.score.Decommission:
			return interpret.ScoreStatus{Outcome: interpret.Waiting, Code: interpret.CodeDependency,
				Message: fmt.Sprintf("it waits for score %q, which needs it and is %s", need.score.ID, word(need.status))}, nil
		default:
			return p.waits(ctx, wish, need), nil
		}
	}
	unlock := p.groups.lock(ctx, it, p.halt)
	if unlock != nil {
		defer unlock()
	}
	if unlock == nil || p.halted() {
		return interpret.ScoreStatus{Outcome: interpret.Waiting, Message: "a newer intent or a stop came first"}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, it.timeout())
	defer cancel()
	if wish.Restart == nil && p.hangs(it) {
		wish.Restart, wish.Because = hanging(), interpret.CauseLiveness
	}
	if it.score.Decommission {
		return p.decommission(ctx, g)
	}
	st, err = p.Table.Play(ctx, wish, g)
	if g.ignored {
		st.Conditions = interpret.Conditions{}
	}
	return st, err
}

// waits looks at a score whose need is not there: what is true already stays so, and what is
// not waits.
func (p *pass) waits(ctx context.Context, wish interpret.Wish, need *item) interpret.ScoreStatus {
	ctx, cancel := context.WithTimeout(ctx, scoreTimeout)
	defer cancel()
	st := p.Table.Observe(ctx, wish)
	if st.Outcome != interpret.Drifted {
		return st
	}
	st.Outcome, st.Code = interpret.Waiting, interpret.CodeDependency
	st.Message = fmt.Sprintf("it waits for score %q, which is %s", need.score.ID, word(need.status))
	return st
}

func word(st interpret.ScoreStatus) string {
	if st.Outcome.Converged() {
		return "not up yet"
	}
	return string(st.Outcome)
}

func (p *pass) halted() bool {
	select {
	case <-p.halt:
		return true
	default:
		return false
	}
}

func (p *pass) owner(r score.Resource) string {
	e, _ := p.Store.Owner(string(r))
	return e.Manifest
}

// cause is why a difference is there: the wish is new, or was never true, or reality moved. A
// manifest without a generation counts as changed by this device if it was ever played.
func (g *gate) cause() interpret.Cause {
	e, owned := g.primary()
	applied := e.LastChanged > 0 || g.it.manifest.generation == 0 && e.Applied > 0
	if owned && e.SpecDigest == g.it.digest && applied {
		return interpret.CauseDrift
	}
	if _, back := g.plan.back[g.it.manifest.name]; back {
		return interpret.CauseRollback
	}
	return interpret.CauseIntent
}
