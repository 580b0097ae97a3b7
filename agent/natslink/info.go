package natslink

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// Inform is part of agent.Link. It waits for a connection. Nothing depends on what a device says it is, so the last word
// counts, whoever else wrote before: that two agents have one identity is found by their statuses.
func (l *Link) Inform(ctx context.Context, info interpret.DeviceInfo) error {
	body, err := encodeInfo(info)
	if err != nil {
		return err
	}
	if _, err := l.conn(ctx); err != nil {
		return fmt.Errorf("cannot send what this device is: %w", err)
	}
	m := nats.NewMsg(wire.InfoSubject(l.o.Device))
	m.Data = body
	if err := l.storeIn(ctx, m, errNoStore); err != nil {
		return fmt.Errorf("cannot send what this device is: %w", err)
	}
	return nil
}

// encodeInfo writes info. Its texts and lists are bounded where they are read; should one not be, the network goes first.
func encodeInfo(info interpret.DeviceInfo) ([]byte, error) {
	body, err := score.Encode(info)
	if err == nil && len(body) > maxReport {
		info.Facts.Interfaces, info.Facts.RebootFor, info.Facts.Cards = nil, nil, nil
		body, err = score.Encode(info)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot send what this device is: %w", err)
	}
	return body, nil
}
