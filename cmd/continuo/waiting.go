package main

import (
	"context"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// rollingBack names the manifests that go back if they do not become ready.
func rollingBack(manifests []score.Manifest) map[string]bool {
	out := map[string]bool{}
	for _, m := range manifests {
		out[m.Metadata.Name] = m.Spec.Policy.OnFailure == score.FailureRollBack
	}
	return out
}

// settled tells whether waiting for what was published can end.
func settled(s fleet.DeviceState, generation uint64, rollsBack map[string]bool) bool {
	switch {
	case s.Verdict == fleet.Converged:
		return s.Status != nil && s.Status.Generation >= generation
	case !s.Verdict.Settled() || s.Desired < generation:
		return false
	case s.Verdict != fleet.Failed || s.Status == nil || s.Status.Generation < generation:
		return true
	}
	// What failed and rolls back is not over before it is rolled back, or cannot be.
	for _, p := range s.Status.Problems {
		if p.Code == agent.CodeNoRollback {
			return true
		}
	}
	for _, m := range s.Status.Manifests {
		if rollsBack[m.Name] && m.RolledBack != nil {
			return true
		}
	}
	for _, m := range s.Status.Manifests {
		if rollsBack[m.Name] && m.State != interpret.StateConverged {
			return false
		}
	}
	return true
}

// waitSettled waits until a device is what was published for it, or says that it will not be.
func waitSettled(ctx context.Context, f *fleet.Fleet, d fleet.Device, generation uint64, rollsBack map[string]bool) (last fleet.DeviceState, err error) {
	err = f.Watch(ctx, []fleet.Device{d}, func(s fleet.DeviceState) bool {
		last = s
		return !settled(s, generation, rollsBack)
	})
	return last, err
}
