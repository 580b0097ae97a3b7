package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// A ReportedInfo is what a device says it is, as the fleet has it.
type ReportedInfo struct {
	// Device that this is about.
	Device Device `json:"device"`
	// Info is what it said last.
	Info *interpret.DeviceInfo `json:"info,omitempty"`
	// Unreadable says why there is no Info.
	Unreadable string `json:"unreadable,omitempty"`
	// StoredAt is when that was stored, on the clock of the store.
	StoredAt time.Time `json:"storedAt,omitzero"`
}

// Info reads what devices say they are, sorted by name; of all that said anything when none is named. No device is asked.
// It is theirs to say, and nothing may be decided by it that matters: which devices a manifest is for is not.
func (f *Fleet) Info(ctx context.Context, devices ...Device) ([]ReportedInfo, error) {
	subjects := []string{wire.AllInfo}
	if len(devices) > 0 && len(devices) <= maxFilters {
		subjects = nil
	}
	wanted := map[Device]bool{}
	for _, d := range devices {
		if err := d.Check(); err != nil {
			return nil, err
		}
		if wanted[d] = true; len(devices) <= maxFilters {
			subjects = append(subjects, wire.InfoSubject(d))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	messages, hand := channel(ctx)
	n, stop, err := f.follow(ctx, wire.StreamActual, subjects, hand)
	if err != nil {
		return nil, fmt.Errorf("cannot read what the devices are: %w", err)
	}
	defer stop()
	left := backlog{}
	left.expect(wire.StreamActual, n)
	var out []ReportedInfo
	for len(left) > 0 {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot read what the devices are: %w", f.explain(ctx.Err()))
		case m := <-messages:
			left.took(m)
			d, err := wire.DeviceOf(m.subject)
			if err != nil || len(devices) > 0 && !wanted[d] {
				continue
			}
			r := ReportedInfo{Device: d, StoredAt: m.time}
			if r.Info, err = decodeInfo(m.data); err != nil {
				r.Unreadable = interpret.Brief(err.Error()) // it may hold what the device wrote
			}
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b ReportedInfo) int { return cmp.Compare(a.Device.String(), b.Device.String()) })
	return out, nil
}

// decodeInfo reads what a device wrote, as decodeStatus does.
func decodeInfo(b []byte) (*interpret.DeviceInfo, error) {
	if len(b) > maxStatus {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", len(b), maxStatus)
	}
	var i interpret.DeviceInfo
	if err := json.Unmarshal(b, &i); err != nil {
		return nil, err
	}
	if i.APIVersion != score.APIVersion || i.Kind != interpret.InfoKind {
		return nil, fmt.Errorf("it is a %.40q of %.40q, this program reads %q of %q", i.Kind, i.APIVersion, interpret.InfoKind, score.APIVersion)
	}
	return &i, nil
}
