package agent

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/agent/health"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
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
	Containers Containers
	Contents   Contents
	Images     Images
	Supervisor Supervisor
	Sweeper    Sweeper
	Storage    Storage
	Boots      Boots
	Self       *Self
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
	mail     chan struct{} // there are receipts to send
	asks     chan struct{} // there are other requests to send
	survey   chan struct{} // somebody wants to know what else is there
	describe chan struct{} // what the device says it is must be looked at
	news     chan struct{} // there is another info to send
	progress chan struct{}
	audits   chan struct{} // there may be entries of the audit to send

	accepting sync.Mutex // one intent at a time

	// of the loop alone
	fetcher  *fetcher
	follower *follower
	force    *plan                  // in force: what it needs was fetched, or tried to
	last     interpret.DeviceStatus // what came of the last pass
	versions versions
	trials   map[string]trial           // by manifest that rolls back, of the version that was played last
	whole    *plan                      // every score of it was played at least once
	ours     map[topology.Resource]bool // changed by the last pass that changed anything, and not heard of yet
	unkept   bool                       // the books could not be kept in the last pass, or in this one
	unsaved  []interpret.Receipt        // that could not be kept yet
	removals []interpret.PlannedAction  // what the last full pass was asked about of what is no longer named

	contentsOf *plan     // in force when contents that are not needed were removed last
	contentsAt time.Time // when that was
	imagesOf   *plan     // the same of images
	imagesAt   time.Time
	hadImages  bool // there were some to keep then

	damaged atomic.Bool // what containers are made from, as far as is known

	mu        sync.Mutex
	plan      *plan // of the last accepted intent
	played    *plan // of the last pass
	control   Control
	distrust  bool                       // the plan is of an intent that is not trusted any more: nothing is changed
	orders    []order                    // operations that were accepted and not done yet
	receipts  []interpret.Receipt        // to be sent
	sent      []string                   // ids of receipts that were sent, to be written down
	dirty     map[topology.Resource]bool // events since the last pass
	unwatched chan struct{}              // closed when what is played is watched; nil: it is, or nobody waits
	problems  []interpret.Problem
	recovered time.Time                  // when a loss was found last
	others    []score.Resource           // what others made, as found last, sorted
	status    interpret.DeviceStatus     // as it is reported
	requests  interpret.ApprovalRequests // as they were sent last, or are about to be
	asked     bool                       // there is such a document of this start
	info      interpret.DeviceInfo       // the same
	clock     interpret.Clock            // as it was measured last
	offset    time.Duration              // that a problem tells; 0: none does

	auditLost   uint64 // entries, when the last loss was noticed
	auditLostAt time.Time
}

// New returns an agent that does nothing yet.
func New(c Config) *Agent {
	if c.Relist == 0 {
		c.Relist = 5 * time.Minute
	}
	one := func() chan struct{} { return make(chan struct{}, 1) }
	a := &Agent{Config: c, wake: one(), events: one(), replan: one(), outbox: one(), mail: one(), asks: one(), survey: one(), describe: one(), news: one(), progress: one(), audits: one()}
	if a.Runner.Eyes != nil {
		a.Runner.health = health.New(*a.Runner.Eyes, a.unwell)
	}
	a.fetcher = newFetcher(a.Runner, func() { signal(a.wake) })
	a.follower = newFollower(a.Runner, func() { signal(a.wake) })
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

// patience is how long the first pass may take before the agent connects all the same:
// what makes it slow may need another intent.
const patience = 30 * time.Second

// Run works until ctx ends. First it makes true, from disk and without any network,
// what was accepted last; then it connects.
func (a *Agent) Run(ctx context.Context) {
	if !a.Recovered.Newer {
		a.Runner.KeepAudit(a.Device)
	}
	a.load()
	a.interrupted()
	a.sendAgain()
	a.sweep()
	if err := a.Runner.Recover(ctx); err != nil {
		a.Log.WithError(err).Warn("cannot take back a change that was not proved before the agent stopped")
	}
	defer a.end(ctx)
	defer a.fetcher.wait()
	defer a.follower.wg.Wait()
	var wg sync.WaitGroup
	defer wg.Wait()
	if a.Events != nil {
		wg.Go(func() { a.watch(ctx) })
	}
	if a.Runner.health != nil {
		wg.Go(func() { a.Runner.health.Run(ctx) })
	}
	first := make(chan struct{})
	if a.Link != nil {
		wg.Go(func() {
			select {
			case <-first:
			case <-time.After(patience):
			case <-ctx.Done():
				return
			}
			wg.Go(func() { a.deliver(ctx, a.outbox, a.sendStatus) })
			wg.Go(func() { a.deliver(ctx, a.news, a.sendInfo) })
			wg.Go(func() { a.deliver(ctx, a.asks, a.sendRequests) })
			wg.Go(func() { a.deliverReceipts(ctx) })
			wg.Go(func() { a.deliver(ctx, a.audits, a.sendAudit) })
			a.Link.Run(ctx, a)
		})
	}
	a.begin(ctx, wg.Go)
	a.pass(ctx, nil)
	close(first)
	if a.Containers != nil {
		wg.Go(func() { a.lookAround(ctx) })
	}
	if a.Self != nil {
		wg.Go(func() { a.describing(ctx) })
	}
	if a.Supervisor != nil {
		a.Supervisor.Ready()
		defer a.Supervisor.Stopping()
	}
	a.loop(ctx)
}
