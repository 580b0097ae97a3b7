package natslink

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// Send is part of agent.Link. It waits for a connection.
func (l *Link) Send(ctx context.Context, r interpret.Receipt) error {
	if _, err := l.conn(ctx); err != nil {
		return fmt.Errorf("cannot send receipt %s: %w", r.ID, err)
	}
	return l.send(ctx, r)
}

// send stores a receipt. One that is sent again because the answer was lost is stored once, while the fleet remembers.
func (l *Link) send(ctx context.Context, r interpret.Receipt) error {
	if err := wire.CheckOperationID(r.ID); err != nil {
		return fmt.Errorf("cannot send a receipt: %w", err)
	}
	body, err := encodeReceipt(r)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	m := nats.NewMsg(wire.JournalSubject(l.o.Device))
	m.Header, m.Data = wire.ReceiptHeaders(l.o.Device, r.ID, word(r.Verb), sum[:]), body
	l.sending.Lock()
	defer l.sending.Unlock()
	if err := l.storeIn(ctx, m, errNoJournal); err != nil {
		return fmt.Errorf("cannot send receipt %s: %w", r.ID, err)
	}
	return nil
}

var errNoJournal = errors.New("the fleet has no journal; its operator creates it with: continuo setup")

// storeIn has a stream store a message. none is the error if there is no such stream.
func (l *Link) storeIn(ctx context.Context, m *nats.Msg, none error) error {
	answer, err := l.request(ctx, m, l.o.tune.timeout)
	if errors.Is(err, nats.ErrNoResponders) {
		return none
	}
	if err != nil {
		return err
	}
	ack, err := readAck(answer.Data)
	if err == nil && ack.Error != nil {
		err = fmt.Errorf("%s (%d)", ack.Error.Description, ack.Error.Code)
	}
	return err
}

// word keeps out of a header what would be none.
func word(v interpret.Verb) string {
	if len(v) > 32 || strings.ContainsFunc(string(v), func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') }) {
		return "unknown"
	}
	return string(v)
}

// An ack is how a stream answers.
type ack struct {
	Sequence uint64 `json:"seq"`
	Error    *struct {
		Code        int    `json:"err_code"`
		Description string `json:"description"`
	} `json:"error"`
}

// readAck reads one. What is none leaves it open whether something was stored.
func readAck(b []byte) (ack, error) {
	var a ack
	if err := json.Unmarshal(b, &a); err != nil || a.Error == nil && a.Sequence == 0 {
		return ack{}, errUnsure
	}
	return a, nil
}

// encodeReceipt writes r, and leaves out details until it fits. What was left out as a whole is counted.
func encodeReceipt(r interpret.Receipt) ([]byte, error) {
	body, err := score.Encode(r)
	if err != nil {
		return nil, fmt.Errorf("cannot send receipt %s: %w", r.ID, err)
	}
	whole := len(body)
	if whole <= wire.MaxReceipt {
		return body, nil
	}
	r.Actions = slices.Clone(r.Actions)
	if r.Plan != nil {
		p := *r.Plan
		p.Actions = slices.Clone(p.Actions)
		r.Plan = &p
	}
	steps := []func(){
		func() {
			for i := range r.Actions {
				r.Actions[i].Diff = ""
			}
		},
		func() {
			for i := range r.Actions {
				r.Actions[i].Changes = nil
			}
		},
		func() { r.Message = interpret.Brief(r.Message) },
	}
	for i := 0; len(body) > wire.MaxReceipt; i++ {
		switch {
		case i < len(steps):
			steps[i]()
		case r.Plan != nil && len(r.Plan.Actions) > len(r.Actions):
			n := len(r.Plan.Actions) / 2
			r.Plan.Truncated += len(r.Plan.Actions) - n
			r.Plan.Actions = r.Plan.Actions[:n]
		case len(r.Actions) > 0:
			n := len(r.Actions) / 2
			r.Truncated += len(r.Actions) - n
			r.Actions = r.Actions[:n]
		default:
			return nil, fmt.Errorf("cannot send receipt %s: its %d bytes do not fit in %d", r.ID, whole, wire.MaxReceipt)
		}
		if body, err = score.Encode(r); err != nil {
			return nil, fmt.Errorf("cannot send receipt %s: %w", r.ID, err)
		}
	}
	return body, nil
}
