package pi

import (
	"context"

	"github.com/continuo-fleet/continuo/topology"
)

// host is the host name, as systemd-hostnamed keeps it.
type host struct {
	bus   *bus
	files *files
}

const hostname1 = "org.freedesktop.hostname1"

// Hostname returns the name of the device.
func (h *host) Hostname(ctx context.Context) (topology.HostState, error) {
	var p properties
	err := h.bus.do(ctx, func(ctx context.Context, l *link) error {
		return installed(l.calls.Object(hostname1, "/org/freedesktop/hostname1").
			CallWithContext(ctx, "org.freedesktop.DBus.Properties.GetAll", 0, hostname1).Store(&p))
	})
	if err != nil {
		return topology.HostState{}, busFault("read", "the host name", err)
	}
	return topology.HostState{Static: p.text("StaticHostname"), Transient: p.text("Hostname")}, nil
}

// SetHostname sets the static name, which hostnamed writes to /etc/hostname and does not
// sync, and then the present one.
func (h *host) SetHostname(ctx context.Context, name string) error {
	for _, method := range []string{".SetStaticHostname", ".SetHostname"} {
		err := h.bus.do(ctx, func(ctx context.Context, l *link) error {
			return installed(l.calls.Object(hostname1, "/org/freedesktop/hostname1").
				CallWithContext(ctx, hostname1+method, 0, name, false).Err)
		})
		if err != nil {
			return busFault("set", "the host name", err)
		}
	}
	return h.files.flush("/etc/hostname")
}

// ShuttingDown reports whether the device is being switched off or booted again, in order, as far as it says so.
func (d *Device) ShuttingDown(ctx context.Context) bool {
	var state string
	err := d.services.bus.do(ctx, func(ctx context.Context, l *link) error {
		p, err := l.systemd.SystemStateContext(ctx)
		if err == nil {
			state, _ = p.Value.Value().(string)
		}
		return err
	})
	return err == nil && state == "stopping"
}

// installed tells a device without hostnamed from one whose systemd is just restarting.
func installed(err error) error {
	if errorName(err) == "org.freedesktop.DBus.Error.ServiceUnknown" {
		return topology.Faultf(topology.CodeUnavailable, "the device has no systemd-hostnamed, which keeps the host name")
	}
	return err
}
