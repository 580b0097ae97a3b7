package agent

import (
	"context"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// Once wraps one manifest as an intent of its own, for a command on the device. It is
// not complete: what it does not name stays as it is.
func Once(m score.Manifest) Intent {
	return Intent{Assignment: score.Assignment{
		APIVersion: score.APIVersion, Kind: score.AssignmentKind,
		Spec: score.AssignmentSpec{Scores: len(m.Spec.Scores), Manifests: []score.Manifest{m}},
	}}
}

// Apply plays in once and returns the status of the device. The error is about the
// books only.
func (r *Runner) Apply(ctx context.Context, in Intent) (interpret.DeviceStatus, error) {
	return (&pass{Runner: r, plan: prepare(in)}).run(ctx)
}

// Plan observes and compares, and changes nothing: a score that is not true is
// Drifted, with the changes that it would take.
func (r *Runner) Plan(ctx context.Context, in Intent) (interpret.DeviceStatus, error) {
	return (&pass{Runner: r, plan: prepare(in), dry: true}).run(ctx)
}
