package fleet

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
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
	fresh := newPicture()
	messages, hand := channel(ctx)
	left := backlog{}
	for stream, subjects := range map[string][]string{wire.StreamDesired: subjectsOf(wire.StreamDesired), wire.StreamControl: {blockedSubject("*.*"), wire.AllRecords}} {
		n, stop, err := s.follow(ctx, stream, subjects, hand)
		if err != nil {
			return fmt.Errorf("stream %s: %w", stream, err)
		}
		defer stop()
		left.expect(stream, n)
	}
	// Without the journal an operation counts as open until it expires, and devices look once too often.
	n, stop, err := s.follow(ctx, wire.StreamJournal, subjectsOf(wire.StreamJournal), hand, nats.HeadersOnly(), nats.StartTime(time.Now().Add(-wire.MaxOperationLife)))
	if err != nil {
		s.o.Notice(fmt.Errorf("cannot follow which operations are answered: %w", err))
	} else {
		defer stop()
		left.expect(wire.StreamJournal, n)
	}
	ready := false
	for {
		if !ready && len(left) == 0 {
			// Only what is complete replaces what was known.
			ready = true
			s.mu.Lock()
			s.picture = fresh
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
			s.learn(m, fresh)
			anew := s.learnRoot(m)
			s.mu.Unlock()
			if anew {
				return nil // others may sign now: all is read again
			}
		}
	}
}

// A picture is what a control service knows of what is published.
type picture struct {
	documents map[Device]wire.ControlEnvelope // generation, digest and size of what is published
	blocked   map[Device]bool
	boards    map[Device]string          // serial numbers of those that devices were enrolled with
	asked     map[Device][]question      // the operations that are stored
	answered  map[Device]map[string]bool // ids of operations
}

func newPicture() *picture {
	return &picture{map[Device]wire.ControlEnvelope{}, map[Device]bool{}, map[Device]string{}, map[Device][]question{}, map[Device]map[string]bool{}}
}

// envelope is what d has to hear.
func (p *picture) envelope(d Device, now time.Time) wire.ControlEnvelope {
	c := p.documents[d]
	c.Blocked = p.blocked[d]
	for _, q := range p.asked[d] {
		if q.open(now) && !p.answered[d][q.operation.ID] {
			c.Approvals, c.Operation = c.Approvals+1, max(c.Operation, q.generation)
		}
	}
	return c
}

// maxAnswered is how many ids are remembered for one device: as many receipts as the journal keeps. Only whether the
// last operation is answered matters.
const maxAnswered = 200

// learn takes one message into what is known.
func (s *service) learn(m message, p *picture) {
	switch m.stream {
	case wire.StreamControl:
		if d, err := wire.RecordOf(m.subject); err == nil {
			s.learnRecord(d, m, p)
			return
		}
		if d, err := wire.ParseDevice(strings.TrimPrefix(m.subject, blockedSubject(""))); err == nil {
			p.blocked[d] = !m.deleted
		}
		return
	case wire.StreamJournal:
		d, err := wire.DeviceOf(m.subject)
		if err != nil || m.verb == string(interpret.VerbPass) || wire.CheckOperationID(m.receipt) != nil {
			return
		}
		if len(p.answered[d]) == 0 || len(p.answered[d]) == maxAnswered {
			p.answered[d] = map[string]bool{}
		}
		p.answered[d][m.receipt] = true
		return
	}
	t, err := desiredKey(m.subject).Target()
	switch {
	case err != nil:
	case t.Kind == wire.KindDevice:
		s.learnDocument(t.Device, m, p)
	case t.Kind == wire.KindApproval:
		delete(p.asked, t.Device)
		if asked := readQuestions(m.data); len(asked) > 0 && !m.deleted {
			for i := range asked {
				asked[i].frame = nil // nobody needs it here
			}
			p.asked[t.Device] = asked
		}
	}
}

// learnRoot takes the next version of the trust root, and reports whether it was one.
func (s *service) learnRoot(m message) bool {
	t, err := desiredKey(m.subject).Target()
	if m.stream != wire.StreamDesired || err != nil || t.Kind != wire.KindRoot || s.o.Root.Metadata.Version == 0 || t.Root != s.o.Root.Metadata.Version+1 {
		return false
	}
	e, err := wire.ParseFrame(m.data)
	if err != nil {
		return false
	}
	next, err := s.o.Root.Next(e)
	return err == nil && s.o.trust(next) == nil
}

// learnRecord takes which board a device has.
func (s *service) learnRecord(d Device, m message, p *picture) {
	delete(p.boards, d)
	if s.o.Admission == nil || m.deleted {
		return
	}
	r, err := wire.OpenRecord(m.data, s.o.Admission.Operators, d)
	if err != nil {
		s.o.Notice(fmt.Errorf("cannot use the record of %s: %w", d, err))
		return
	}
	p.boards[d] = r.Board.Serial
}

func (s *service) learnDocument(d Device, m message, p *picture) {
	if m.deleted {
		delete(p.documents, d)
		return
	}
	v, err := wire.Verify(m.data, s.o.Keys, wire.Expect{Kind: wire.KindDevice, Audience: d.String()})
	if err != nil {
		s.o.Notice(fmt.Errorf("what is published for %s is not announced: %w", d, err))
		return
	}
	p.documents[d] = wire.ControlEnvelope{Generation: v.Statement.Generation, Digest: v.Statement.Digest[:sha256.Size:sha256.Size], Size: v.Statement.Size}
}

// blockedSubject is where it is kept that a device is to change nothing.
func blockedSubject(device string) string {
	return strings.TrimSuffix(subjectsOf(wire.StreamControl)[0], ">") + "blocked." + device
}

// deletion is what deletes a key of a bucket.
func deletion(subject string) *nats.Msg {
	return &nats.Msg{Subject: subject, Header: nats.Header{"KV-Operation": {"DEL"}}}
}

// Block tells a device to observe and report, and to change nothing, or lets it go on. It holds from the device's next
// heartbeat on. A device that no control service reaches does not hear of it.
func (f *Fleet) Block(ctx context.Context, d Device, blocked bool) error {
	if err := d.Check(); err != nil {
		return err
	}
	m := &nats.Msg{Subject: blockedSubject(d.String()), Data: []byte("blocked")}
	if !blocked {
		m = deletion(m.Subject)
	}
	ctx, cancel := f.within(ctx)
	defer cancel()
	if _, err := f.js.PublishMsg(ctx, m); err != nil {
		return fmt.Errorf("cannot change whether %s is blocked: %w", d, f.explain(noStore(err)))
	}
	return nil
}
