package natslink

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/internal/wire"
)

var _ agent.Auditor = (*Link)(nil)

// Audit is part of agent.Auditor. It waits for a connection. What is sent again because the answer was lost is stored once,
// while the fleet remembers, and whoever reads it after that sees that it is the same.
func (l *Link) Audit(ctx context.Context, entries [][]byte) (stored int, err error) {
	fail := func(err error) (int, error) { return 0, fmt.Errorf("cannot send the audit: %w", err) }
	body, n := auditMessage(entries)
	if n == 0 {
		return fail(errors.New("there is no entry that fits in a message"))
	}
	if _, err := l.conn(ctx); err != nil {
		return fail(err)
	}
	m := nats.NewMsg(wire.AuditSubject(l.o.Device))
	m.Header, m.Data = wire.AuditHeaders(l.o.Device, body), body
	if err := l.storeIn(ctx, m, errNoAudit); err != nil {
		return fail(err)
	}
	return n, nil
}

var errNoAudit = errors.New("the fleet keeps no audit; its operator creates it with: continuo setup")

// auditMessage puts as many of the first entries in a message as fit, one a line.
func auditMessage(entries [][]byte) (body []byte, n int) {
	for _, e := range entries {
		if len(body)+1+len(e) > wire.MaxAuditMessage || bytes.IndexByte(e, '\n') >= 0 {
			break
		}
		if n++; n > 1 {
			body = append(body, '\n')
		}
		body = append(body, e...)
	}
	return body, n
}
