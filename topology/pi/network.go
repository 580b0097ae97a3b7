package pi

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// network is the connections of the device, as NetworkManager keeps them, or systemd-networkd
// where that is what runs.
type network struct {
	bus      *bus
	managers []netManager // the first that runs is the one
	free     chan struct{}

	mu   sync.Mutex
	open *netCheckpoint
}

// A netManager keeps the connections of the device. A record that is not nil says that a
// checkpoint is open: what is changed then must not outlive a restart of the device.
type netManager interface {
	name() string
	service() string // on the bus
	state(ctx context.Context, c topology.ConnectionConfig) (topology.ConnectionState, error)
	set(ctx context.Context, c topology.ConnectionConfig, m topology.Mark, r *netRecord) error
	remove(ctx context.Context, name string, r *netRecord) error
	// begin starts a dead-man's timer, which restores by itself, and extend sets it anew.
	begin(ctx context.Context, window time.Duration) (netRecord, error)
	extend(ctx context.Context, r netRecord, window time.Duration) error
	// keep makes everything of r durable, and ends the timer if it has not ended by itself.
	keep(ctx context.Context, r netRecord) error
	// restore brings back what was there before r, however much of that was done already.
	restore(ctx context.Context, r netRecord) error
}

// A netRecord is an open checkpoint: what the next process has to know if this one is killed.
// It is kept below /run, because a restart of the device restores by itself.
type netRecord struct {
	Manager string   `json:"manager"`
	Object  string   `json:"object"`            // the manager's own name for it
	Made    int64    `json:"made"`              // by the manager's clock: names are used again
	Names   []string `json:"names,omitempty"`   // of connections that were touched
	Devices []string `json:"devices,omitempty"` // interfaces of them
}

const (
	netRecordFile = "/run/continuo/network.json"
	// managerPatience is how long a manager that is starting is waited for.
	managerPatience = time.Minute
	// activationPatience is how long a connection may take to come up: a router may answer late.
	activationPatience = 50 * time.Second
	// fixedPatience is how long one may take that asks nobody for an address.
	fixedPatience = 10 * time.Second
	// windowMargin is what the timer leaves to whoever proves, so that the two do not race.
	windowMargin = 5 * time.Second
)

func newNetwork(s *services) *network {
	b, f := s.bus, s.files
	n := &network{bus: b, free: make(chan struct{}, 1)}
	n.free <- struct{}{}
	n.managers = []netManager{&networkManager{bus: b, files: f}, &networkd{bus: b, files: f, services: s}}
	return n
}

// manager returns who keeps the connections. One that is about to start is waited for: an agent
// may be earlier at boot.
func (n *network) manager(ctx context.Context) (m netManager, err error) {
	for began := time.Now(); ; {
		if m, err = n.running(ctx); m != nil || err != nil {
			return m, err
		}
		if time.Since(began) > managerPatience || !n.starting(ctx) {
			return nil, topology.Faultf(topology.CodeUnavailable, "neither NetworkManager nor systemd-networkd runs on this device: start the one that keeps its connections")
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return nil, topology.FaultOf(ctx.Err())
		}
	}
}

// running returns the manager that is on the bus; nil: none is.
func (n *network) running(ctx context.Context) (netManager, error) {
	for _, m := range n.managers {
		var runs bool
		err := n.bus.do(ctx, func(ctx context.Context, l *link) error {
			return l.calls.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, m.service()).Store(&runs)
		})
		if err != nil {
			return nil, busFault("ask for", "who keeps the network", err)
		}
		if runs {
			return m, nil
		}
	}
	return nil, nil
}

// starting reports whether systemd is about to start a manager.
func (n *network) starting(ctx context.Context) bool {
	for _, m := range n.managers {
		var p properties
		err := n.bus.do(ctx, func(ctx context.Context, l *link) error {
			return l.calls.Object("org.freedesktop.systemd1", unitPath(m.name()+".service")).
				CallWithContext(ctx, "org.freedesktop.DBus.Properties.GetAll", 0, "org.freedesktop.systemd1.Unit").Store(&p)
		})
		job, _ := p["Job"].Value().([]any)
		var id uint32
		if len(job) > 0 {
			id, _ = job[0].(uint32)
		}
		if err == nil && (id != 0 || p.text("ActiveState") == "activating") {
			return true
		}
	}
	return false
}

// Connection returns the state of a connection.
func (n *network) Connection(ctx context.Context, c topology.ConnectionConfig) (topology.ConnectionState, error) {
	m, err := n.manager(ctx)
	if err != nil {
		return topology.ConnectionState{}, err
	}
	st, err := m.state(ctx, c)
	n.mu.Lock()
	defer n.mu.Unlock()
	st.Durable = st.Durable || n.open != nil && st.Present
	return st, err
}

// SetConnection makes a connection so.
func (n *network) SetConnection(ctx context.Context, c topology.ConnectionConfig, mark topology.Mark) error {
	takes := fixedPatience
	if c.Type == topology.ConnectionWifi || c.IPv4.Method == "auto" || c.IPv6.Method == "auto" {
		takes = activationPatience
	}
	return n.change(ctx, c.Name, takes, func(m netManager, r *netRecord) error { return m.set(ctx, c, mark, r) })
}

// RemoveConnection takes a connection away.
func (n *network) RemoveConnection(ctx context.Context, name string) error {
	return n.change(ctx, name, fixedPatience, func(m netManager, r *netRecord) error { return m.remove(ctx, name, r) })
}

// change does something to a connection that takes some time, and writes it down first.
func (n *network) change(ctx context.Context, name string, takes time.Duration, do func(netManager, *netRecord) error) error {
	m, err := n.manager(ctx)
	if err != nil {
		return err
	}
	n.mu.Lock()
	cp := n.open
	if cp == nil {
		n.mu.Unlock()
		return do(m, nil)
	}
	if !slices.Contains(cp.record.Names, name) {
		cp.record.Names = append(cp.record.Names, name)
	}
	r := cp.record
	n.mu.Unlock()
	if err := writeRecord(r); err != nil {
		return err
	}
	if err := m.extend(ctx, r, cp.window+takes+windowMargin); err != nil {
		return err
	}
	err = do(m, &r)
	n.mu.Lock()
	cp.record.Devices = r.Devices // also of what failed half-way: it is taken back
	n.mu.Unlock()
	if err != nil {
		return err
	}
	return m.extend(ctx, r, cp.window+windowMargin)
}
