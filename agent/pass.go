package agent

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
)

// load takes the last accepted intent from the store, and says what the store lost. An
// intent that is not trusted any more gives no authority to anything, not even to
// correct drift; what was made under it stays.
func (a *Agent) load() {
	defer func() { // when an intent no longer ends what is said about others
		for _, f := range a.Recovered.Findings {
			code := CodeRecovered
			if f.Code == store.CodeNewer {
				code = CodeNewerState
			}
			a.problem(code, f.String())
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, p := range a.problems {
			a.Log.WithField("code", p.Code).Warn(p.Message)
		}
	}()
	for _, in := range a.Recovered.Intents {
		if in.Name != intentName {
			continue
		}
		full, ok, err := a.Runner.Store.Intent(in.Name)
		if err != nil || !ok {
			a.problem(CodeIntentLost, fmt.Sprintf("cannot read the last accepted intent: %v", err))
			continue
		}
		opened, err := a.Open(full.Envelope)
		if err != nil {
			a.problem(CodeIntentLost, fmt.Sprintf("the last accepted intent is not trusted any more, so that this device changes nothing; publish it again with a key that the device trusts: %v", err))
			continue
		}
		a.follow(opened, "intent loaded from disk")
	}
}

// sweep removes temporary files that a killed agent left where it wrote.
func (a *Agent) sweep() {
	if a.Sweeper == nil {
		return
	}
	seen := map[string]bool{}
	var dirs []string
	for _, e := range a.Runner.Store.Entries() {
		if p, ok := strings.CutPrefix(e.Resource, "file:"); ok && !seen[path.Dir(p)] {
			seen[path.Dir(p)] = true
			dirs = append(dirs, path.Dir(p))
		}
	}
	if err := a.Sweeper.SweepTemp(dirs); err != nil {
		a.Log.WithError(err).Warn("cannot remove what a killed write left behind")
	}
}

// pass does what was asked for, and then plays the plan in force once, or the part of it that
// events were about. It tells whether it changed anything.
func (a *Agent) pass(ctx context.Context, about []topology.Resource) (changed bool) {
	was := a.unkept
	a.unkept = false
	a.saveReceipts()
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
		Runner: a.Runner, blocked: control.Blocked || a.Recovered.Newer, halt: make(chan struct{}), fetcher: a.fetcher,
		consent: c, last: a.last,
	}
	p.plan = a.advance(ctx, present, p.blocked)
	a.awaitWatch(ctx)
	p.superseded = p.plan != present
	if len(about) > 0 && c == nil && !p.superseded && a.whole == p.plan && !a.Runner.Uncertain {
		p.only = p.plan.concerned(about)
	}
	uncertain := a.Runner.Uncertain
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
	}
	if uncertain && !a.Runner.Uncertain && len(st.Orphans) > 0 {
		signal(a.wake) // now that the books are made again they may go
	}
	if p.only != nil && p.cleared(st.Orphans) {
		signal(a.wake) // only a full pass collects
	}
	if p.changed = a.log(st, p.removed); p.changed {
		a.ours = p.touched()
	}
	for _, o := range p.givenUp {
		a.orphan(o).WithField("cause", interpret.CauseAbsent).Info("given up: it stays as it is")
	}
	for _, problem := range p.problems {
		a.problem(CodeRestore, problem)
	}
	if r, some := a.passReceipt(p, st); some && c == nil && err == nil {
		a.conclude(r)
	}
	if err == nil && !p.blocked && !p.superseded && !p.halted() {
		a.judge(p, st)
		st = a.onTrial(st)
	}
	if err == nil && a.Runner.backedUp.Swap(false) {
		a.prune()
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

// awaits reports whether a score waits for the first try to fetch what it needs.
func awaits(st interpret.DeviceStatus) bool {
	return slices.ContainsFunc(st.Manifests, func(m interpret.ManifestStatus) bool {
		return slices.ContainsFunc(m.Scores, func(s interpret.ScoreStatus) bool { return s.Code == CodePrefetch })
	})
}

// shortly is how long a pass waits for what it has begun to fetch: mostly it is here.
const shortly = 300 * time.Millisecond

// advance returns the plan to play now. The present one comes into force, in one step,
// when all that it needs was fetched, or tried to: until then the one before is kept
// true. Where there is none before, nothing is gained by waiting. A blocked device
// fetches nothing, and only looks at what it is to be.
func (a *Agent) advance(ctx context.Context, present *plan, blocked bool) *plan {
	pl := present
	if blocked {
		a.fetcher.only(nil)
	} else {
		begun := a.fetcher.want(ctx, present)
		a.fetcher.await(ctx, begun, shortly)
		if a.force == nil || a.fetcher.settled(present) {
			a.force = present
		} else if len(begun) > 0 {
			a.Log.WithFields(logrus.Fields{"generation": present.intent.Generation, "scores": len(begun)}).Info("fetching what it needs before it comes into force")
		}
		pl = a.force
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.played != pl {
		a.played = pl
		if a.Events != nil {
			a.unwatched = make(chan struct{})
		}
		if a.Runner.Health != nil {
			a.Runner.Health.Set(pl.probed())
		}
		signal(a.replan)
	}
	return pl
}

// sayRecovered is how long a device says that it had lost something, if all is well since.
const sayRecovered = 24 * time.Hour

func (a *Agent) recoveredFor() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Since(a.recovered)
}

// present is what the agent is to do now.
func (a *Agent) present() (*plan, Control) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.plan, a.control
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

// checkStore notices books that were removed or damaged while the agent runs.
func (a *Agent) checkStore() (sound bool) {
	s := a.Runner.Store
	sound = true
	if err := s.Check(); err != nil {
		if err := s.Repair(); err != nil {
			a.notKept(err)
			sound = false
		}
	}
	for _, f := range s.Findings() {
		a.problem(CodeRecovered, f.String())
		a.Runner.Uncertain = a.Runner.Uncertain || f.Lost
		if f.Code == store.CodeRebuilt {
			sound = a.keepAgain() && sound
		}
	}
	return sound
}

// keepAgain puts the present intent into books that were made again from memory.
func (a *Agent) keepAgain() bool {
	a.accepting.Lock()
	defer a.accepting.Unlock()
	pl, _ := a.present()
	if pl == nil {
		return true
	}
	if err := a.accept(pl.offered); err != nil {
		a.notKept(err)
		return false
	}
	return true
}

// Of each path that was overwritten, the device keeps so many copies, and none for longer;
// the newest one stays, and so do those that somebody may need to put back.
const (
	keepBackups = 10
	ageBackups  = 90 * 24 * time.Hour
)

// prune removes old backups. It runs between passes, when no backup is being made.
func (a *Agent) prune() {
	gone, err := a.Runner.Store.PruneBackups(keepBackups, ageBackups, nil)
	if err != nil {
		a.Log.WithError(err).Warn("cannot remove old backups")
	}
	if len(gone) > 0 {
		a.Log.WithField("backups", gone).Info("removed old backups")
	}
}
