package agent

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
)

const (
	// describeEvery is how often the device looks at itself. What stays the same for as long as
	// nobody changes the machine is sent when it changes.
	describeEvery = time.Minute
	// moveEvery is how often, at most, is sent what moves all the time: temperature, free space
	// and the clock.
	moveEvery = 15 * time.Minute
	// informEvery is how often it is sent in any case: the store may have lost it.
	informEvery = 6 * time.Hour
	// lookTimeout is how long the machine may take to tell what it is.
	lookTimeout = 20 * time.Second

	// clockLimit is from when on a clock is reported as wrong, and clockBack when it is right again.
	clockLimit = 30 * time.Second
	clockBack  = 20 * time.Second
	// jump is by how many seconds no clock drifts from one heartbeat to the next.
	jump = 5
)

// A Self is how a device finds out what it is. Tools may be nil.
type Self struct {
	Facts topology.FactReader
	Tools topology.ToolReader
}

// Describe is what a device says it is. A tool that cannot be looked at just now is left out.
func (s Self) Describe(ctx context.Context, device string, id interpret.Agent) (interpret.DeviceInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, err := s.Facts.Facts(ctx)
	info := interpret.DeviceInfo{APIVersion: apiVersion, Kind: interpret.InfoKind, Device: device, Facts: found, Agent: id, Time: now()}
	if s.Tools == nil || err != nil {
		return info, err
	}
	for _, name := range topology.DefaultTools {
		if st, err := s.Tools.Tool(ctx, name); err == nil {
			info.Tools = append(info.Tools, interpret.Tool{Name: name, Condition: st.Condition(), Copies: st.Copies})
		}
	}
	return info, nil
}

// describing keeps the fleet told of what this device is. It is no part of a pass.
func (a *Agent) describing(ctx context.Context) {
	tick := time.NewTicker(describeEvery)
	defer tick.Stop()
	var last time.Time
	for {
		a.mu.Lock()
		self := a.Identity
		a.mu.Unlock()
		info, err := a.Self.Describe(ctx, a.Device, self)
		if err != nil && ctx.Err() == nil {
			a.Log.WithError(err).Debug("cannot find out what this device is")
		} else if err == nil {
			a.say(CodeReboot, rebootFor(info.Facts))
			a.mu.Lock()
			info.Clock = a.clock
			if since := time.Since(last); last.IsZero() || since >= informEvery || differs(a.info, info) || jumped(a.info, info) || since >= moveEvery && moved(a.info, info) {
				last, a.info = time.Now(), info
				signal(a.news)
			}
			a.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-a.describe:
		}
	}
}

// sendInfo hands the newest info to the link.
func (a *Agent) sendInfo(ctx context.Context) error {
	a.mu.Lock()
	info := a.info
	a.mu.Unlock()
	return a.Link.Inform(ctx, info)
}

// differs compares what stays the same for as long as nobody changes the machine.
func differs(a, b interpret.DeviceInfo) bool {
	for _, i := range []*interpret.DeviceInfo{&a, &b} {
		i.Time, i.Agent.Sequence, i.Clock, i.Facts.Temperature = time.Time{}, 0, interpret.Clock{AheadSeconds: known(i.Clock.AheadSeconds)}, known(i.Facts.Temperature)
		i.Facts.Disks = slices.Clone(i.Facts.Disks)
		for j := range i.Facts.Disks {
			i.Facts.Disks[j].FreeMiB = 0
		}
	}
	return !alike(a, b)
}

// known keeps that there is a number, and not which.
func known(f *float64) *float64 {
	if f == nil {
		return nil
	}
	return new(float64)
}

// moved compares the rest of what does not differ, and overlooks what nobody would notice.
func moved(a, b interpret.DeviceInfo) bool {
	far := func(x, y *float64, far float64) bool { return x != nil && y != nil && math.Abs(*x-*y) >= far }
	for i, d := range a.Facts.Disks {
		e := b.Facts.Disks[i]
		if far(new(float64(d.FreeMiB)), new(float64(e.FreeMiB)), max(64, float64(d.SizeMiB)/50)) {
			return true
		}
	}
	return far(a.Facts.Temperature, b.Facts.Temperature, 5) || far(a.Clock.AheadSeconds, b.Clock.AheadSeconds, 1+a.Clock.WithinSeconds+b.Clock.WithinSeconds)
}

// jumped says that somebody has set one of the clocks.
func jumped(a, b interpret.DeviceInfo) bool {
	x, y := a.Clock.AheadSeconds, b.Clock.AheadSeconds
	return x != nil && y != nil && math.Abs(*x-*y) > jump
}

func rebootFor(f topology.Facts) string {
	if !f.RebootRequired {
		return ""
	}
	what := "something that was installed"
	if len(f.RebootFor) > 0 {
		what = strings.Join(f.RebootFor, ", ")
	}
	return "a reboot is required: " + what + " takes effect with the next boot only"
}

// Clock is part of Handler.
func (a *Agent) Clock(ahead, within time.Duration) {
	a.mu.Lock()
	was := a.clock.AheadSeconds
	a.clock = interpret.Clock{AheadSeconds: new(tenths(ahead)), WithinSeconds: tenths(within)}
	news := was == nil || math.Abs(*was-*a.clock.AheadSeconds) > jump
	said := a.offset
	off := ahead.Abs() - within
	switch {
	case said != 0 && off < clockBack || said == 0 && off <= clockLimit:
		a.offset = 0
	case said == 0 || (ahead-said).Abs() > 2*time.Second+within+said.Abs()/10: // small moves are no news
		a.offset = ahead
	}
	message := ""
	if a.offset != 0 {
		side := "ahead of"
		if a.offset < 0 {
			side = "behind"
		}
		message = fmt.Sprintf("the clock of this device is %s %s the fleet's: see to its time server (timedatectl); until then documents may be refused for their age, and windows open at another time", about(a.offset.Abs()), side)
	}
	a.mu.Unlock()
	a.say(CodeClock, message)
	if news {
		signal(a.describe)
	}
}

// about is a duration as people say it.
func about(d time.Duration) time.Duration {
	switch {
	case d >= 48*time.Hour:
		return d.Round(time.Hour)
	case d >= time.Hour:
		return d.Round(time.Minute)
	}
	return d.Round(time.Second)
}

// tenths are the seconds of a duration, to one digit.
func tenths(d time.Duration) float64 { return math.Round(d.Seconds()*10) / 10 }

// say makes message all that is said under a code; nothing, if it is empty.
func (a *Agent) say(code interpret.Code, message string) {
	message = interpret.Brief(message)
	a.mu.Lock()
	i := slices.IndexFunc(a.problems, func(p interpret.Problem) bool { return p.Code == code })
	same := i < 0 && message == "" || i >= 0 && a.problems[i].Message == message
	switch {
	case same:
	case message == "":
		a.problems = slices.Delete(a.problems, i, i+1)
	case i >= 0:
		a.problems[i].Message = message
	default:
		a.problems = append(a.problems, interpret.Problem{Code: code, Message: message, Since: now()})
	}
	a.mu.Unlock()
	switch log := a.Log.WithField("code", code); {
	case same:
		return
	case message == "":
		log.Info("resolved")
	default:
		log.Warn(message)
	}
	a.republish()
}
