package pi

import (
	"context"
	"sync"

	sdbus "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// A router hands the signals of a connection to those who asked. What is handed over is
// only that something happened: nobody trusts a signal for more, and none can be lost by
// a slow listener, because one that waits already says it all.
type router struct {
	conn *dbus.Conn
	all  bool // all signals come, without a rule that asks for them

	mu        sync.Mutex
	listeners map[*listener]bool
	subscribe sync.Once
	refused   error
}

// A listener gets a token on C when a signal about one of its paths came, and finds
// those paths in take. C is closed when the connection ends.
type listener struct {
	C    chan struct{}
	want func(*dbus.Signal) string // key of a signal, "" for not mine

	mu   sync.Mutex
	seen map[string]bool
}

func (l *listener) take() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.seen
	l.seen = nil
	return seen
}

func newRouter(conn *dbus.Conn, all bool) *router {
	r := &router{conn: conn, all: all, listeners: map[*listener]bool{}}
	in := make(chan *dbus.Signal, 256)
	conn.Signal(in)
	go r.run(in)
	return r
}

// run ends when the connection ends, which closes in.
func (r *router) run(in chan *dbus.Signal) {
	for s := range in {
		r.mu.Lock()
		for l := range r.listeners {
			key := l.want(s)
			if key == "" {
				continue
			}
			l.mu.Lock()
			if l.seen == nil {
				l.seen = map[string]bool{}
			}
			l.seen[key] = true
			l.mu.Unlock()
			select {
			case l.C <- struct{}{}:
			default:
			}
		}
		r.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.listeners {
		close(l.C)
	}
	r.listeners = nil
}

// listen asks the bus for signals that match and routes those that want accepts.
func (r *router) listen(ctx context.Context, want func(*dbus.Signal) string, match ...string) (*listener, func(), error) {
	r.subscribe.Do(func() {
		// Without a subscriber the service manager sends nothing. It is for the life of
		// the connection, so the end of ctx must not decide it.
		r.refused = r.conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").
			CallWithContext(r.conn.Context(), "org.freedesktop.systemd1.Manager.Subscribe", 0).Err
		if errorName(r.refused) == "org.freedesktop.systemd1.AlreadySubscribed" {
			r.refused = nil
		}
	})
	if r.refused != nil {
		return nil, nil, r.refused
	}
	l := &listener{C: make(chan struct{}, 1), want: want}
	r.mu.Lock()
	if r.listeners == nil {
		r.mu.Unlock()
		return nil, nil, dbus.ErrClosed
	}
	r.listeners[l] = true
	r.mu.Unlock()
	added := 0
	stop := func() {
		r.mu.Lock()
		delete(r.listeners, l)
		r.mu.Unlock()
		for _, m := range match[:added] {
			r.conn.BusObject().Go("org.freedesktop.DBus.RemoveMatch", dbus.FlagNoReplyExpected, nil, m)
		}
	}
	if r.all {
		return l, stop, nil
	}
	for _, m := range match {
		if err := r.conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.AddMatch", 0, m).Err; err != nil {
			stop()
			return nil, nil, err
		}
		added++
	}
	return l, stop, nil
}

func unitPath(unit string) dbus.ObjectPath {
	return dbus.ObjectPath("/org/freedesktop/systemd1/unit/" + sdbus.PathBusEscape(unit))
}

const propertiesChanged = "org.freedesktop.DBus.Properties.PropertiesChanged"

func matchUnit(unit string) string {
	return "type='signal',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',path='" + string(unitPath(unit)) + "'"
}
