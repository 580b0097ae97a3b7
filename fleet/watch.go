package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// relook is how often a watch reads everything anew: what a watch may have missed is found then.
const relook = 5 * time.Minute

// relookUnheard is the same while there is no alive bucket.
const relookUnheard = 3 * time.Second

var errRelook = errors.New("something is there that was not there before")

// news is what of a state is worth telling: not that another heartbeat of the same kind came.
func (s DeviceState) news() any {
	s.Heartbeat.Uptime = 0
	return [...]any{s.Verdict, s.Reason, s.Revision, s.Desired, s.Liveness, s.Heartbeat}
}

// Watch calls changed for the state of every device (of those that are named, or of all) now, and whenever it is
// another, until ctx ends or changed returns false. It lives on over restarts of the server.
func (f *Fleet) Watch(ctx context.Context, devices []Device, changed func(DeviceState) bool) error {
	last := map[Device]DeviceState{}
	tell := func(s DeviceState) bool {
		was, known := last[s.Device]
		last[s.Device] = s
		if known && was.news() == s.news() {
			return true
		}
		return changed(s)
	}
	wanted := func(d Device) bool { return len(devices) == 0 || slices.Contains(devices, d) }
	tellAll := func(v *view) bool {
		for _, d := range v.sorted() {
			if wanted(d) && !tell(v.state(d)) {
				return false
			}
		}
		return true
	}
	renewed, stop := f.onReconnect()
	defer stop()
	for wait := time.Second; ; {
		over := false
		round, cancel := context.WithTimeout(ctx, relook)
		go func() {
			select {
			case <-renewed:
				cancel()
			case <-round.Done():
			}
		}()
		err := f.look(round, devices, func(v *view) bool {
			wait = time.Second
			for _, d := range devices {
				v.device(d)
			}
			over = !tellAll(v)
			return !over
		}, func(v *view, d Device) bool {
			if d == (Device{}) {
				over = !tellAll(v)
			} else if wanted(d) {
				over = !tell(v.state(d))
			}
			return !over
		})
		again := round.Err() != nil || errors.Is(err, errRelook)
		cancel()
		switch {
		case over:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case again:
			continue
		case f.nc.IsConnected():
			return err // it cannot be read, and waiting does not help
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
			wait = min(2*wait, 30*time.Second)
		}
	}
}

// Wait waits until d holds a generation, or a later one, and nothing will change by itself soon. It gives the last
// known state also when ctx ends first.
func (f *Fleet) Wait(ctx context.Context, d Device, generation uint64) (DeviceState, error) {
	var last DeviceState
	err := f.Watch(ctx, []Device{d}, func(s DeviceState) bool {
		last = s
		return !(s.Verdict == Converged && s.Status.Generation >= generation || s.Verdict != Converged && s.Verdict.Settled() && s.Desired >= generation)
	})
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%s is still %s (%s): %w", d, last.Verdict, last.Reason, err)
	}
	return last, err
}
