package pi

import (
	"bytes"
	"context"
	"path"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/continuo-fleet/continuo/topology"
)

// clock is systemd-timesyncd, and the time zone as systemd-timedated sets it. To look asks
// neither of them anything that would start it.
type clock struct {
	bus      *bus
	files    *files
	services *services
}

const (
	timesyncUnit = "systemd-timesyncd.service"
	timesyncFile = "/etc/systemd/timesyncd.conf.d/50-continuo.conf"
	localtime    = "/etc/localtime"
	timesync1    = "org.freedesktop.timesync1"
	timedate1    = "org.freedesktop.timedate1"
	maxTimesync  = 64 << 10
	maxServers   = 64 // that are told of
)

// Time returns the clock.
func (c *clock) Time(ctx context.Context) (topology.TimeState, error) {
	var st topology.TimeState
	u, err := c.services.observe(ctx, timesyncUnit)
	if err != nil {
		return st, err
	}
	if st.Timezone, err = c.zone(ctx); err != nil {
		return st, err
	}
	switch u.Load {
	case topology.Loaded:
	case topology.Masked:
		st.Lacks = timesyncUnit + " is masked; an administrator did that, and has to undo it: systemctl unmask " + timesyncUnit
		return st, nil
	default:
		st.Lacks = "the device has no systemd-timesyncd: if another program such as chrony keeps its clock, that has to go first (apt install systemd-timesyncd)"
		return st, nil
	}
	st.Enabled, st.Active = u.Enabled == "enabled", u.Active == "active" || u.Active == "reloading"
	if err := c.written(ctx, &st); err != nil {
		return st, err
	}
	if is := synchronized(); is != nil {
		st.Synchronized = *is
	}
	if st.Active {
		err = c.running(ctx, &st)
	}
	return st, err
}

// zone is where the link of the local time leads.
func (c *clock) zone(ctx context.Context) (string, error) {
	f, err := c.files.File(ctx, localtime)
	if err != nil {
		return "", err
	}
	if f.Type == topology.Absent {
		return "UTC", nil // as localtime(5) says
	}
	_, zone, _ := strings.Cut(path.Clean(f.Target), "zoneinfo/") // empty: no link, or to nowhere that has a name
	return zone, nil
}

// written fills in what is on disk.
func (c *clock) written(ctx context.Context, st *topology.TimeState) error {
	f, err := c.files.File(ctx, timesyncFile)
	if err != nil || f.Type == topology.Absent {
		return err
	}
	st.Written, st.Altered, st.Choice.Mark = true, true, f.Mark
	if f.Type != topology.Regular || f.Size > maxTimesync {
		return nil
	}
	data, err := c.files.Content(ctx, timesyncFile, maxTimesync)
	if err != nil {
		return err
	}
	mark := st.Choice.Mark
	st.Choice = readTimesync(data)
	st.Altered = !bytes.Equal(timesyncText(st.Choice), data)
	st.Choice.Mark = mark
	return nil
}

// timesyncText is the choice as a file. A line without servers takes back those of files that are read before.
func timesyncText(s topology.TimeServers) []byte {
	var b strings.Builder
	b.WriteString("# Kept by continuo-agent: what is changed here is changed back.\n[Time]\n")
	for _, line := range []struct {
		key     string
		servers []string
	}{{"NTP", s.Servers}, {"FallbackNTP", s.Fallback}} {
		if len(line.servers) > 0 {
			b.WriteString(line.key + "=\n" + line.key + "=" + strings.Join(line.servers, " ") + "\n")
		}
	}
	return []byte(b.String())
}

// readTimesync reads what timesyncText wrote, and of other texts something.
func readTimesync(data []byte) (s topology.TimeServers) {
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if servers := strings.Fields(value); key == "NTP" {
			s.Servers = servers
		} else if key == "FallbackNTP" {
			s.Fallback = servers
		}
	}
	return s
}

// running fills in what timesyncd says. It is asked only if it runs: a question would start it.
func (c *clock) running(ctx context.Context, st *topology.TimeState) error {
	var p properties
	err := c.bus.do(ctx, func(ctx context.Context, l *link) error {
		return l.calls.Object(timesync1, "/org/freedesktop/timesync1").
			CallWithContext(ctx, "org.freedesktop.DBus.Properties.GetAll", dbus.FlagNoAutoStart, timesync1+".Manager").Store(&p)
	})
	if err != nil {
		return busFault("read", "the state of "+timesyncUnit, err)
	}
	st.Servers, st.Fallback, st.Server = p.texts("SystemNTPServers"), p.texts("FallbackNTPServers"), p.text("ServerName")
	st.Offset, st.Measured = offset(p["NTPMessage"].Value())
	return nil
}

// texts is a list of texts, with an end.
func (p properties) texts(name string) []string {
	list, _ := p[name].Value().([]string)
	return list[:min(len(list), maxServers)]
}

// The fields of NTPMessage that tell how far the clock was off.
const (
	ntpStratum, ntpOrigin, ntpReceive, ntpTransmit, ntpDestination = 3, 8, 9, 10, 11

	ntpSpike, ntpPackets, ntpFields = 12, 13, 15
)

// offset is how far the clock was off when the server answered last; ok is false if it never did.
func offset(message any) (d time.Duration, ok bool) {
	m, _ := message.([]any)
	if len(m) < ntpFields {
		return 0, false
	}
	at := func(i int) int64 {
		us, _ := m[i].(uint64)
		return int64(us)
	}
	stratum, _ := m[ntpStratum].(uint32)
	spike, _ := m[ntpSpike].(bool)
	if at(ntpPackets) <= 0 || spike || stratum == 0 || stratum > 15 {
		return 0, false
	}
	us := ((at(ntpReceive) - at(ntpOrigin)) + (at(ntpTransmit) - at(ntpDestination))) / 2
	const most = int64(1 << 62 / time.Microsecond)
	return time.Duration(max(min(us, most), -most)) * time.Microsecond, true
}

// SetTimezone asks timedated, which makes a link and does not sync it.
func (c *clock) SetTimezone(ctx context.Context, zone string) error {
	err := c.bus.do(ctx, func(ctx context.Context, l *link) error {
		return l.calls.Object(timedate1, "/org/freedesktop/timedate1").
			CallWithContext(ctx, timedate1+".SetTimezone", 0, zone, false).Err
	})
	switch {
	case errorName(err) == "org.freedesktop.DBus.Error.ServiceUnknown":
		return topology.Faultf(topology.CodeUnavailable, "the device has no systemd-timedated, which keeps the time zone")
	case err != nil:
		return busFault("set", "the time zone", err)
	}
	return c.files.flush(localtime)
}

// SetTimeServers writes our file, which timesyncd reads when it starts.
func (c *clock) SetTimeServers(ctx context.Context, s topology.TimeServers) error {
	u, err := c.able(ctx)
	if err != nil {
		return err
	}
	if err := c.files.WriteFile(ctx, topology.FileWrite{Path: timesyncFile, Content: timesyncText(s), Mode: 0o644, Mark: s.Mark}); err != nil {
		return err
	}
	return c.again(ctx, u)
}

// RemoveTimeServers removes our file.
func (c *clock) RemoveTimeServers(ctx context.Context) error {
	f, err := c.files.File(ctx, timesyncFile)
	if err != nil || f.Type == topology.Absent {
		return err
	}
	if err := c.files.RemoveFile(ctx, timesyncFile); err != nil {
		return err
	}
	u, err := c.services.observe(ctx, timesyncUnit)
	if err != nil {
		return err
	}
	return c.again(ctx, u)
}

// again lets timesyncd read its files, if it runs.
func (c *clock) again(ctx context.Context, u unitState) error {
	if u.Active == "inactive" || u.Active == "failed" || u.Load != topology.Loaded {
		return nil
	}
	return c.services.Restart(ctx, timesyncUnit, true)
}

// SetTimeSync enables and starts timesyncd, or the opposite.
func (c *clock) SetTimeSync(ctx context.Context, on bool) error {
	if _, err := c.able(ctx); err != nil {
		return err
	}
	if err := c.services.SetEnabled(ctx, timesyncUnit, on); err != nil {
		return err
	}
	if on {
		return c.services.Start(ctx, timesyncUnit, true)
	}
	return c.services.Stop(ctx, timesyncUnit)
}

// able returns timesyncd, if it can be had.
func (c *clock) able(ctx context.Context) (unitState, error) {
	u, err := c.services.observe(ctx, timesyncUnit)
	if err == nil && u.Load != topology.Loaded {
		err = topology.Faultf(topology.CodeUnavailable, "the device has no %s that could run (%s)", timesyncUnit, u.Load)
	}
	return u, err
}
