package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// A message is what a stream holds under a subject, with what the server says of it.
type message struct {
	stream, subject string
	sequence        uint64
	time            time.Time
	pending         uint64
	deleted         bool
	generation      uint64 // as the publisher said; a hint
	receipt, verb   string // as the device said beside a receipt; hints
	data            []byte
	header          nats.Header
}

// streamNamed is one of the streams of a fleet.
func streamNamed(name string, replicas int) wire.Stream {
	all := wire.Streams(replicas)
	return all[slices.IndexFunc(all, func(s wire.Stream) bool { return s.Name == name })]
}

// subjectsOf gives what a stream listens on.
func subjectsOf(stream string) []string { return streamNamed(stream, 1).Subjects }

func aliveSubject(key string) string {
	return strings.TrimSuffix(subjectsOf(wire.StreamAlive)[0], ">") + key
}

// follow hands over the last message of every subject, or what the options say instead, and then every new one, until
// stop is called. initial is how many there are to begin with. It is a consumer: device-written data is never read by
// direct get, because there a device's own headers would decide what it seems to be.
func (f *Fleet) follow(ctx context.Context, stream string, subjects []string, hand func(message), options ...nats.SubOpt) (initial uint64, stop func(), err error) {
	js, err := f.nc.JetStream()
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithCancel(ctx) // the subscription ends with it
	defer f.awaits(cancel)()
	defer time.AfterFunc(patience, cancel).Stop()
	opts := append([]nats.SubOpt{nats.Context(ctx), nats.BindStream(stream), nats.OrderedConsumer(), nats.DeliverLastPerSubject(), nats.ConsumerFilterSubjects(subjects...)}, options...)
	sub, err := js.Subscribe("", func(m *nats.Msg) {
		meta, err := m.Metadata()
		if err != nil {
			return
		}
		receipt, verb := wire.AnnouncedReceipt(m.Header)
		hand(message{
			stream: stream, subject: m.Subject, sequence: meta.Sequence.Stream, time: meta.Timestamp, pending: meta.NumPending,
			deleted: wire.Deleted(m.Header), generation: wire.AnnouncedGeneration(m.Header), receipt: receipt, verb: verb, data: m.Data, header: m.Header,
		})
	}, opts...)
	if err != nil {
		cancel()
		return 0, nil, f.explain(noStore(err))
	}
	stop = func() {
		_ = sub.Unsubscribe() // deletes the consumer too
		cancel()
	}
	if initial, err = sub.InitialConsumerPending(); err != nil {
		stop()
		return 0, nil, err
	}
	return initial, stop, nil
}

// channel makes follow hand over to a channel, until ctx ends.
func channel(ctx context.Context) (<-chan message, func(message)) {
	messages := make(chan message, 64)
	return messages, func(m message) {
		select {
		case messages <- m:
		case <-ctx.Done():
		}
	}
}

// A backlog counts, by stream, what was there to begin with and has not arrived yet.
type backlog map[string]uint64

func (b backlog) expect(stream string, initial uint64) {
	if initial > 0 {
		b[stream] = initial
	}
}

func (b backlog) took(m message) {
	if n, ok := b[m.stream]; ok {
		if b[m.stream] = n - 1; n <= 1 || m.pending == 0 {
			delete(b, m.stream)
		}
	}
}

// maxFilters is how many devices are followed by name; above it all are, and the rest is left out here.
const maxFilters = 64

func filters(stream string, devices []Device) []string {
	if len(devices) == 0 || len(devices) > maxFilters {
		if stream == wire.StreamActual {
			return []string{wire.AllActual} // and not what devices say they are
		}
		return subjectsOf(stream)
	}
	var out []string
	for _, d := range devices {
		switch stream {
		case wire.StreamDesired:
			out = append(out, wire.DesiredSubject(wire.DeviceKey(d)))
		case wire.StreamActual:
			out = append(out, wire.ActualSubject(d))
		case wire.StreamAlive:
			out = append(out, aliveSubject(wire.AliveKey(d)))
		}
	}
	if stream == wire.StreamAlive {
		out = append(out, aliveSubject(presenceKey))
	}
	return out
}

// look reads everything of the devices (none means all), calls loaded once, and then changed for every change, until
// one of them returns false.
func (f *Fleet) look(ctx context.Context, devices []Device, loaded func(*view) bool, changed func(*view, Device) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	messages, hand := channel(ctx)
	// The alive bucket is in memory. Without it nothing is known of who is alive, and everything else still is.
	unheard := time.NewTimer(0)
	unheard.Stop()
	defer unheard.Stop()
	left := backlog{}
	for _, stream := range []string{wire.StreamDesired, wire.StreamActual, wire.StreamAlive} {
		var options []nats.SubOpt
		if stream == wire.StreamDesired {
			options = append(options, nats.HeadersOnly())
		}
		n, stop, err := f.follow(ctx, stream, filters(stream, devices), hand, options...)
		if stream == wire.StreamAlive && missing(err) {
			unheard.Reset(relookUnheard)
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read stream %s: %w", stream, err)
		}
		defer stop()
		left.expect(stream, n)
	}
	v := &view{devices: map[Device]*DeviceState{}}
	ready := false
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		if !ready && len(left) == 0 {
			ready = true
			if !loaded(v) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-unheard.C:
			return errRelook
		case <-late.C:
			if !ready {
				return fmt.Errorf("cannot read the fleet: the server did not send everything within %s", patience)
			}
		case m := <-messages:
			left.took(m)
			if d, ok := v.take(m); ok && ready && !changed(v, d) {
				return nil
			}
		}
	}
}

// Status reads the state of devices, in their order; of all that are known when none is named. No device is asked.
func (f *Fleet) Status(ctx context.Context, devices ...Device) ([]DeviceState, error) {
	for _, d := range devices {
		if err := d.Check(); err != nil {
			return nil, err
		}
	}
	var out []DeviceState
	err := f.look(ctx, devices, func(v *view) bool {
		wanted := devices
		if len(wanted) == 0 {
			wanted = v.sorted()
		}
		for _, d := range wanted {
			out = append(out, v.state(d))
		}
		return false
	}, nil)
	return out, err
}
