package interpret

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// attempt performs task, and takes back what turns out to cut the device off.
func (b Binding) attempt(ctx context.Context, s score.Score, task Task, v Verdict, st *ScoreStatus) {
	b.guarded(ctx, s, task, v, st, func() { b.perform(ctx, s, task, st) })
}

// guarded does what changes the device, and says in st what came of it, under a checkpoint.
func (b Binding) guarded(ctx context.Context, s score.Score, task Task, v Verdict, st *ScoreStatus, do func()) {
	var cp topology.Checkpoint
	if b.checkpoint != nil {
		var err error
		if cp, err = b.checkpoint(ctx, s.Spec, task); err != nil {
			b.fault(st, "cannot make a checkpoint", err)
			return
		}
	}
	if cp != nil && v.Prove == nil {
		b.takeBack(ctx, s, cp, st, Refused, CodeNoProof, "it could cut the device off, and this device has no server to prove that it does not: give confirm.connect, an address that must be reached")
		return
	}
	if cp == nil {
		do()
		return
	}
	if v.Opens != nil {
		if err := v.Opens(); err != nil {
			b.fault(st, "cannot write down what is about to be tried", err)
			b.takeBack(ctx, s, cp, st, st.Outcome, st.Code, st.Message)
			return
		}
	}
	crashed := true
	defer func() {
		if crashed { // what was begun must not wait for its window to be over
			b.takeBack(ctx, s, cp, st, Failed, CodePanic, "its interpreter crashed")
		}
	}()
	b.confirmed(ctx, s, cp, v.Prove, st, do)
	crashed = false
}

// confirmed does what changes the device, and keeps it if that is proved to be no harm.
func (b Binding) confirmed(ctx context.Context, s score.Score, cp topology.Checkpoint, prove func(context.Context) error, st *ScoreStatus, do func()) {
	do()
	if st.Outcome != Changed {
		b.takeBack(ctx, s, cp, st, st.Outcome, st.Code, st.Message)
		return
	}
	if err := prove(ctx); err != nil {
		b.takeBack(ctx, s, cp, st, RolledBack, Code(topology.CodeConnectivity), "it was taken back, because afterwards the fleet could not be reached: "+topology.FaultOf(err).Text)
		return
	}
	if err := cp.Commit(ctx); err != nil {
		b.takeBack(ctx, s, cp, st, RolledBack, Code(topology.FaultOf(err).Code), "it was taken back, because it could not be kept: "+topology.FaultOf(err).Text)
	}
}

// takeBack brings back what was there before an attempt, also when the agent is told to stop.
func (b Binding) takeBack(ctx context.Context, s score.Score, cp topology.Checkpoint, st *ScoreStatus, as Outcome, code Code, why string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackPatience)
	defer cancel()
	st.end(as, code, why)
	if err := cp.Rollback(ctx); err != nil {
		st.end(Failed, code, fmt.Sprintf("cannot take it back: %s: %s", topology.FaultOf(err).Text, why))
	}
	if obs, err := b.observe(ctx, s.Spec); err == nil {
		st.observed(obs)
	}
}

// rollbackPatience is how long it may take to bring back what was there before.
const rollbackPatience = time.Minute

func (b Binding) perform(ctx context.Context, s score.Score, task Task, st *ScoreStatus) {
	if err := b.apply(ctx, s.Spec, task); err != nil {
		b.fault(st, "cannot apply", err)
		obs, _ := b.observe(ctx, s.Spec)
		st.observed(obs)
		return
	}
	obs, err := b.observe(ctx, s.Spec)
	st.observed(obs)
	if err != nil {
		b.fault(st, "cannot verify", err)
		return
	}
	if left := slices.DeleteFunc(b.diff(s.Spec, obs), onlyTold); len(left) > 0 {
		st.Changes = left
		st.end(Failed, CodeNotConverged, fmt.Sprintf("applied, but %s is %q and should be %q", left[0].Field, left[0].Have, left[0].Want))
		return
	}
	st.Outcome = Changed
}

// onlyTold reports whether a difference is told and never undone.
func onlyTold(c Change) bool { return c.Effect == Nothing }
