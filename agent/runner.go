package agent

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/agent/health"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
)

// A Runner plays intents on one device, one after the other. Beside the store it keeps only what
// a restart may forget: how often what failed or was changed, what each score was before, and
// what its probes saw.
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
	// Reach reports whether the fleet is reached on a new connection, within the time of its
	// context; nil if there is no fleet. It proves changes that could cut the device off.
	Reach func(context.Context) error
	// Checkpoints rolls back what a process that is gone was about to prove; may be nil.
	Checkpoints topology.Recoverer
	// Boot is the id of this boot of the device: in it, an agent that was told to stop blames nobody.
	Boot string
	// Ending reports whether the machine is being shut down: then nothing is begun. What everybody is stopping would be
	// started again else, and half of that found at the next boot. May be nil.
	Ending func(context.Context) bool
	// Parallel is how many scores are played at once; 0 means 4.
	Parallel int
	// Uncertain is set if books were lost: nothing is collected until a pass has found
	// every score true, and so has seen the marks on everything.
	Uncertain bool
	// Synchronized reports whether the clock was set by something that can be trusted; nil if nobody knows. The audit says so.
	Synchronized func() bool

	health   *health.Watch // of the scores that are played; nil: nobody watches them
	pace     pace
	groups   groups
	backedUp atomic.Bool // since old backups were removed last
	looking  atomic.Bool // at what containers are made from
	mu       sync.Mutex
	previous map[topology.Mark]interpret.ScoreStatus
	tried    map[string]string // before this start, as the books say, and not asked for yet
	progress func()            // called when something of a pass is over; may be nil

	device       string // that the audit is about
	audited      bool
	refusals     sync.Mutex
	refusalsNext string // what the note of them says, or is about to
}

func (r *Runner) parallel() int { return cmp.Or(r.Parallel, 4) }

// ending is why nothing is begun any more. An agent that is told to stop is asked second: the machine cannot be asked
// whether it ends once the context is over, and it is what tells the agent to stop.
func (r *Runner) ending(ctx context.Context) (interpret.Verdict, bool) {
	switch {
	case r.Ending != nil && r.Ending(ctx):
		return interpret.Verdict{Outcome: interpret.Waiting, Message: "the machine is being shut down"}, true
	case errors.Is(ctx.Err(), context.Canceled):
		return interpret.Verdict{Outcome: interpret.Waiting, Message: "the agent was told to stop"}, true
	}
	return interpret.Verdict{}, false
}

// Plan computes what a pass over in would do, and what of it is allowed. It observes and
// compares, and changes nothing, on the device as in the books.
func (r *Runner) Plan(ctx context.Context, in Intent) (interpret.Plan, error) {
	p := &pass{Runner: r, plan: r.prepared(in), dry: true}
	if _, err := p.run(ctx); err != nil {
		return interpret.Plan{}, err
	}
	return p.planned()
}

// Observe compares the device with in, and changes nothing: a score that is not true is
// Drifted, with the changes that it would take.
func (r *Runner) Observe(ctx context.Context, in Intent) (interpret.DeviceStatus, error) {
	return (&pass{Runner: r, plan: r.prepared(in), dry: true}).run(ctx)
}

// Apply plays in once, as far as its policies let a device act by itself, and returns the
// status of the device. The error is about the books only.
func (r *Runner) Apply(ctx context.Context, in Intent) (interpret.DeviceStatus, error) {
	return r.once(ctx, &pass{Runner: r, plan: r.prepared(in), await: true})
}

// Confirm is Apply with the consent of a person to all changes but destruction: whoever
// stands before the device and sees what is done. What was done is kept as a receipt under
// name, which is used once.
func (r *Runner) Confirm(ctx context.Context, in Intent, name string) (interpret.DeviceStatus, error) {
	p := &pass{Runner: r, plan: r.prepared(in), await: true, consent: &consent{name: name, all: true}}
	st, err := r.once(ctx, p)
	if err != nil {
		return st, err
	}
	actions, failed := p.receiptActions()
	return st, r.keepByHand(name, interpret.VerbInstall, actions, failed, p.begun)
}

// keepByHand keeps the receipt of what a person before the device did.
func (r *Runner) keepByHand(name string, verb interpret.Verb, actions []interpret.ReceiptAction, failed bool, began time.Time) error {
	rc := shorten(interpret.Receipt{
		APIVersion: apiVersion, Kind: interpret.ReceiptKind, ID: name, Verb: verb, Actor: atTheDevice, Result: interpret.ResultDone, Actions: actions, Started: began, Finished: now(),
	})
	if failed {
		rc.Result = interpret.ResultFailed
	}
	if err := r.takeAsked(); err != nil {
		return err
	}
	r.auditOperation(interpret.AuditLocal, rc)
	if len(actions) > 0 {
		if err := r.saveReceipt(rc); err != nil {
			return err
		}
	}
	return r.Store.FlushAudit()
}

func (r *Runner) once(ctx context.Context, p *pass) (st interpret.DeviceStatus, err error) {
	r.watching(ctx, p.plan, func(ctx context.Context) { st, err = p.run(ctx) })
	return st, err
}
