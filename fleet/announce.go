package fleet

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// followAll knows what is published and who is blocked, over restarts and losses of the store.
func (s *service) followAll(ctx context.Context) {
	renewed, stop := s.onReconnect()
	defer stop()
	wait := time.Second
	for ctx.Err() == nil {
		err := s.followOnce(ctx, renewed)
		if err == nil {
			wait = time.Second
			continue
		}
		s.o.Notice(fmt.Errorf("cannot follow what is published: %w", err))
		select {
		case <-ctx.Done():
		case <-renewed:
		case <-time.After(wait):
			wait = min(2*wait, 30*time.Second)
		}
	}
}

// followOnce follows until something says that it should begin anew.
func (s *service) followOnce(ctx context.Context, renewed <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, relook)
	defer cancel()
	documents, blocked := map[Device]wire.ControlEnvelope{}, map[Device]bool{}
	messages, hand := channel(ctx)
	left := backlog{}
	for stream, subjects := range map[string][]string{wire.StreamDesired: subjectsOf(wire.StreamDesired), wire.StreamControl: {blockedSubject("*.*")}} {
		n, stop, err := s.follow(ctx, stream, subjects, false, hand)
		if err != nil {
			return fmt.Errorf("stream %s: %w", stream, err)
		}
		defer stop()
		left.expect(stream, n)
	}
	ready := false
	for {
		if !ready && len(left) == 0 {
			// Only what is complete replaces what was known.
			ready = true
			s.mu.Lock()
			s.documents, s.blocked = documents, blocked
			s.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-renewed:
			return nil
		case m := <-messages:
			left.took(m)
			s.mu.Lock()
			s.learn(m, documents, blocked)
			s.mu.Unlock()
		}
	}
}

// learn takes one message into what is known.
func (s *service) learn(m message, documents map[Device]wire.ControlEnvelope, blocked map[Device]bool) {
	if m.stream == wire.StreamControl {
		if d, err := wire.ParseDevice(strings.TrimPrefix(m.subject, blockedSubject(""))); err == nil {
			blocked[d] = !m.deleted
		}
		return
	}
	t, err := desiredKey(m.subject).Target()
	if err != nil || t.Kind != wire.KindDevice {
		return
	}
	if m.deleted {
		delete(documents, t.Device)
		return
	}
	v, err := wire.Verify(m.data, s.o.Keys, wire.Expect{Kind: wire.KindDevice, Audience: t.Device.String()})
	if err != nil {
		s.o.Notice(fmt.Errorf("what is published for %s is not announced: %w", t.Device, err))
		return
	}
	documents[t.Device] = wire.ControlEnvelope{Generation: v.Statement.Generation, Digest: v.Statement.Digest[:sha256.Size:sha256.Size], Size: v.Statement.Size}
}

// blockedSubject is where it is kept that a device is to change nothing.
func blockedSubject(device string) string {
	return strings.TrimSuffix(subjectsOf(wire.StreamControl)[0], ">") + "blocked." + device
}

// Block tells a device to observe and report, and to change nothing, or lets it go on. It holds from the device's next
// heartbeat on. A device that no control service reaches does not hear of it.
func (f *Fleet) Block(ctx context.Context, d Device, blocked bool) error {
	if err := d.Check(); err != nil {
		return err
	}
	m := &nats.Msg{Subject: blockedSubject(d.String()), Data: []byte("blocked")}
	if !blocked {
		m.Data, m.Header = nil, nats.Header{"KV-Operation": {"DEL"}}
	}
	ctx, cancel := f.within(ctx)
	defer cancel()
	if _, err := f.js.PublishMsg(ctx, m); err != nil {
		return fmt.Errorf("cannot change whether %s is blocked: %w", d, f.explain(noStore(err)))
	}
	return nil
}
