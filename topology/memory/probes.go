package memory

import (
	"context"
	"net"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// An Endpoint is somebody who listens.
type Endpoint struct {
	// Status of every answer to a GET; 0: it does not speak HTTP.
	Status int
	// Unit that it belongs to, if it does: it listens while that is active.
	Unit string
	// Mute endpoints take connections and never say a word.
	Mute bool
	// Unreachable ones have no way to them: nobody ever says whether they are there.
	Unreachable bool
}

// Listen puts an endpoint at a TCP address, host:port, in the place of the one that is there.
func (d *Device) Listen(address string, e Endpoint) { d.hands(func() { d.endpoints[address] = e }) }

// Unlisten takes the endpoint at an address away.
func (d *Device) Unlisten(address string) { d.hands(func() { delete(d.endpoints, address) }) }

type prober struct{ d *Device }

func (p prober) Connect(ctx context.Context, address string) error {
	if err := p.d.control.call(ctx, OpConnect, topology.Resource("tcp:"+address)); err != nil {
		return err
	}
	if err := topology.CheckProbeAddress(address); err != nil {
		return err
	}
	_, err := p.d.reach("cannot connect to "+address, address)
	return err
}

func (p prober) Get(ctx context.Context, url string) (int, error) {
	if err := p.d.control.call(ctx, OpGet, topology.Resource(url)); err != nil {
		return 0, err
	}
	u, err := topology.ParseProbeURL(url)
	if err != nil {
		return 0, err
	}
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	what := "cannot get " + topology.ShowProbeURL(u)
	e, err := p.d.reach(what, net.JoinHostPort(u.Hostname(), port))
	switch {
	case err != nil:
		return 0, err
	case e.Mute:
		<-ctx.Done()
		if f := topology.FaultOf(ctx.Err()); f.Code != topology.CodeTimeout {
			return 0, f
		}
		return 0, topology.Faultf(topology.CodeTimeout, "%s: no answer in time", what)
	case e.Status == 0:
		return 0, topology.Faultf(topology.CodeUnknown, "%s: the connection was closed without an answer", what)
	}
	return e.Status, nil
}

// reach finds who listens at an address.
func (d *Device) reach(what, address string) (Endpoint, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e, ok := d.endpoints[address]
	if e.Unreachable {
		return e, topology.Faultf(topology.CodeUnreachable, "%s: there is no such host", what)
	}
	if ok && e.Unit != "" {
		st, err := d.serviceState(e.Unit)
		ok = err == nil && st.Active == "active"
	}
	if !ok {
		return e, topology.Faultf(topology.CodeRefused, "%s: connection refused", what)
	}
	return e, nil
}

func (p prober) Modified(ctx context.Context, path string) (time.Time, error) {
	if err := p.d.control.call(ctx, OpModified, fileResource(path)); err != nil {
		return time.Time{}, err
	}
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	n, err := p.d.lookup(path)
	if err != nil || n == nil {
		return time.Time{}, err
	}
	if err := regular(path, n); err != nil {
		return time.Time{}, err
	}
	return n.changed, nil
}

// Age makes the content of the file at p older, as a clock that jumps does.
func (d *Device) Age(p string, by time.Duration) {
	d.hands(func() { n := d.must(p); n.changed = n.changed.Add(-by) })
}
