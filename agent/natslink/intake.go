package natslink

import (
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
)

// A mailbox is one key of this device, and the door that everything under it comes through, whatever brought it: a push,
// a (re)connection, the answer to a heartbeat, or a poll.
type mailbox struct {
	key wire.Key
	// take gives the generation of a document that is genuine, else 0. An error means that the document is to be offered
	// again. pushed is true of what was published just now.
	take func(ctx context.Context, envelope []byte, pushed bool) (uint64, error)
	none func(message string) // there is no document; may be nil

	fetch chan struct{} // there is a need to fetch
	pace  chan struct{} // the time between polls is another

	intake sync.Mutex // one document at a time
	last   seen
	done   map[[sha256.Size]byte]uint64 // generations of the operations that are stored now and were taken, by what they are

	// guarded by the mutex of the link
	need    need
	refused map[interpret.Code]bool
}

// seen is the last document that was accepted, as it came.
type seen struct {
	sum        [sha256.Size]byte
	generation uint64
}

func newMailbox(k wire.Key, take func(context.Context, []byte, bool) (uint64, error), none func(string)) *mailbox {
	return &mailbox{key: k, take: take, none: none, fetch: make(chan struct{}, 1), pace: make(chan struct{}, 1), done: map[[sha256.Size]byte]uint64{}, refused: map[interpret.Code]bool{}}
}

func (l *Link) mailboxes() []*mailbox { return []*mailbox{l.documents, l.operations} }

// A need is a wish to fetch a document.
type need struct {
	any     bool
	minimum uint64 // an older generation comes from a replica that is behind
	told    bool   // that there is this generation, and no more: if it has come meanwhile, there is nothing to fetch
}

// How long a fetch waits before it is tried again.
const (
	minRetry = 10 * time.Millisecond
	maxRetry = 30 * time.Second
)

// has reports whether a generation was accepted, or a later one.
func (b *mailbox) has(generation uint64) bool {
	b.intake.Lock()
	defer b.intake.Unlock()
	return b.last.generation >= generation
}

// want makes the fetch loop of a mailbox look at once.
func (l *Link) want(box *mailbox, minimum uint64) {
	l.mu.Lock()
	told := box == l.documents && minimum > 0 && (box.need.told || !box.need.any) // an operation may come later than a newer one
	box.need = need{true, max(box.need.minimum, minimum), told}
	l.mu.Unlock()
	signal(box.fetch)
}

// wantAll makes every fetch loop look at once.
func (l *Link) wantAll() {
	for _, box := range l.mailboxes() {
		l.want(box, 0)
	}
}

// pushed takes a document that was published just now.
func (l *Link) pushed(ctx context.Context, box *mailbox, m *nats.Msg) {
	if !l.o.tune.has(onPush) {
		return
	}
	a, ok := wire.ParseAnnouncement(m.Subject, m.Header)
	if !ok {
		return
	}
	if a.Deleted || len(m.Data) == 0 {
		l.want(box, 0) // to be sure
		return
	}
	if _, err := box.take(ctx, m.Data, true); err != nil {
		l.want(box, a.Generation)
	}
}

// fetchLoop fetches when there is a need, until it is met.
func (l *Link) fetchLoop(ctx context.Context, box *mailbox) {
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
		case <-box.fetch:
			wait = minRetry
		case <-retry.C:
		case <-box.pace:
			poll.Reset(l.untilPoll())
			continue
		case <-poll.C:
			poll.Reset(l.untilPoll())
			if !l.o.tune.has(onPoll) {
				continue
			}
			l.mu.Lock()
			box.need.any, box.need.told = true, false
			l.mu.Unlock()
			signal(l.check)
		}
		l.mu.Lock()
		n := box.need
		box.need = need{}
		l.mu.Unlock()
		if !n.any || n.told && box.has(n.minimum) || l.fetched(ctx, box, n.minimum) {
			retry.Stop()
			continue
		}
		l.mu.Lock()
		box.need = need{true, max(box.need.minimum, n.minimum), n.told && (box.need.told || !box.need.any)}
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
func (l *Link) fetched(ctx context.Context, box *mailbox, minimum uint64) bool {
	none := func(message string) {
		if box.none != nil {
			box.none(message)
		}
	}
	m, err := l.request(ctx, nats.NewMsg(wire.FetchSubject(box.key)), fetchTimeout)
	switch {
	case errors.Is(err, errOffline):
		return true // the connection will ask again
	case errors.Is(err, nats.ErrNoResponders):
		none("the fleet has no store of documents; its operator creates it with: continuo setup")
		return false
	case err != nil:
		return false
	}
	switch status := m.Header.Get("Status"); {
	case status == "404" || wire.Deleted(m.Header):
		none("nothing is published for this device any more; what was accepted last stays in force")
		return minimum == 0
	case status != "":
		return false
	}
	generation, err := box.take(ctx, m.Data, false)
	if err != nil {
		return false
	}
	return generation == 0 || generation >= minimum
}

// refuse reports what was not accepted. One report for each code is enough until something is accepted: whoever sends
// rubbish must not fill the status with it.
func (l *Link) refuse(box *mailbox, code interpret.Code, message string) {
	l.mu.Lock()
	known := box.refused[code]
	box.refused[code] = true
	l.mu.Unlock()
	if !known {
		l.problem(code, message)
	}
}
