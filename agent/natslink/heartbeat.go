package natslink

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	mathrand "math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// beatLoop sends heartbeats at their own pace, whatever else is under way.
func (l *Link) beatLoop(ctx context.Context) {
	started := time.Now()
	interval := wire.HeartbeatBound.Default
	if l.o.tune.heartbeat > 0 {
		interval = l.o.tune.heartbeat
	}
	heard := started // a signed answer, or a new connection
	var again time.Duration
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.beat:
			heard = time.Now()
		case <-timer.C:
		}
		begun := time.Now()
		c, err := l.heartbeat(ctx, time.Since(started))
		if err == nil {
			heard = time.Now()
			interval = l.follow(c)
		}
		l.watchdog(&heard, interval)
		// After a restart the server is there a moment before the control service is.
		wait := interval
		if errors.Is(err, nats.ErrNoResponders) {
			again = max(2*again, time.Second)
			wait = min(again, interval)
		} else {
			again = 0
		}
		timer.Reset(time.Until(begun.Add(wait - wait/10 + mathrand.N(wait/5+1))))
	}
}

// watchdog leaves a connection that looks well and brings no answers.
func (l *Link) watchdog(heard *time.Time, interval time.Duration) {
	limit := 10 * interval
	if l.o.tune.watchdog > 0 {
		limit = l.o.tune.watchdog
	}
	l.mu.Lock()
	nc := l.nc
	l.mu.Unlock()
	if nc == nil || time.Since(*heard) < limit {
		return
	}
	*heard = time.Now()
	if err := nc.ForceReconnect(); err != nil {
		nc.Close() // the session begins anew
	}
}

// heartbeat sends one and gives its verified answer.
func (l *Link) heartbeat(ctx context.Context, uptime time.Duration) (wire.ControlEnvelope, error) {
	p := l.h.Pulse()
	digest, _ := hex.DecodeString(p.Digest)
	nonce := make([]byte, 16)
	rand.Read(nonce)
	hb := wire.Heartbeat{
		Agent: l.o.Version, Build: l.o.Build, Boot: l.o.BootID, Instance: l.o.Instance, Nonce: nonce,
		Generation: p.Generation, Digest: digest, Outcome: string(p.State), Health: l.health(p), Store: p.Store,
		Pending: uint32(min(max(p.Pending, 0), 1<<30)), Uptime: uint64(uptime.Seconds()),
		Serial: l.o.Serial,
	}
	b, err := hb.Encode()
	if err != nil {
		return wire.ControlEnvelope{}, err
	}
	m := nats.NewMsg(wire.HeartbeatSubject(l.o.Device))
	m.Data = b
	asked := time.Now()
	answer, err := l.request(ctx, m, min(l.o.tune.timeout, beatTimeout))
	answered := time.Now()
	if err != nil {
		return wire.ControlEnvelope{}, err
	}
	_, keys := l.o.Trust.now()
	c, err := wire.OpenControl(answer.Data, keys.control, l.o.Device, nonce)
	if err != nil {
		detail := err.Error()
		if r, ok := errors.AsType[*wire.Refusal](err); ok {
			detail = r.Detail
		}
		l.refuse(l.documents, CodeUntrustedBeat, "an answer to a heartbeat was refused: "+detail)
		return wire.ControlEnvelope{}, err
	}
	l.h.Clock(offset(asked, answered, c.Time()))
	return c, nil
}

// offset is how far the clock of the device is ahead of the fleet's, which was told, in whole seconds, between asking and
// the answer.
func offset(asked, answered, told time.Time) (ahead, within time.Duration) {
	trip := answered.Sub(asked) // monotonic: a clock that is set meanwhile makes no long trip
	return asked.Round(0).Add(trip / 2).Sub(told.Add(time.Second / 2)), trip/2 + time.Second/2
}

func (l *Link) health(p agent.Pulse) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.conflict.any():
		return string(CodeConflict)
	case p.Problems > 0:
		return "problems"
	}
	return ""
}

// A hint is which document the control side knows of.
type hint struct {
	set        bool
	generation uint64
	digest     string
}

// follow does what a signed answer says, and gives the time until the next heartbeat.
func (l *Link) follow(c wire.ControlEnvelope) time.Duration {
	l.spread.learn(wire.ReconnectBound.Clamp(c.Reconnect))
	l.mu.Lock()
	if d := wire.PollBound.Clamp(c.Poll); d != l.poll {
		l.poll = d
		for _, box := range l.mailboxes() {
			signal(box.pace)
		}
	}
	l.clock = told{c.Now, time.Now()}
	l.blocked = c.Blocked
	news := hint{true, c.Generation, hex.EncodeToString(c.Digest)}
	was := l.hint
	l.hint = news
	l.mu.Unlock()
	l.heardOfConflict(c.Conflict)
	l.control()
	if p := l.h.Pulse(); news != was && (p.Generation != c.Generation || p.Digest != news.digest) && l.o.tune.has(onHeartbeat) {
		// An older one is looked at too: that the fleet has forgotten the newest must be reported.
		if c.Generation > 0 || p.Generation > 0 {
			l.want(l.documents, newer(c.Generation, p.Generation))
		}
	}
	l.heed(c)
	if l.o.tune.heartbeat > 0 {
		return l.o.tune.heartbeat
	}
	return wire.HeartbeatBound.Clamp(c.Interval)
}

func newer(offered, known uint64) uint64 {
	if offered > known {
		return offered
	}
	return 0
}

// control tells the agent whether it may change anything.
func (l *Link) control() {
	l.mu.Lock()
	c := agent.Control{Blocked: l.blocked || l.conflict.holds()}
	l.mu.Unlock()
	l.h.Control(c)
}
