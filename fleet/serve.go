package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// ServeOptions say how the control service answers.
type ServeOptions struct {
	Signer   wire.Signer   // the control key
	Keys     KeySet        // who may sign documents: others are not announced
	Root     Root          // the trust root that says so in place of Keys; what is published of it later is followed
	Interval time.Duration // between heartbeats; 0 means 30 s, which is also the most
	Poll     time.Duration // between a device's own looks at its document; 0 means 5 min
	// Reconnect is how long devices spread their reconnects; 0 means as the number of devices asks for.
	Reconnect time.Duration
	// Admission is how devices are let in, and get another credential before theirs expires; nil is for who lets in nobody.
	Admission *Admission
	// Notice hears what the service cannot do, and goes on without; may be nil.
	Notice func(error)
}

// shortest interval of a control service. Devices send at most every 5 s, whatever they are told.
const shortest = 100 * time.Millisecond

// queue shares the heartbeats among all control services.
const queue = "control"

// perLogin is how much of a reconnect window one device needs, several times what a login costs a server.
const perLogin = 12 * time.Millisecond

// Serve answers heartbeats until ctx ends. It holds nothing that it could not read again, has no authority over any
// device, and any number may run at once. Devices go on without it; they only learn later that something is new.
func (f *Fleet) Serve(ctx context.Context, o ServeOptions) error {
	if o.Signer == nil {
		return errors.New("cannot serve: no control key is given")
	}
	if o.Interval > wire.DefaultInterval {
		return fmt.Errorf("cannot serve: heartbeats every %s are too few, a device counts as silent after %s: at most %s", o.Interval, wire.AliveTTL, wire.DefaultInterval)
	}
	if o.Interval == 0 {
		o.Interval = wire.DefaultInterval
	}
	if o.Interval < shortest {
		return fmt.Errorf("cannot serve: an interval of %s would only keep the server busy: at least %s", o.Interval, shortest)
	}
	if o.Notice == nil {
		o.Notice = func(error) {}
	}
	if err := o.trust(o.Root); err != nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	s := &service{Fleet: f, o: o, picture: newPicture(), seen: map[Device]*crowd{}, complained: map[Device]time.Time{}, notes: make(chan note, 1024)}
	sub, err := f.nc.QueueSubscribe(wire.AllHeartbeats, queue, s.answer)
	if err != nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	closed, err := s.admit(ctx)
	if err != nil {
		return err
	}
	defer closed()
	drained := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(drained) })
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.keepAlive(ctx) })
	wg.Go(func() { s.followAll(ctx) })
	<-ctx.Done()
	// Heartbeats that have arrived are answered, and the next ones go to others.
	if sub.Drain() == nil {
		select {
		case <-drained:
		case <-time.After(time.Second):
		}
	}
	return nil
}

// trust makes r the trust root that counts, if it is one.
func (o *ServeOptions) trust(r Root) (err error) {
	if r.Metadata.Version > 0 {
		o.Root = r
		o.Keys, err = r.Kept()
	}
	return err
}

// service is one control service.
type service struct {
	*Fleet
	o     ServeOptions
	notes chan note

	mu         sync.Mutex
	picture    *picture
	seen       map[Device]*crowd
	complained map[Device]time.Time
}

// A note is something to be kept in the alive bucket.
type note struct {
	device    Device
	heartbeat Heartbeat
}

// answer answers one heartbeat. Nothing of it is believed but what is kept about this one device.
func (s *service) answer(m *nats.Msg) {
	d, err := wire.DeviceOf(m.Subject)
	if err != nil || m.Reply == "" {
		return
	}
	hb, err := wire.DecodeHeartbeat(m.Data)
	if err != nil {
		s.complain(d, fmt.Errorf("cannot read a heartbeat of %s: %w", d, err))
		return
	}
	s.mu.Lock()
	c := s.picture.envelope(d, time.Now())
	if s.seen[d] == nil {
		s.seen[d] = &crowd{}
	}
	c.Conflict = s.seen[d].hear(identity{hb.Serial, hb.Instance}, s.picture.boards[d], time.Now())
	devices := len(s.seen)
	s.mu.Unlock()
	c.Nonce, c.Now = hb.Nonce, wire.UnixSeconds(time.Now())
	c.Interval, c.Poll, c.Reconnect = seconds(s.o.Interval), seconds(s.o.Poll), seconds(s.o.Reconnect)
	if c.Reconnect == 0 {
		c.Reconnect = seconds(max(time.Duration(devices)*perLogin, wire.ReconnectBound.Min))
	}
	b, err := wire.SealControl(c, d, s.o.Signer)
	if err == nil {
		err = m.Respond(b)
	}
	if err != nil {
		s.complain(d, fmt.Errorf("cannot answer a heartbeat of %s: %w", d, err))
	}
	select {
	case s.notes <- note{d, Heartbeat{
		Agent: hb.Agent, Build: hb.Build, Boot: hb.Boot, Instance: hb.Instance, Generation: hb.Generation, Digest: fmt.Sprintf("%x", hb.Digest),
		Outcome: hb.Outcome, Health: hb.Health, Store: hb.Store, Pending: hb.Pending, Uptime: hb.Uptime, Serial: hb.Serial, Conflict: c.Conflict,
	}}:
	default: // the store is slow; the next heartbeat comes soon
	}
}

// complainEvery is how often the same device is worth a line: it must not fill the log of the fleet.
const complainEvery = time.Minute

func (s *service) complain(d Device, err error) {
	s.mu.Lock()
	last, known := s.complained[d]
	fresh := !known || time.Since(last) > complainEvery
	if fresh {
		s.complained[d] = time.Now()
	}
	s.mu.Unlock()
	if fresh {
		s.o.Notice(err)
	}
}

func seconds(d time.Duration) uint32 { return uint32(min(max(d, 0), 24*time.Hour) / time.Second) }

// keepAlive keeps in the alive bucket who was heard, and that somebody listens.
func (s *service) keepAlive(ctx context.Context) {
	present := time.NewTimer(0)
	defer present.Stop()
	var own presence
	for {
		key, value := presenceKey, any(nil)
		select {
		case <-ctx.Done():
			return
		case <-present.C:
			present.Reset(s.o.Interval)
			if own.Beats == 0 {
				own = s.predecessor(ctx)
			}
			own.Beats++
			value = own
		case n := <-s.notes:
			key, value = wire.AliveKey(n.device), n.heartbeat
		}
		b, err := json.Marshal(value)
		if err == nil {
			err = s.put(ctx, aliveSubject(key), b)
		}
		if err != nil && ctx.Err() == nil {
			s.complain(Device{}, fmt.Errorf("cannot note that %s was heard: %w", key, s.explain(noStore(err))))
		}
	}
}

// put writes to the alive bucket. The bucket is in memory: a single server that restarts forgets it, and then it is made
// again. No other stream ever is.
func (s *service) put(ctx context.Context, subject string, b []byte) error {
	ctx, cancel := s.within(ctx)
	defer cancel()
	_, err := s.js.Publish(ctx, subject, b, jetstream.WithRetryAttempts(0))
	if !missing(err) {
		return err
	}
	desired, err := s.js.Stream(ctx, wire.StreamDesired)
	if err != nil {
		return err // nothing is set up at all
	}
	if _, err := s.create(ctx, streamNamed(wire.StreamAlive, desired.CachedInfo().Config.Replicas)); err != nil {
		return err
	}
	_, err = s.js.Publish(ctx, subject, b)
	return err
}

// predecessor is the presence that another control service left.
func (s *service) predecessor(ctx context.Context) presence {
	ctx, cancel := s.within(ctx)
	defer cancel()
	var p presence
	stream, err := s.js.Stream(ctx, wire.StreamAlive)
	if err != nil {
		return p
	}
	m, err := stream.GetLastMsgForSubject(ctx, aliveSubject(presenceKey))
	if err != nil || wire.Deleted(m.Header) || json.Unmarshal(m.Data, &p) != nil {
		return presence{}
	}
	return p
}
