package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// RevokeOn revokes on running servers: what was issued to a user until a time does not count any more, and his
// connections end at once. nc is a connection of a [Keys.SystemUser]. Two of these at once could lose one of the
// revocations, so the caller holds a lock.
func (k Keys) RevokeOn(ctx context.Context, nc *nats.Conn, a Account, userPublicKey string, until time.Time) error {
	key := k.PublicAccount(a)
	now, err := nc.RequestWithContext(ctx, wire.ClaimsLookup(key), nil)
	if err != nil {
		return fmt.Errorf("cannot ask the server for account %s: %w", a, err)
	}
	token, err := k.Revoke(a, string(now.Data), userPublicKey, until)
	if err != nil {
		return err
	}
	return Update(ctx, nc, token)
}

// Update gives servers an account that has changed.
func Update(ctx context.Context, nc *nats.Conn, token string) error {
	reply, err := nc.RequestWithContext(ctx, wire.ClaimsUpdate, []byte(token))
	if err != nil {
		return fmt.Errorf("cannot tell the server of an account that has changed: %w", err)
	}
	var answer struct {
		Error *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return fmt.Errorf("cannot read what the server said of an account: %w", err)
	}
	if answer.Error != nil {
		return errors.New("cannot change an account: the server does not take it: " + answer.Error.Description)
	}
	return nil
}
