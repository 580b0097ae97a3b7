package natslink

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
)

// A need is a wish to fetch the document of the device.
type need struct {
	any     bool
	minimum uint64 // an older generation comes from a replica that is behind
}

// How long a fetch waits before it is tried again.
const (
	minRetry = 10 * time.Millisecond
	maxRetry = 30 * time.Second
)

// want makes the fetch loop look at once.
func (l *Link) want(minimum uint64) {
	l.mu.Lock()
	l.need = need{true, max(l.need.minimum, minimum)}
	l.mu.Unlock()
	signal(l.fetch)
}

// pushed takes a document that was published just now.
func (l *Link) pushed(m *nats.Msg) {
	if !l.o.tune.has(onPush) {
		return
	}
	a, ok := wire.ParseAnnouncement(m.Subject, m.Header)
	if !ok {
		return
	}
	if a.Deleted || len(m.Data) == 0 {
		l.want(0) // to be sure
		return
	}
	if _, err := l.take(m.Data); err != nil {
		l.want(a.Generation)
	}
}

// fetchLoop fetches when there is a need, until it is met.
func (l *Link) fetchLoop(ctx context.Context) {
	poll := time.NewTimer(l.untilPoll())
	defer poll.Stop()
	retry := time.NewTimer(0)
	retry.Stop()
	defer retry.Stop()
	wait := minRetry
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.fetch:
			wait = minRetry
		case <-retry.C:
		case <-l.pace:
			poll.Reset(l.untilPoll())
			continue
		case <-poll.C:
			poll.Reset(l.untilPoll())
			if !l.o.tune.has(onPoll) {
				continue
			}
			l.mu.Lock()
			l.need.any = true
			l.mu.Unlock()
			signal(l.check)
		}
		l.mu.Lock()
		n := l.need
		l.need = need{}
		l.mu.Unlock()
		if !n.any || l.fetched(ctx, n.minimum) {
			retry.Stop()
			continue
		}
		l.mu.Lock()
		l.need = need{true, max(l.need.minimum, n.minimum)}
		l.mu.Unlock()
		retry.Reset(wait/2 + rand.N(wait))
		wait = min(2*wait, maxRetry)
	}
}

func (l *Link) untilPoll() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.poll
	if l.o.tune.poll > 0 {
		d = l.o.tune.poll
	}
	return d - d/5 + rand.N(2*d/5+1)
}

// fetched fetches the document once, and reports whether that is enough.
func (l *Link) fetched(ctx context.Context, minimum uint64) bool {
	m, err := l.request(ctx, nats.NewMsg(wire.FetchSubject(wire.DeviceKey(l.o.Device))))
	switch {
	case errors.Is(err, errOffline):
		return true // the connection will ask again
	case errors.Is(err, nats.ErrNoResponders):
		l.none("the fleet has no store of documents; its operator creates it with: continuo setup")
		return false
	case err != nil:
		return false
	}
	switch status := m.Header.Get("Status"); {
	case status == "404" || wire.Deleted(m.Header):
		l.none("nothing is published for this device any more; what was accepted last stays in force")
		return minimum == 0
	case status != "":
		return false
	}
	generation, err := l.take(m.Data)
	if err != nil {
		return false
	}
	return generation == 0 || generation >= minimum
}

// none notes that there is no document. That is news only if there was one, and never means that anything is to be
// removed.
func (l *Link) none(message string) {
	if l.h.Pulse().Generation == 0 {
		return
	}
	l.mu.Lock()
	l.missing = true
	l.mu.Unlock()
	l.problem(CodeNoDesired, message)
}

// take is where every document comes in, whatever brought it. It gives the generation of a document that is genuine,
// else 0. The error is about the books of the device; the document can be offered again.
func (l *Link) take(envelope []byte) (uint64, error) {
	l.intake.Lock()
	defer l.intake.Unlock()
	sum := sha256.Sum256(envelope)
	if l.last.generation > 0 && l.last.sum == sum {
		l.found()
		return l.last.generation, nil
	}
	in, err := open(envelope, l.o.Device, l.o.Keys, l.o.Clock())
	if err == nil {
		err = l.h.Offer(in)
	}
	if r, ok := errors.AsType[*agent.Refusal](err); ok {
		l.refuse(r.Code, r.Message)
		return in.Generation, nil
	}
	if err != nil {
		l.problem(agent.CodeStore, fmt.Sprintf("generation %d could not be kept: %v", in.Generation, err))
		return 0, err
	}
	l.last = seen{sum, in.Generation}
	l.mu.Lock()
	clear(l.refused)
	l.mu.Unlock()
	l.found()
	return in.Generation, nil
}

// found takes back that there is no document.
func (l *Link) found() {
	l.mu.Lock()
	was := l.missing
	l.missing = false
	l.mu.Unlock()
	if was {
		l.h.Resolved(CodeNoDesired)
	}
}

// refuse reports what was not accepted. One report for each code is enough until something is accepted: whoever sends
// rubbish must not fill the status with it.
func (l *Link) refuse(code interpret.Code, message string) {
	l.mu.Lock()
	known := l.refused[code]
	l.refused[code] = true
	l.mu.Unlock()
	if !known {
		l.problem(code, message)
	}
}
