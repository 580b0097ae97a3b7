package natslink

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Reach reports whether a server of the fleet lets this device in now: it makes a connection of
// its own, asks the server for an answer and closes it again, as a connection that is there
// already may live on behind a firewall, or in buffers, when no new one can be made.
func (l *Link) Reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	end, _ := ctx.Deadline()
	opts := append(l.opts[:len(l.opts):len(l.opts)],
		nats.SetCustomDialer(dialer{ctx}),
		nats.RetryOnFailedConnect(false), nats.NoReconnect(),
		nats.Timeout(max(time.Until(end), time.Millisecond)),
	)
	nc, err := nats.Connect(strings.Join(l.o.Servers, ","), opts...)
	if err != nil {
		return fmt.Errorf("no server of %v lets this device in: %w", l.o.Servers, err)
	}
	defer nc.Close()
	if err := nc.FlushWithContext(ctx); err != nil {
		return errors.Join(fmt.Errorf("the server %s does not answer", nc.ConnectedUrlRedacted()), err)
	}
	return nil
}
