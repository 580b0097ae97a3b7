package memory

import (
	"context"
	"regexp"

	"github.com/continuo-fleet/continuo/topology"
)

var hostRE = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,62}[A-Za-z0-9])?$`)

type host struct{ d *Device }

func (h host) Hostname(ctx context.Context) (topology.HostState, error) {
	if err := h.d.control.call(ctx, OpHostname, "hostname"); err != nil {
		return topology.HostState{}, err
	}
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	return h.d.host, nil
}

func (h host) SetHostname(ctx context.Context, name string) error {
	if err := h.d.control.call(ctx, OpSetHostname, "hostname"); err != nil {
		return err
	}
	if !hostRE.MatchString(name) {
		return topology.Faultf(topology.CodeInvalid, "the device refuses the host name %q", name)
	}
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	h.d.host = topology.HostState{Static: name, Transient: name}
	h.d.changed("hostname")
	return nil
}

// Rename changes the host name by hand; empty names are left as they are.
func (d *Device) Rename(static, transient string) {
	d.hands(func() {
		if static != "" {
			d.host.Static = static
		}
		if transient != "" {
			d.host.Transient = transient
		}
		d.changed("hostname")
	})
}
