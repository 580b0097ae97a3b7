package interpret

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// RequestsKind is the kind of an ApprovalRequests document.
const RequestsKind = "ApprovalRequests"

// ApprovalRequests are all actions for which a device waits for a person: each is one request, which an approval lets
// happen or a rejection ends. The document replaces the one before; without requests, nothing waits.
type ApprovalRequests struct {
	// Version of the document: continuo/v1.
	APIVersion string `json:"apiVersion"`
	// Kind of document: ApprovalRequests.
	Kind string `json:"kind"`
	// Device that waits.
	Device string `json:"device,omitempty"`
	// Generation of the assignment that is in force.
	Generation uint64 `json:"generation,omitzero"`
	// Assignment is the sha256 of that assignment.
	Assignment string `json:"assignment,omitempty"`
	// Requests that are open, in the order in which they would be done.
	Requests []ApprovalRequest `json:"requests,omitempty"`
	// Truncated is how many requests are left out because the document would be too large.
	Truncated int `json:"truncated,omitzero"`
	// Time of the document, on the device's clock.
	Time time.Time `json:"time,omitzero"`
}

// An ApprovalRequest asks whether one action may happen.
type ApprovalRequest struct {
	// ID is the sha256 of what is asked for: the device, the action, its effect, whose the thing is, resources, fields and
	// spec. The same wish for the same thing as it is has the same one, and any other has another.
	ID string `json:"id"`
	// Since is when the device asked first, on its clock.
	Since time.Time `json:"since,omitzero"`
	// Observed is the sha256 of the typed state of the thing as it was found when this was written, as the status has it.
	Observed string `json:"observed,omitempty"`
	// Action that would be done, as a plan has it.
	Action PlannedAction `json:"action"`
	// Omitted is how many fields of the action are left out because the document would be too large.
	Omitted int `json:"omitted,omitzero"`
}

// RequestID is the ID of the request for an action of a device. What a restart of the thing adds to the fields is no part of it,
// nor why it would be done or under which generation: those change while the question stays the same.
func RequestID(device string, a PlannedAction) (string, error) {
	asked := PlannedAction{
		Manifest: a.Manifest, Score: a.Score, Kind: a.Kind, Action: a.Action, Effect: a.Effect, Provenance: a.Provenance,
		Resources: a.Resources, SpecDigest: a.SpecDigest,
	}
	for _, c := range a.Changes {
		if c.Field != FieldRestart && c.Field != FieldReload {
			asked.Changes = append(asked.Changes, c)
		}
	}
	b, err := score.Encode(struct {
		Device string        `json:"device"`
		Action PlannedAction `json:"action"`
	}{device, asked})
	if err != nil {
		return "", fmt.Errorf("cannot name the request for %s/%s: %w", a.Manifest, a.Score, err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// Gated reports whether an action waits for a person, and for nothing else: a signature, or a plan that is confirmed.
func (a PlannedAction) Gated() bool {
	return a.Decision == DecidePending && (a.Code == CodeSignature || a.Code == CodeBrake || a.Code == CodeConfirm)
}
