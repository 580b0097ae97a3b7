package agent

import (
	"cmp"
	"context"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
)

// How long events are gathered before a pass. At first only for as long as a program takes
// to write a small file, so that it is not looked at half-way: a pass is over what events are
// about alone, and gathers by itself what comes meanwhile. Events that lead to nothing make
// it longer, so that noise costs little.
const (
	shortGap = 500 * time.Microsecond
	longGap  = 30 * time.Second
)

// quietAfter is how long after a change the memory that it took is given back.
const quietAfter = 10 * time.Second

func (a *Agent) loop(ctx context.Context) {
	relist := time.NewTimer(a.jitter())
	defer relist.Stop()
	retry := time.NewTimer(a.untilRetry())
	defer retry.Stop()
	var beat <-chan time.Time
	if a.Supervisor != nil && a.Beat > 0 {
		t := time.NewTicker(a.Beat)
		defer t.Stop()
		beat = t.C
	}
	quiet := time.NewTimer(quietAfter)
	defer quiet.Stop()
	surveyed := time.Now()
	gap, gather, lastEvent := shortGap, (<-chan time.Time)(nil), time.Time{}
	for {
		events := false
		var about []topology.Resource
		select {
		case <-ctx.Done():
			return
		case <-beat:
			a.Supervisor.Alive()
			continue
		case <-quiet.C: // the device has little memory, and the next pass may be long away
			debug.FreeOSMemory()
			continue
		case <-a.events:
			if gather != nil {
				continue
			}
			if time.Since(lastEvent) > 2*longGap {
				gap = shortGap
			}
			lastEvent, gather = time.Now(), time.After(gap)
			continue
		case <-gather:
			gather = nil
			if about, events = a.takeDirty(); !events {
				continue // the pass before had them
			}
		case <-a.wake:
		case <-relist.C:
		case <-retry.C:
			about = a.dueResources()
		}
		changed := a.pass(ctx, about)
		switch {
		case changed:
			gap = shortGap
			quiet.Reset(quietAfter)
		case events && !a.echo(about):
			gap = min(2*gap, longGap)
		}
		if len(about) == 0 {
			if time.Since(surveyed) >= surveyEvery {
				surveyed = time.Now()
				signal(a.survey)
			}
			relist.Reset(a.jitter())
		}
		retry.Reset(a.untilRetry())
	}
}

func (a *Agent) jitter() time.Duration {
	return a.Relist - a.Relist/5 + rand.N(2*a.Relist/5+1)
}

// untilRetry is when the first failed score may be tried again.
func (a *Agent) untilRetry() time.Duration {
	at := a.Runner.pace.next()
	if asks := a.follower.next(); !asks.IsZero() && (at.IsZero() || asks.Before(at)) {
		at = asks
	}
	if at.IsZero() {
		return 24 * time.Hour
	}
	return max(time.Until(at), shortGap)
}

// dueResources are what the scores are about that are to be tried or looked at again now.
func (a *Agent) dueResources() (about []topology.Resource) {
	a.mu.Lock()
	pl := a.played
	a.mu.Unlock()
	due, all := a.Runner.pace.due()
	if pl == nil || all {
		return nil
	}
	for _, it := range pl.items() {
		if slices.Contains(due, it.mark()) && len(it.claims) > 0 {
			about = append(about, topology.Resource(it.claims[0]))
		}
	}
	return about
}

// pass does what was asked for, and then plays the plan in force once, or the part of it that
// events were about. It tells whether it changed anything.
func (a *Agent) pass(ctx context.Context, about []topology.Resource) (changed bool) {
	defer a.keepAuditOfPass()
	was := a.unkept
	a.unkept = false
	if err := a.Runner.takeAsked(); err != nil {
		a.Log.WithError(err).Warn("the audit waits")
	}
	a.saveReceipts()
	a.noteSent()
	if a.operate(ctx) {
		about = nil
	}
	sound := a.checkStore()
	present, _ := a.present()
	if present == nil {
		a.publish(interpret.DeviceStatus{APIVersion: apiVersion, Kind: interpret.StatusKind, Phase: interpret.PhaseIdle, State: interpret.StateNoIntent})
		return false
	}
	_, p, err := a.play(ctx, nil, about)
	a.mended()
	if was && !a.unkept && err == nil && sound {
		a.resolve(CodeStore)
	}
	a.unkept = a.unkept || err != nil || !sound
	return p.changed
}

// play plays the plan in force once. While it is under way the supervisor hears of its
// progress, readers see that it is running, and a newer intent ends it early.
func (a *Agent) play(ctx context.Context, c *consent, about []topology.Resource) (interpret.DeviceStatus, *pass, error) {
	present, control := a.present()
	p := &pass{
		Runner: a.Runner, blocked: control.Blocked || a.Recovered.Newer, halt: make(chan struct{}), fetcher: a.fetcher, follower: a.follower,
		consent: c, last: a.last,
	}
	p.plan = a.advance(ctx, present, p.blocked)
	a.awaitWatch(ctx)
	p.superseded = p.plan != present
	if len(about) > 0 && c == nil && !p.superseded && a.whole == p.plan && !a.Runner.Uncertain {
		p.only = p.plan.concerned(about)
	}
	uncertain := a.Runner.Uncertain
	if p.blocked {
		a.follower.ask(ctx, nil)
	} else {
		a.follower.ask(ctx, p.plan)
	}
	if !p.blocked && !p.superseded {
		if err := a.tries(p.plan); err != nil {
			a.notKept(err)
		}
	}
	over := make(chan struct{})
	var st interpret.DeviceStatus
	var err error
	go func() {
		defer close(over)
		st, err = p.run(ctx)
	}()
	a.attend(ctx, p, over, present, control)
	if err != nil {
		a.notKept(err)
		a.Log.WithError(err).Error("cannot keep the books")
	}
	if a.whole = p.plan; err != nil || p.halted() {
		a.whole = nil
	}
	if st.State == interpret.StateConverged && !a.Runner.Uncertain && a.recoveredFor() > sayRecovered {
		a.resolve(CodeRecovered)
	}
	if p.only == nil {
		a.Runner.keep(p.plan)
		if err := a.Runner.forgetVerdicts(p.plan); err != nil {
			a.notKept(err)
		}
	}
	if uncertain && !a.Runner.Uncertain && len(st.Orphans) > 0 {
		signal(a.wake) // now that the books are made again they may go
	}
	if p.only != nil && p.cleared(st.Orphans) {
		signal(a.wake) // only a full pass collects
	}
	if p.changed = a.log(st, p.gone); p.changed {
		a.ours = p.touched()
	}
	for _, problem := range p.problems {
		a.problem(CodeRestore, problem)
	}
	if len(p.unfinished) == 0 {
		a.resolve(CodeUnfinished)
	} else if ctx.Err() == nil {
		a.problem(CodeUnfinished, strings.Join(p.unfinished, "; "))
	}
	if r, some := a.passReceipt(p, st); some && c == nil && err == nil {
		a.conclude(r)
	}
	if err == nil && !p.blocked && !p.superseded && !p.halted() {
		a.judge(p, st)
		st = a.onTrial(st)
	}
	if err == nil && !p.blocked && !p.superseded && !p.halted() {
		if err := a.ask(p); err != nil {
			a.notKept(err)
		}
	}
	if err == nil && a.Runner.backedUp.Swap(false) {
		a.prune()
	}
	if err == nil && p.only == nil && !p.blocked && !p.superseded && !p.halted() {
		a.keepContents(ctx, present, p.plan)
		a.keepImages(ctx, present, p.plan)
	}
	switch {
	case p.superseded:
		st = a.underway(st, present)
	case awaits(st):
		st.Phase = interpret.PhaseRunning
		if st.State == interpret.StatePending {
			st.State = interpret.StateConverging // it waits for nobody
		}
	}
	a.publish(st)
	return st, p, err
}

// attend waits for a pass to be over, and ends it early if it is no longer what the
// agent is to do.
func (a *Agent) attend(ctx context.Context, p *pass, over chan struct{}, present *plan, control Control) {
	running := time.NewTimer(300 * time.Millisecond)
	defer running.Stop()
	tick := time.NewTicker(cmp.Or(a.Beat, time.Hour))
	defer tick.Stop()
	last, halted := time.Now(), false
	end := func() {
		if !halted {
			close(p.halt)
		}
		halted = true
	}
	for {
		select {
		case <-over:
			return
		case <-a.progress:
			last = time.Now()
		case <-running.C:
			a.publishRunning(present)
		case <-tick.C:
			if a.Supervisor != nil && a.Beat > 0 && time.Since(last) < scoreTimeout+time.Minute {
				a.Supervisor.Alive()
			}
		case <-ctx.Done():
			end()
			<-over
			return
		case <-a.wake:
			nowPlan, now := a.present()
			switch {
			case now.Blocked:
				a.fetcher.only(nil)
			case nowPlan != present:
				a.fetcher.only(nowPlan)
			}
			if nowPlan != present || now != control || p.superseded && a.fetcher.settled(present) {
				end()
			}
			defer signal(a.wake)
		}
	}
}
