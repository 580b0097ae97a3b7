package health

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// A looker looks once, for one probe. It is used by one goroutine at a time.
type looker struct {
	eyes  Eyes
	probe score.Probe
	// hangs is true if the probe asks whether something hangs: what is on its way up does not.
	hangs   bool
	written age // of a file
}

func (l *looker) look(ctx context.Context) (Result, string) {
	switch p := l.probe; {
	case p.TCP != nil:
		if l.eyes.Probes == nil {
			return Unseen, "this device cannot open connections"
		}
		address := net.JoinHostPort(cmp.Or(p.TCP.Host, "127.0.0.1"), strconv.Itoa(int(p.TCP.Port)))
		return answered(l.eyes.Probes.Connect(ctx, address))
	case p.HTTP != nil:
		if l.eyes.Probes == nil {
			return Unseen, "this device cannot get URLs"
		}
		status, err := l.eyes.Probes.Get(ctx, p.HTTP.URL)
		if err == nil && (status < 200 || status > 399) {
			return Failed, fmt.Sprintf("%s answers with status %d", show(p.HTTP.URL), status)
		}
		return answered(err)
	case p.Unit != "":
		return l.unit(ctx, p.Unit)
	case p.Container != "":
		return l.container(ctx, p.Container)
	case p.File != nil:
		return l.file(ctx, *p.File)
	}
	return Unseen, "the probe does not say where to look"
}

// answered judges a try to reach somebody: whatever the reason, who cannot be reached
// does not work, unless it is this device that could not try.
func answered(err error) (Result, string) {
	if err == nil {
		return Succeeded, ""
	}
	f := topology.FaultOf(err)
	switch f.Code {
	case topology.CodeUnavailable, topology.CodeCanceled:
		return Unseen, f.Text
	}
	return Failed, f.Text
}

func show(address string) string {
	u, err := topology.ParseProbeURL(address)
	if err != nil {
		return "the URL"
	}
	return topology.ShowProbeURL(u)
}

func (l *looker) unit(ctx context.Context, unit string) (Result, string) {
	if l.eyes.Services == nil {
		return Unseen, "this device has no service manager"
	}
	st, err := l.eyes.Services.Service(ctx, unit)
	switch {
	case err != nil:
		return Unseen, topology.FaultOf(err).Text
	case st.Active == "active" || st.Active == "reloading":
		return Succeeded, ""
	case st.Active == "activating" && l.hangs:
		return Unseen, unit + " is starting"
	case st.Load != topology.Loaded:
		return Failed, fmt.Sprintf("%s is %s", unit, st.Load)
	}
	return Failed, fmt.Sprintf("%s is %s", unit, st.Active)
}

func (l *looker) container(ctx context.Context, name string) (Result, string) {
	if l.eyes.Containers == nil {
		return Unseen, "this device has no container runtime"
	}
	st, err := l.eyes.Containers.Container(ctx, name)
	switch {
	case err != nil:
		return Unseen, topology.FaultOf(err).Text
	case st.State == "running" && (st.Health == "" || st.Health == "healthy"):
		return Succeeded, ""
	case l.hangs && (st.State == "running" && st.Health == "starting" || st.Unit.Active == "activating"):
		return Unseen, fmt.Sprintf("container %s is starting", name)
	case st.State == "running":
		return Failed, fmt.Sprintf("container %s is %s", name, st.Health)
	}
	return Failed, fmt.Sprintf("container %s is %s", name, st.State)
}

func (l *looker) file(ctx context.Context, p score.FileProbe) (Result, string) {
	if l.eyes.Probes == nil {
		return Unseen, "this device cannot look at files"
	}
	written, err := l.eyes.Probes.Modified(ctx, p.Path)
	if err != nil {
		f := topology.FaultOf(err)
		switch f.Code {
		case topology.CodeNotRegular, topology.CodeSymlink, topology.CodeInvalid:
			return Failed, f.Text
		}
		return Unseen, f.Text
	}
	now := time.Now()
	switch {
	case l.written.lately(written, now.Round(0), now, time.Duration(p.MaxAge)):
		return Succeeded, ""
	case written.IsZero():
		return Failed, p.Path + " does not exist"
	}
	return Failed, fmt.Sprintf("%s was written last at %s, more than %s ago", p.Path, written.UTC().Format(time.RFC3339), p.MaxAge)
}

// An age tells whether a file was written lately although clocks jump, as that of a
// Raspberry Pi without a battery does at every boot: the clock is only asked when the
// file is seen to be another one, and whatever it cannot have been older than counts.
type age struct {
	written time.Time // as seen last; zero: there was no file
	until   time.Time // this counts as lately
}

// lately judges what was written at a time of the clock, which says clock now; steady is
// now on a clock that does not jump.
func (a *age) lately(written, clock, steady time.Time, limit time.Duration) bool {
	if !written.Equal(a.written) {
		old, first := clock.Sub(written), a.written.IsZero()
		a.written = written
		switch {
		case 0 <= old && old <= limit:
			a.until = steady.Add(limit - old)
		case old > limit && first || written.IsZero():
			a.until = time.Time{}
		default: // by a clock that says something else now; it was not so at the last look
			a.until = steady.Add(limit)
		}
	}
	return !steady.After(a.until)
}
