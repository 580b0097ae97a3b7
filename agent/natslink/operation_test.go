package natslink

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// A doer remembers which operations a link hands over. It keeps its books as the agent does: one receipt for an id, a
// conflict for an id with another content.
type doer struct {
	*handler
	link  *Link
	ctx   context.Context
	left  int // books that cannot be kept
	taken []string
	known map[string]string // digest by id
}

func (d *doer) Operation(op interpret.Operation, digest string) error {
	r := interpret.Receipt{
		APIVersion: score.APIVersion, Kind: interpret.ReceiptKind, ID: op.ID, Device: op.Device, Verb: op.Verb, Request: digest,
		Result: interpret.ResultDone, Started: time.Unix(1, 0).UTC(),
	}
	var err error
	d.change(func() {
		if d.left--; d.left >= 0 {
			err = errors.New("disk is full")
			return
		}
		d.taken = append(d.taken, op.ID)
		if was, ok := d.known[op.ID]; ok && was != digest {
			r.Result = interpret.ResultConflict
		}
		d.known[op.ID] = digest
	})
	if err == nil && d.link != nil {
		go d.link.Send(d.ctx, r)
	}
	return err
}

func (d *doer) took(t *testing.T, ids ...string) {
	t.Helper()
	var taken []string
	defer func() {
		if t.Failed() {
			t.Logf("it took %v", taken)
		}
	}()
	d.until(t, fmt.Sprintf("took %v", ids), func() bool {
		taken = slices.Clone(d.taken)
		return slices.Equal(taken, ids)
	})
}

// runDoer runs a link whose handler takes operations.
func (r *rig) runDoer(o Options) (*Link, *doer) {
	r.t.Helper()
	l, err := New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	d := &doer{handler: newHandler(), known: map[string]string{}, ctx: r.t.Context()}
	r.runHandler(l, d)
	return l, d
}

func (r *rig) runHandler(l *Link, h agent.Handler) (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() { l.Run(ctx, h); close(done) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	r.t.Cleanup(stop)
	return stop
}

// obeying are options of a link that takes operations of the operator, by the clock of this machine.
func (r *rig) obeying() Options {
	o := r.options()
	o.Trust.keys.operations = trustIn(r.t, wire.KindApproval, r.operator)
	o.Clock = time.Now
	return o
}

func operation(id string) interpret.Operation {
	return interpret.Operation{
		APIVersion: score.APIVersion, Kind: interpret.OperationKind, ID: id, Device: pi1.ID, Verb: interpret.VerbPlan,
		Expires: time.Now().Add(time.Hour).Truncate(time.Second).UTC(),
	}
}

// ask makes the document of an operation for pi1.
func ask(t testing.TB, op interpret.Operation, generation uint64, signer nkeys.KeyPair, change ...func(*wire.Statement, *[]byte)) []byte {
	t.Helper()
	payload, err := score.Encode(op)
	if err != nil {
		t.Fatal(err)
	}
	st := wire.Statement{
		Kind: wire.KindApproval, Audience: pi1.String(), Name: string(op.Verb), Generation: generation,
		Issued: wire.UnixSeconds(op.Expires.Add(-time.Hour)), NotAfter: wire.UnixSeconds(op.Expires), Media: wire.MediaOperation,
	}
	for _, c := range change {
		c(&st, &payload)
	}
	frame, err := wire.Seal(st, payload, signer)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// store puts bytes where the operation for pi1 is.
func (r *rig) store(frame []byte, generation uint64) {
	r.t.Helper()
	m := &nats.Msg{Subject: wire.DesiredSubject(wire.ApprovalKey(pi1)), Data: frame, Header: wire.Announce(wire.Statement{Generation: generation})}
	if _, err := r.js.PublishMsg(r.t.Context(), m); err != nil {
		r.t.Fatal(err)
	}
}

// Each of the four triggers is enough when the other three are off, and what every one of them brings is handed over once.
func TestOperationArrives(t *testing.T) {
	tests := []struct {
		name   string
		on     trigger
		before bool // it is published before the device connects
		says   uint64
	}{
		{"push", onPush, false, 7},
		{"connect", onConnect, true, 7},
		{"heartbeat", onHeartbeat, true, 7},
		{"heartbeat that does not say which", onHeartbeat, true, 0},
		{"poll", onPoll, false, 7},
		{"all", allTriggers, true, 7},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			o := r.obeying()
			o.tune.off = allTriggers &^ tt.on
			if tt.on&onPoll != 0 {
				o.tune.poll = 20 * time.Millisecond
			}
			r.answerWith(wire.ControlEnvelope{Approvals: 1, Operation: tt.says})
			op := operation("one")
			frame := ask(t, op, 7, r.operator)
			if tt.before {
				r.store(frame, 7)
			}
			l, d := r.runDoer(o)
			r.online(l)
			if !tt.before {
				r.store(frame, 7)
			}
			d.took(t, "one")
			r.beats(10)
			d.took(t, "one")
			d.change(func() {
				payload, err := score.Encode(op)
				if sum := sha256.Sum256(payload); err != nil || d.known["one"] != hex.EncodeToString(sum[:]) || len(d.problems) > 0 {
					t.Errorf("digest %q, problems %v, %v", d.known["one"], d.problems, err)
				}
			})
		})
	}
}

// A heartbeat without an operation that waits, or with one that is known, fetches nothing; the next one is fetched (S02).
func TestHeartbeatsFetchNoKnownOperation(t *testing.T) {
	r := newRig(t)
	p := newProxy(t, r.srv.URL)
	o := r.obeying()
	o.Servers, o.tune.off = []string{p.url()}, onPush
	r.store(ask(t, operation("one"), 7, r.operator), 7)
	say := r.answerWith(wire.ControlEnvelope{Approvals: 1, Operation: 7})
	_, d := r.runDoer(o)
	d.took(t, "one")
	r.beats(2)
	before := p.count("get.a.")
	r.beats(20)
	say <- wire.ControlEnvelope{}
	r.beats(20)
	if n := p.count("get.a.") - before; n != 0 {
		t.Errorf("%d fetches without news", n)
	}
	r.store(ask(t, operation("two"), 8, r.operator), 8)
	say <- wire.ControlEnvelope{Approvals: 1, Operation: 8}
	d.took(t, "one", "two")
	if n := p.count("get.a.") - before; n != 1 {
		t.Errorf("%d fetches of one", n)
	}
}

// Books that cannot be kept are no refusal: the operation is offered again until they can.
func TestOperationIsOfferedAgain(t *testing.T) {
	r := newRig(t)
	o := r.obeying()
	o.tune.off = onConnect
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	d := &doer{handler: newHandler(), known: map[string]string{}, left: 3}
	r.runHandler(l, d)
	r.online(l)
	r.store(ask(t, operation("one"), 7, r.operator), 7)
	d.took(t, "one")
	d.change(func() {
		if !strings.Contains(d.problems[agent.CodeStore], "disk is full") {
			t.Errorf("problems %v", d.problems)
		}
	})
}

// What was pushed is not fetched because a heartbeat tells of it, and what was refused is not fetched again and again.
func TestHeartbeatsFetchNothingInVain(t *testing.T) {
	for name, trusted := range map[string]bool{"pushed": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := newProxy(t, r.srv.URL)
			o := r.obeying()
			o.Servers, o.tune.off = []string{p.url()}, onConnect
			if !trusted {
				o.Trust.keys.operations = trustIn(t, wire.KindApproval, newSigner(t))
			}
			say := r.answerWith(wire.ControlEnvelope{})
			l, d := r.runDoer(o)
			r.online(l)
			r.store(ask(t, operation("one"), 7, r.operator), 7)
			if trusted {
				d.took(t, "one")
			} else {
				d.has(t, "untrusted")
			}
			say <- wire.ControlEnvelope{Approvals: 1, Operation: 7}
			r.beats(20)
			if n := p.count("get.a."); trusted && n > 0 || n > 1 {
				t.Errorf("%d fetches", n)
			}
		})
	}
}

// A replica that is behind is asked again until it has what was announced, also when what it has is of no use any more.
func TestOperationBehind(t *testing.T) {
	past := operation("past")
	past.Expires = time.Now().Add(-time.Hour).Truncate(time.Second)
	for name, tt := range map[string]struct {
		op    interpret.Operation
		taken []string
	}{
		"of use":  {operation("one"), []string{"one", "two"}},
		"expired": {past, []string{"two"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := newProxy(t, r.srv.URL)
			o := r.obeying()
			o.Servers = []string{p.url()}
			o.tune.off = allTriggers &^ onHeartbeat
			r.store(ask(t, tt.op, 7, r.operator), 7)
			r.answerWith(wire.ControlEnvelope{Approvals: 1, Operation: 8})
			_, d := r.runDoer(o)
			for p.count("get.a.") < 3 {
				r.beats(1)
			}
			r.store(ask(t, operation("two"), 8, r.operator), 8)
			d.took(t, tt.taken...)
			before := p.count("get.a.")
			r.beats(10)
			if n := p.count("get.a.") - before; n != 0 {
				t.Errorf("%d fetches of what is known", n)
			}
		})
	}
}

// Given the report of a cycle is lost, its answer is not acted on; the next good cycle hands it on (S43).
func TestLostHeartbeatHandsNothingOn(t *testing.T) {
	r := newRig(t)
	p := newProxy(t, r.srv.URL)
	o := r.obeying()
	o.Servers = []string{p.url()}
	o.tune.off = allTriggers &^ onHeartbeat
	o.tune.timeout = 200 * time.Millisecond
	say := r.answerWith(wire.ControlEnvelope{})
	l, d := r.runDoer(o)
	r.online(l)
	r.beats(2)
	sprung := p.deafen(wire.HeartbeatSubject(pi1))
	<-sprung
	c := r.publish(1)
	c.Blocked, c.Approvals, c.Operation = true, 1, 1
	r.store(ask(t, operation("one"), 1, r.operator), 1)
	say <- c
	r.beats(3) // they were answered, and nobody heard it
	d.change(func() {
		if d.control.Blocked || d.pulse.Generation != 0 || len(d.taken) > 0 {
			t.Errorf("control %+v, generation %d, took %v", d.control, d.pulse.Generation, d.taken)
		}
	})
	p.hear()
	d.until(t, "blocked", func() bool { return d.control.Blocked })
	d.generation(t, 1)
	d.took(t, "one")
}
