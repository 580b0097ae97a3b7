package agent

import "github.com/continuo-fleet/continuo/score"

// Once wraps one manifest as an intent of its own, for a command on the device. It is
// not complete: what it does not name stays as it is.
func Once(m score.Manifest) Intent {
	return Intent{Assignment: score.Assignment{
		APIVersion: score.APIVersion, Kind: score.AssignmentKind,
		Spec: score.AssignmentSpec{Scores: len(m.Spec.Scores), Manifests: []score.Manifest{m}},
	}}
}
