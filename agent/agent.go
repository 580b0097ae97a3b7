package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
)

// A Config is what an Agent works with. Runner, Recovered, Open and Log are needed;
// every port may be nil.
type Config struct {
	Runner     *Runner
	Recovered  store.Recovered
	Open       Open
	Link       Link
	Events     topology.Events
	Supervisor Supervisor
	Sweeper    Sweeper
	Device     string          // name of the device, for its status
	Identity   interpret.Agent // of this process
	Relist     time.Duration   // between full passes when nothing happens; 0 means 5 min
	Beat       time.Duration   // how often Supervisor.Alive is called; 0 means never
	Log        *logrus.Entry
}

// An Agent keeps one device in the state of its last verified intent.
type Agent struct {
	Config
	wake     chan struct{} // something changed that a pass must look at
	events   chan struct{}
	replan   chan struct{} // the watcher has other resources to watch
	outbox   chan struct{}
	progress chan struct{}

	mu       sync.Mutex
	plan     *plan
	control  Control
	problems []interpret.Problem
	status   interpret.DeviceStatus // as of the last pass
}

// New returns an agent that does nothing yet.
func New(c Config) *Agent {
	if c.Relist == 0 {
		c.Relist = 5 * time.Minute
	}
	one := func() chan struct{} { return make(chan struct{}, 1) }
	a := &Agent{Config: c, wake: one(), events: one(), replan: one(), outbox: one(), progress: one()}
	a.Runner.progress = func() { signal(a.progress) }
	a.Runner.Uncertain = c.Recovered.Lost() || c.Recovered.Newer
	return a
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run works until ctx ends. First it makes true, from disk and without any network,
// what was accepted last; only then it connects.
func (a *Agent) Run(ctx context.Context) {
	a.load()
	a.sweep()
	var wg sync.WaitGroup
	defer wg.Wait()
	if a.Events != nil {
		wg.Go(func() { a.watch(ctx) })
	}
	a.pass(ctx)
	if a.Supervisor != nil {
		a.Supervisor.Ready()
		defer a.Supervisor.Stopping()
	}
	if a.Link != nil && ctx.Err() == nil {
		wg.Go(func() { a.Link.Run(ctx, a) })
		wg.Go(func() { a.deliver(ctx) })
	}
	a.loop(ctx)
}

// eventGap is how long events are gathered before a pass. Events that lead to nothing
// make it longer, so that noise costs little.
const (
	shortGap = 50 * time.Millisecond
	longGap  = 30 * time.Second
)

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
	gap, gather, lastEvent := shortGap, (<-chan time.Time)(nil), time.Time{}
	for {
		events := false
		select {
		case <-ctx.Done():
			return
		case <-beat:
			a.Supervisor.Alive()
			continue
		case <-a.events:
			if gather == nil {
				if time.Since(lastEvent) > 2*longGap {
					gap = shortGap
				}
				lastEvent, gather = time.Now(), time.After(gap)
			}
			continue
		case <-gather:
			gather, events = nil, true
		case <-a.wake:
		case <-relist.C:
		case <-retry.C:
		}
		changed := a.pass(ctx)
		switch {
		case changed:
			gap = shortGap
		case events:
			gap = min(2*gap, longGap)
		}
		relist.Reset(a.jitter())
		retry.Reset(a.untilRetry())
	}
}

func (a *Agent) jitter() time.Duration {
	return a.Relist - a.Relist/5 + rand.N(2*a.Relist/5+1)
}

// untilRetry is when the first failed score may be tried again.
func (a *Agent) untilRetry() time.Duration {
	at := a.Runner.pace.next()
	if at.IsZero() {
		return 24 * time.Hour
	}
	return max(time.Until(at), 0)
}

// load takes the last accepted intent from the store, and says what the store lost.
func (a *Agent) load() {
	for _, f := range a.Recovered.Findings {
		code := CodeRecovered
		if f.Code == store.CodeNewer {
			code = CodeNewerState
		}
		a.problem(code, f.String())
	}
	for _, in := range a.Recovered.Intents {
		if in.Name != intentName {
			continue
		}
		full, ok, err := a.Runner.Store.Intent(in.Name)
		if err != nil || !ok {
			a.problem(CodeRecovered, fmt.Sprintf("cannot read the last accepted intent: %v", err))
			continue
		}
		opened, err := a.Open(full.Envelope)
		if err != nil {
			a.problem(CodeRecovered, fmt.Sprintf("the last accepted intent is not trusted any more: %v", err))
			continue
		}
		a.mu.Lock()
		a.plan = prepare(opened)
		a.mu.Unlock()
		signal(a.replan)
		a.Log.WithField("generation", in.Generation).Info("intent loaded from disk")
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

// pass plays the present plan once and tells whether it changed anything. While it is
// under way the supervisor hears of its progress, readers see that it is running, and
// a newer intent ends it early.
func (a *Agent) pass(ctx context.Context) (changed bool) {
	a.mu.Lock()
	pl, control := a.plan, a.control
	a.mu.Unlock()
	a.checkStore()
	if pl == nil {
		a.publish(interpret.DeviceStatus{APIVersion: apiVersion, Kind: interpret.StatusKind, Phase: interpret.PhaseIdle, State: interpret.StateNoIntent})
		return false
	}
	halt, over := make(chan struct{}), make(chan struct{})
	var st interpret.DeviceStatus
	var err error
	go func() {
		defer close(over)
		p := pass{Runner: a.Runner, plan: pl, blocked: control.Blocked || a.Recovered.Newer, halt: halt}
		st, err = p.run(ctx)
	}()
	a.attend(ctx, pl, halt, over)
	if err != nil {
		a.problem(CodeStore, err.Error())
		a.Log.WithError(err).Error("cannot keep the books")
	}
	a.Runner.pace.forget(pl)
	changed = a.log(st)
	a.publish(st)
	return changed
}

// attend waits for a pass to be over.
func (a *Agent) attend(ctx context.Context, pl *plan, halt, over chan struct{}) {
	running := time.NewTimer(300 * time.Millisecond)
	defer running.Stop()
	tick := time.NewTicker(cmpBeat(a.Beat))
	defer tick.Stop()
	last, halted := time.Now(), false
	for {
		select {
		case <-over:
			return
		case <-a.progress:
			last = time.Now()
		case <-running.C:
			a.publishRunning(pl)
		case <-tick.C:
			if a.Supervisor != nil && a.Beat > 0 && time.Since(last) < scoreTimeout+time.Minute {
				a.Supervisor.Alive()
			}
		case <-ctx.Done():
			if !halted {
				close(halt)
				halted = true
			}
			<-over
			return
		case <-a.wake:
			if !halted && a.superseded(pl) {
				close(halt)
				halted = true
			}
			defer signal(a.wake)
		}
	}
}

func cmpBeat(d time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return time.Hour
}

func (a *Agent) superseded(pl *plan) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.plan != pl
}

// checkStore notices books that were removed or damaged while the agent runs.
func (a *Agent) checkStore() {
	s := a.Runner.Store
	if err := s.Check(); err != nil {
		if err := s.Repair(); err != nil {
			a.problem(CodeStore, err.Error())
		}
	}
	for _, f := range s.Findings() {
		a.problem(CodeRecovered, f.String())
		a.Runner.Uncertain = a.Runner.Uncertain || f.Lost
		if f.Code == store.CodeRebuilt {
			a.keepAgain()
		}
	}
}

// keepAgain puts the present intent into books that were made again from memory.
func (a *Agent) keepAgain() {
	a.mu.Lock()
	pl := a.plan
	a.mu.Unlock()
	if pl == nil {
		return
	}
	if err := a.accept(pl.intent); err != nil {
		a.problem(CodeStore, err.Error())
	}
}

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

// watchPlan watches the resources of the present plan until there is another one.
func (a *Agent) watchPlan(ctx context.Context) {
	for ctx.Err() == nil {
		a.mu.Lock()
		pl := a.plan
		a.mu.Unlock()
		var res []topology.Resource
		for r := range pl.claimed {
			res = append(res, topology.Resource(r))
		}
		wctx, cancel := context.WithCancel(ctx)
		failed := make(chan error, 1)
		go func() { failed <- a.Events.Watch(wctx, res, func(topology.Resource) { signal(a.events) }) }()
		select {
		case <-a.replan:
			cancel()
			<-failed
			continue
		case err := <-failed:
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
