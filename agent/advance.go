package agent

import (
	"context"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/interpret"
)

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
		if a.Runner.health != nil {
			a.Runner.health.Set(pl.probed())
		}
		signal(a.replan)
	}
	return pl
}

// present is what the agent is to do now.
func (a *Agent) present() (*plan, Control) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.plan, Control{Blocked: a.control.Blocked || a.distrust}
}

// awaits reports whether a score waits for the first try to fetch what it needs.
func awaits(st interpret.DeviceStatus) bool {
	return slices.ContainsFunc(st.Manifests, func(m interpret.ManifestStatus) bool {
		return slices.ContainsFunc(m.Scores, func(s interpret.ScoreStatus) bool { return s.Code == CodePrefetch })
	})
}
