package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// A Storage is what containers are made from, which a power cut may damage.
type Storage interface {
	// CheckStorage looks at all of it, and names what is damaged. A container that fails because of that gets it anew.
	CheckStorage(ctx context.Context) (damaged string, err error)
	// Damaged names what is left of that.
	Damaged() string
}

// Boots knows whether the last boot was ended in order.
type Boots interface {
	Unclean() bool
	// Begin notes that this boot has begun, and that nothing is left to look at.
	Begin() error
	// End notes that this boot ends in order, if it does.
	End(ctx context.Context) error
}

// endTimeout bounds the last thing that an agent does.
const endTimeout = 5 * time.Second

// CodeStorageCheck is that of a container that waits until what it is made from was looked at.
const CodeStorageCheck interpret.Code = "storage_check"

// CodeStorage is that of the problem that something of it is damaged.
const CodeStorage = interpret.Code(topology.CodeImageStore)

// begin has the storage of containers looked at if the last boot was not ended in order. Containers wait for that, and
// nothing else does. Boots count as looked at when nothing is damaged, or could be found out.
func (a *Agent) begin(ctx context.Context, start func(func())) {
	switch {
	case a.Boots == nil:
	case a.Storage == nil || !a.Boots.Unclean():
		a.begun()
	default:
		a.Log.Warn("the device was switched off without warning: what containers are made from is looked at before they are played")
		a.Runner.looking.Store(true)
		start(func() { a.lookAtStorage(ctx) })
	}
}

func (a *Agent) lookAtStorage(ctx context.Context) {
	start := time.Now()
	damaged, err := a.Storage.CheckStorage(ctx)
	a.Runner.looking.Store(false)
	log := a.Log.WithField("took", time.Since(start).Round(time.Millisecond).String())
	switch {
	case ctx.Err() != nil:
		return // the next start looks again
	case err != nil:
		log.WithError(err).Warn("what containers are made from could not be looked at; what fails because of that is found out when it fails")
		a.begun()
	case damaged == "":
		a.begun() // before it is said: who hears it may stop the agent
		log.Info("what containers are made from is sound")
	default:
		a.damaged.Store(true)
		if a.problem(CodeStorage, fmt.Sprintf("since a power cut images are damaged: %s. A container that fails because of that has its image fetched again; one that runs is left alone. podman system check --repair, and a restart of the agent, end that for all", damaged)) {
			log.WithField("images", damaged).Error("a power cut damaged what containers are made from")
		}
	}
	signal(a.wake)
}

// mended takes note when nothing is damaged any more.
func (a *Agent) mended() {
	if a.damaged.Load() && a.Storage.Damaged() == "" {
		a.damaged.Store(false)
		a.Resolved(CodeStorage)
		a.begun()
	}
}

func (a *Agent) begun() {
	if err := a.Boots.Begin(); err != nil {
		a.Log.WithError(err).Warn("the next boot will look at what containers are made from, whether it needs to or not")
	}
}

// end notes that the device is switched off in order. ctx has ended before.
func (a *Agent) end(ctx context.Context) {
	if a.Boots == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := a.Boots.End(ctx); err != nil {
		a.Log.WithError(err).Warn("the next boot will look at what containers are made from, whether it needs to or not")
	}
}

// lookedAt reports whether a score has to wait until the storage was looked at.
func (r *Runner) lookedAt(s score.Score) bool {
	return r.looking.Load() && s.Spec.Kind() == score.Container{}.Kind()
}
