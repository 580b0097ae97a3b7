package natslink

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// Ask is part of agent.Link. It waits for a connection. Nobody else may write there, and the last word counts.
func (l *Link) Ask(ctx context.Context, requests interpret.ApprovalRequests) error {
	body, err := encodeRequests(requests)
	if err != nil {
		return err
	}
	if _, err := l.conn(ctx); err != nil {
		return fmt.Errorf("cannot ask for approval: %w", err)
	}
	l.asking.Lock()
	defer l.asking.Unlock()
	l.asked = body
	return l.askNow(ctx)
}

var errNoRequests = errors.New("the fleet has no place for requests; its operator makes one with: continuo setup")

// askNow stores l.asked. It is called with l.asking held.
func (l *Link) askNow(ctx context.Context) error {
	m := nats.NewMsg(wire.RequestSubject(l.o.Device))
	m.Data = l.asked
	if err := l.storeIn(ctx, m, errNoRequests); err != nil {
		return fmt.Errorf("cannot ask for approval: %w", err)
	}
	return nil
}

// askAgain asks once more after the store of the fleet was lost.
func (l *Link) askAgain(ctx context.Context) {
	l.asking.Lock()
	defer l.asking.Unlock()
	if l.asked != nil {
		_ = l.askNow(ctx) // the next loss, or change, tries again
	}
}

// encodeRequests writes requests, and leaves out details until they fit. What was left out as a whole is counted.
func encodeRequests(r interpret.ApprovalRequests) ([]byte, error) {
	r.Requests = slices.Clone(r.Requests)
	for shortened := false; ; {
		body, err := score.Encode(r)
		if err != nil {
			return nil, fmt.Errorf("cannot ask for approval: %w", err)
		}
		switch {
		case len(body) <= wire.MaxRequests:
			return body, nil
		case !shortened:
			shortened = true
			for i := range r.Requests {
				q := &r.Requests[i]
				q.Action.Changes, q.Omitted = nil, len(q.Action.Changes)
			}
		case len(r.Requests) > 1:
			n := len(r.Requests) / 2
			r.Truncated += len(r.Requests) - n
			r.Requests = r.Requests[:n]
		default:
			return nil, fmt.Errorf("cannot ask for approval: one request alone has %d bytes, and %d fit", len(body), wire.MaxRequests)
		}
	}
}
