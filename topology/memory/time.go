package memory

import (
	"context"
	"regexp"
	"slices"

	"github.com/continuo-fleet/continuo/topology"
)

const timeResource = topology.Resource("timeSync")

// zoneRE knows no zone of its own, and which parts of the world there are.
var zoneRE = regexp.MustCompile(`^(UTC|(Africa|America|Asia|Atlantic|Australia|Etc|Europe|Indian|Pacific)/[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)?)$`)

// systemFallback is what a fresh installation follows.
var systemFallback = []string{"0.debian.pool.ntp.org", "1.debian.pool.ntp.org"}

type clock struct{ d *Device }

func freshClock() topology.TimeState {
	return topology.TimeState{Timezone: "Etc/UTC", Enabled: true, Active: true, Fallback: systemFallback, Server: systemFallback[0]}
}

func (c clock) Time(ctx context.Context) (topology.TimeState, error) {
	if err := c.d.control.call(ctx, OpTime, timeResource); err != nil {
		return topology.TimeState{}, err
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	st := c.d.clock
	if st.Lacks != "" {
		st = topology.TimeState{Timezone: st.Timezone, Lacks: st.Lacks}
	}
	return st, nil
}

func (c clock) SetTimezone(ctx context.Context, zone string) error {
	if err := c.d.control.call(ctx, OpSetTimezone, timeResource); err != nil {
		return err
	}
	if !zoneRE.MatchString(zone) {
		return topology.Faultf(topology.CodeInvalid, "the device has no time zone %q", zone)
	}
	c.d.Clock(func(st *topology.TimeState) { st.Timezone = zone })
	return nil
}

func (c clock) SetTimeServers(ctx context.Context, s topology.TimeServers) error {
	if err := c.able(ctx, OpSetTimeServers); err != nil {
		return err
	}
	s.Servers, s.Fallback = slices.Clone(s.Servers), slices.Clone(s.Fallback)
	c.d.Clock(func(st *topology.TimeState) { st.Written, st.Choice, st.Altered = true, s, false })
	c.d.RestartClock()
	return nil
}

func (c clock) RemoveTimeServers(ctx context.Context) error {
	if err := c.d.control.call(ctx, OpRemoveTimeServers, timeResource); err != nil {
		return err
	}
	c.d.Clock(func(st *topology.TimeState) { st.Written, st.Choice, st.Altered = false, topology.TimeServers{}, false })
	c.d.RestartClock()
	return nil
}

func (c clock) SetTimeSync(ctx context.Context, on bool) error {
	if err := c.able(ctx, OpSetTimeSync); err != nil {
		return err
	}
	c.d.Clock(func(st *topology.TimeState) { st.Enabled, st.Active = on, on })
	c.d.RestartClock()
	return nil
}

func (c clock) able(ctx context.Context, op Op) error {
	if err := c.d.control.call(ctx, op, timeResource); err != nil {
		return err
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if c.d.clock.Lacks != "" {
		return topology.Faultf(topology.CodeUnavailable, "%s", c.d.clock.Lacks)
	}
	return nil
}

// Clock changes what the clock is by hand.
func (d *Device) Clock(change func(*topology.TimeState)) {
	d.hands(func() {
		change(&d.clock)
		d.changed(timeResource)
	})
}

// RestartClock lets whoever sets the clock read what is on disk.
func (d *Device) RestartClock() {
	d.Clock(func(st *topology.TimeState) {
		st.Servers, st.Fallback, st.Server = nil, nil, ""
		if !st.Active {
			return
		}
		st.Servers, st.Fallback = st.Choice.Servers, systemFallback
		if len(st.Choice.Fallback) > 0 {
			st.Fallback = st.Choice.Fallback
		}
		st.Server = slices.Concat(st.Servers, st.Fallback)[0]
	})
}
