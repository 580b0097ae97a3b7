package natslink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
)

// A reporter writes the status of the device where it must be the only writer. A refused write does not prove that
// somebody else wrote, and a lost answer does not prove that nothing was written: what is stored is read back.
type reporter struct {
	mu          sync.Mutex
	body        []byte // last report
	own         identity
	known       bool   // revision is that of what is stored now, as far as we know
	revision    uint64 // of the last status that is stored; 0: none
	wrote       bool   // something of this instance was stored
	lost        bool   // and is not there any more: the store was made anew
	predecessor string // whose status was there before ours
}

type identity struct {
	Instance string `json:"instance"`
	Sequence uint64 `json:"sequence"`
}

const attempts = 8

// Report is part of agent.Link. It waits for a connection.
func (l *Link) Report(ctx context.Context, st interpret.DeviceStatus) error {
	if st.Agent.Instance == "" {
		st.Agent.Instance = l.o.Instance
	}
	body, err := encodeStatus(st)
	if err != nil {
		return err
	}
	if _, err := l.conn(ctx); err != nil {
		return fmt.Errorf("cannot report: %w", err)
	}
	r := &l.report
	r.mu.Lock()
	defer r.mu.Unlock()
	r.body, r.own = body, identity{st.Agent.Instance, st.Agent.Sequence}
	return l.store(ctx, !r.known)
}

// checkLoop makes sure that the last report is stored: a store can be lost and built again.
func (l *Link) checkLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.check:
		}
		r := &l.report
		r.mu.Lock()
		if r.body != nil {
			// What fails here is tried again by the next connection, poll or report.
			_ = l.store(ctx, true)
		}
		lost := r.lost
		r.lost = false
		r.mu.Unlock()
		if lost {
			l.askAgain(ctx)
		}
	}
}

// store makes r.body the stored status. With look it first finds out what is stored. It is called with r.mu held.
func (l *Link) store(ctx context.Context, look bool) error {
	r := &l.report
	var last error
	for i := range attempts {
		if l.givesWay() {
			return errGaveWay
		}
		if i > 0 && !sleep(ctx, time.Millisecond<<i) {
			return ctx.Err()
		}
		if look {
			r.known = false
			stored, err := l.readBack(ctx)
			if err != nil {
				return err
			}
			if stored {
				return nil
			}
		}
		revision, err := l.write(ctx)
		if err == nil {
			r.revision, r.wrote, r.known = revision, true, true
			return nil
		}
		if !errors.Is(err, errUnsure) {
			r.known = false
			return err
		}
		look, last = true, err
	}
	return last
}

// errUnsure is that of a write of which nobody knows whether it took place.
var errUnsure = errors.New("the answer does not tell whether it was stored")

var errNoStore = errors.New("cannot report: the fleet has no store of statuses; its operator creates it with: continuo setup")

// write tries once.
func (l *Link) write(ctx context.Context) (revision uint64, err error) {
	r := &l.report
	m := nats.NewMsg(wire.StatusSubject(l.o.Device))
	m.Header.Set(nats.ExpectedLastSubjSeqHdr, strconv.FormatUint(r.revision, 10))
	m.Data = r.body
	answer, err := l.request(ctx, m, l.o.tune.timeout)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return 0, errNoStore
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return 0, fmt.Errorf("cannot report: no answer from %s: %w", m.Subject, errUnsure)
	case err != nil:
		return 0, fmt.Errorf("cannot report: %w", err)
	}
	switch ack, err := readAck(answer.Data); {
	case err != nil:
		return 0, fmt.Errorf("cannot report: %w", err)
	case ack.Error == nil:
		return ack.Sequence, nil
	case wire.WrongLast(ack.Error.Code):
		return 0, fmt.Errorf("cannot report: %s: %w", ack.Error.Description, errUnsure)
	default:
		return 0, fmt.Errorf("cannot report: %s (%d)", ack.Error.Description, ack.Error.Code)
	}
}

// readBack learns the revision of what is stored, and tells whether it is the last report already.
//
// Whatever is found before this instance has written is that of a predecessor: the same device before it was booted or
// its agent started again. Another instance's status that replaced one of ours is that of a clone: a predecessor has
// ended and writes nothing any more.
func (l *Link) readBack(ctx context.Context) (stored bool, err error) {
	r := &l.report
	answer, err := l.request(ctx, nats.NewMsg(wire.StatusFetchSubject(l.o.Device)), l.o.tune.timeout)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return false, errNoStore
	case err != nil:
		return false, fmt.Errorf("cannot read back the last report: %w", err)
	}
	switch answer.Header.Get("Status") {
	case "":
	case "404":
		r.revision, r.known = 0, true
		r.lost = r.wrote
		return false, nil
	default:
		return false, fmt.Errorf("cannot read back the last report: the server says %s %s", answer.Header.Get("Status"), answer.Header.Get("Description"))
	}
	revision, err := strconv.ParseUint(answer.Header.Get(nats.JSSequence), 10, 64)
	if err != nil {
		return false, fmt.Errorf("cannot read back the last report: %w", err)
	}
	var there struct {
		Agent identity `json:"agent"`
	}
	_ = json.Unmarshal(answer.Data, &there) // what cannot be read is replaced
	switch instance := there.Agent.Instance; {
	case instance == r.own.Instance:
		stored = there.Agent.Sequence == r.own.Sequence
		r.wrote = true
	case r.wrote && revision > r.revision && instance != "" && instance != r.predecessor:
		if l.cloned() {
			return false, errGaveWay
		}
	default:
		r.predecessor = instance
	}
	r.revision, r.known = revision, true
	return stored, nil
}
