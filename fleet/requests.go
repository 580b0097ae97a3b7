package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// A Request is an action for which a device waits for a person, as the device wrote it down.
type Request struct {
	// Device that waits.
	Device Device `json:"device"`
	interpret.ApprovalRequest
	// Generation of the assignment that was in force.
	Generation uint64 `json:"generation,omitzero"`
}

// Requests are those of a fleet.
type Requests struct {
	// Open requests, by device and then in the order in which the device would do them.
	Open []Request `json:"open"`
	// More is how many there are besides that did not fit.
	More int `json:"more,omitzero"`
	// Unreadable says which devices wrote what cannot be read, and why.
	Unreadable []string `json:"unreadable,omitempty"`
}

// Requests reads which actions wait for a person, of the devices that are named or of all. No device is asked. What a device
// writes is a question and no authority: the device compares an answer with what it finds itself.
func (f *Fleet) Requests(ctx context.Context, devices ...Device) (Requests, error) {
	subjects := []string{wire.AllRequests}
	if len(devices) > 0 && len(devices) <= maxFilters {
		subjects = nil
	}
	for _, d := range devices {
		if err := d.Check(); err != nil {
			return Requests{}, err
		}
		if len(devices) <= maxFilters {
			subjects = append(subjects, wire.RequestSubject(d))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	messages, hand := channel(ctx)
	n, stop, err := f.follow(ctx, wire.StreamActual, subjects, hand)
	if err != nil {
		return Requests{}, fmt.Errorf("cannot read the requests: %w", err)
	}
	defer stop()
	left := backlog{}
	left.expect(wire.StreamActual, n)
	out := Requests{Open: []Request{}}
	for len(left) > 0 {
		select {
		case <-ctx.Done():
			return Requests{}, fmt.Errorf("cannot read the requests: %w", f.explain(ctx.Err()))
		case m := <-messages:
			left.took(m)
			d, err := wire.DeviceOf(m.subject)
			if err != nil || len(devices) > 0 && !slices.Contains(devices, d) {
				continue
			}
			doc, err := decodeRequests(d, m.data)
			if err != nil {
				out.Unreadable = append(out.Unreadable, fmt.Sprintf("%s: %v", d, err))
				continue
			}
			out.More += max(doc.Truncated, 0)
			for _, r := range doc.Requests {
				out.Open = append(out.Open, Request{d, r, doc.Generation})
			}
		}
	}
	slices.SortStableFunc(out.Open, func(a, b Request) int { return cmp.Compare(a.Device.String(), b.Device.String()) })
	slices.Sort(out.Unreadable)
	return out, nil
}

// decodeRequests reads what a device wrote. A request whose id is not that of its action is none: who answers it would sign
// something else than what is shown. Where fields are left out, that cannot be told here, and is said.
func decodeRequests(d Device, b []byte) (interpret.ApprovalRequests, error) {
	var doc interpret.ApprovalRequests
	if len(b) > maxStatus {
		return doc, fmt.Errorf("it has %d bytes, at most %d are read", len(b), maxStatus)
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return interpret.ApprovalRequests{}, err
	}
	if doc.APIVersion != score.APIVersion || doc.Kind != interpret.RequestsKind {
		return interpret.ApprovalRequests{}, fmt.Errorf("it is a %.40q of %.40q, this program reads %q of %q", doc.Kind, doc.APIVersion, interpret.RequestsKind, score.APIVersion)
	}
	for _, r := range doc.Requests {
		id, err := interpret.RequestID(d.ID, r.Action)
		if !isRequestID(r.ID) || r.Omitted <= 0 && (err != nil || r.ID != id) {
			return interpret.ApprovalRequests{}, fmt.Errorf("%.80q is not the id of the request that it stands at: somebody else wrote there, or this program is too old", r.ID)
		}
	}
	return doc, nil
}

const requestDigits = 64

func isRequestID(id string) bool {
	return len(id) == requestDigits && strings.Trim(id, "0123456789abcdef") == ""
}

// ErrNoRequest is that of a request which is not open.
var ErrNoRequest = errors.New("no such request is open")

// Find gives the request whose id begins with the digits that are given, of which one is enough if no other begins so.
func (r Requests) Find(digits string) (Request, error) {
	var found []Request
	for _, q := range r.Open {
		if digits != "" && strings.HasPrefix(q.ID, digits) {
			found = append(found, q)
		}
	}
	switch len(found) {
	case 0:
		return Request{}, fmt.Errorf("cannot find request %.80s: %w: it was done, rejected, or is no longer wanted", digits, ErrNoRequest)
	case 1:
		return found[0], nil
	}
	return Request{}, fmt.Errorf("cannot tell which request is meant: %d begin with %s; give more digits", len(found), digits)
}

// Answer is the operation that approves requests of one device, or rejects them.
func Answer(verb interpret.Verb, requests ...Request) interpret.Operation {
	op := interpret.Operation{Verb: verb}
	for _, q := range requests {
		a := q.Action
		op.Device = q.Device.ID
		op.Approvals = append(op.Approvals, interpret.Approval{
			Request: q.ID, Manifest: a.Manifest, Score: a.Score, Action: a.Action, Effect: a.Effect,
			Resources: append([]score.Resource{}, a.Resources...), SpecDigest: a.SpecDigest,
		})
	}
	return op
}
