package pi

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	sdbus "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

const (
	readTimeout   = 30 * time.Second // of one question to a daemon
	reloadTimeout = 2 * time.Minute  // of a daemon-reload on a slow card
	patience      = 10 * time.Second // with a bus or a daemon that restarts
	retryEvery    = 100 * time.Millisecond
)

// bus is the connection to a service manager and what is beside it: the system bus, or the
// socket of the manager of a user. It is made when it is first needed, and again when it broke.
type bus struct {
	name    string
	connect func(context.Context) (*dbus.Conn, error)
	picking func(context.Context) (*dbus.Conn, error) // may be nil
	direct  bool                                      // it is the socket of a manager, and no bus that has rules of what to send
	below   bool                                      // the device is a directory, see Options.Root
	life    context.Context
	end     context.CancelFunc
	dialing chan struct{} // holds one token

	mu   sync.Mutex
	open *link
}

func newBus(ctx context.Context, below bool) *bus {
	b := &bus{name: "the system bus", connect: connect, picking: connectPicking, below: below, dialing: make(chan struct{}, 1)}
	b.life, b.end = context.WithCancel(ctx)
	return b
}

// A link is one life of the connection. go-systemd keeps two connections, one for calls
// and one for signals; ours are the same two, and one more for the state of units.
type link struct {
	systemd *sdbus.Conn
	calls   *dbus.Conn
	signals *dbus.Conn
	units   *dbus.Conn // of whose answers a picker leaves what is read of a unit; or calls
	*router
}

func (l *link) close() {
	l.systemd.Close()
	_ = l.units.Close()
}

func (l *link) connected() bool { return l.systemd.Connected() && l.units.Connected() }

func (b *bus) close() {
	b.end()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open != nil {
		b.open.close()
		b.open = nil
	}
}

// errNoMachine is the answer below Options.Root to all that is not about files.
var errNoMachine = topology.Faultf(topology.CodeUnavailable, "what is not a file has no meaning below --root: a directory is no running machine")

// link returns the connection. There is no bus: a fault that says so.
func (b *bus) link(ctx context.Context) (*link, error) {
	if b.below {
		return nil, errNoMachine
	}
	if l := b.current(); l != nil {
		return l, nil
	}
	select {
	case b.dialing <- struct{}{}:
		defer func() { <-b.dialing }()
	case <-ctx.Done():
		return nil, topology.FaultOf(ctx.Err())
	}
	if l := b.current(); l != nil {
		return l, nil
	}
	if b.life.Err() != nil {
		return nil, topology.Faultf(topology.CodeCanceled, "the device is closed")
	}
	l, err := b.dial(ctx)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = l
	if b.life.Err() != nil { // closed meanwhile
		l.close()
		return nil, topology.Faultf(topology.CodeCanceled, "the device is closed")
	}
	return l, nil
}

func (b *bus) current() *link {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open != nil && !b.open.connected() {
		b.open.close()
		b.open = nil
	}
	return b.open
}

func (b *bus) dial(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	// The life of a connection is that of its context, so it gets one that ends with
	// this call only while the call lasts.
	life, end := context.WithCancel(b.life)
	stop := context.AfterFunc(ctx, end)
	var conns []*dbus.Conn
	var units *dbus.Conn
	systemd, err := sdbus.NewConnection(func() (*dbus.Conn, error) {
		c, err := b.connect(life)
		if err == nil {
			conns = append(conns, c)
		}
		return c, err
	})
	if err == nil {
		if units = conns[0]; b.picking != nil {
			units, err = b.picking(life)
		}
		if err != nil {
			systemd.Close()
		}
	}
	if err != nil {
		end()
		if ctx.Err() != nil {
			return nil, topology.Faultf(topology.FaultOf(ctx.Err()).Code, "cannot reach %s: %v", b.name, ctx.Err())
		}
		return nil, busFault("reach", b.name, err)
	}
	l := &link{systemd, conns[0], conns[1], units, nil}
	if !stop() { // too late
		l.close()
		return nil, topology.Faultf(topology.FaultOf(ctx.Err()).Code, "cannot reach %s: %v", b.name, ctx.Err())
	}
	if _, err := os.Lstat("/run/systemd/system"); err != nil { // as sd_booted(3) does
		l.close()
		return nil, topology.Faultf(topology.CodeUnavailable, "the device does not run systemd")
	}
	l.router = newRouter(l.signals, b.direct)
	return l, nil
}

// do asks a question, or gives an order that may be given twice. It goes on over a bus
// or a daemon that restarts meanwhile.
func (b *bus) do(ctx context.Context, ask func(context.Context, *link) error) error {
	return b.doFor(ctx, readTimeout, ask)
}

func (b *bus) doFor(ctx context.Context, limit time.Duration, ask func(context.Context, *link) error) error {
	var timer *time.Timer
	for began := time.Now(); ; {
		l, err := b.link(ctx)
		if err == nil {
			call, cancel := context.WithTimeout(ctx, limit)
			err = ask(call, l)
			cancel()
			if err == nil || !transient(err) && l.connected() || ctx.Err() != nil || b.life.Err() != nil {
				return err
			}
		} else if timer == nil || ctx.Err() != nil || b.life.Err() != nil {
			return err // there was no bus to begin with
		}
		if time.Since(began) > patience {
			return err
		}
		if timer == nil {
			timer = time.NewTimer(retryEvery)
			defer timer.Stop()
		} else {
			timer.Reset(retryEvery)
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
			return topology.FaultOf(ctx.Err())
		}
	}
}

// transient reports whether a daemon went away in the middle of an answer.
func transient(err error) bool {
	if errors.Is(err, dbus.ErrClosed) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return true
	}
	switch errorName(err) {
	case "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Disconnected",
		"org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner",
		"org.freedesktop.systemd1.ShuttingDown":
		return true
	}
	return false
}

func errorName(err error) string {
	if e, ok := errors.AsType[dbus.Error](err); ok {
		return e.Name
	}
	if e, ok := errors.AsType[*dbus.Error](err); ok {
		return e.Name
	}
	return ""
}

// busFault makes a fault of what a daemon, or the way to it, answered.
func busFault(verb, what string, err error) error {
	if _, ok := errors.AsType[*topology.Fault](err); ok {
		return err
	}
	code := topology.FaultOf(err).Code
	switch name := errorName(err); name {
	case "":
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
			return topology.Faultf(topology.CodeUnavailable, "no system bus: %v", err)
		}
		if errors.Is(err, dbus.ErrClosed) {
			code = topology.CodeUnavailable
		}
	case "org.freedesktop.systemd1.UnitMasked":
		return masked(verb, what)
	case "org.freedesktop.systemd1.NoSuchUnit", "org.freedesktop.DBus.Error.FileNotFound", "org.freedesktop.systemd1.LoadFailed":
		return topology.Faultf(topology.CodeInvalid, "cannot %s %s: there is no such unit", verb, what)
	case "org.freedesktop.systemd1.BadUnitSetting":
		code = topology.CodeDefinition
	case "org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired":
		code = topology.CodePermission
	case "org.freedesktop.DBus.Error.InvalidArgs", "org.freedesktop.systemd1.UnitGenerated",
		"org.freedesktop.systemd1.NoIsolation", "org.freedesktop.systemd1.OnlyByDependency":
		code = topology.CodeInvalid
	case "org.freedesktop.DBus.Error.Timeout", "org.freedesktop.DBus.Error.TimedOut", "org.freedesktop.DBus.Error.NoReply":
		code = topology.CodeTimeout
	case "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner":
		code = topology.CodeUnavailable
	}
	return topology.Faultf(code, "cannot %s %s: %v", verb, what, err)
}

func masked(verb, unit string) error {
	return topology.Faultf(topology.CodeMasked, "cannot %s %s: an administrator masked it; systemctl unmask %s lifts that", verb, unit, unit)
}
