package conform

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// A NetworkBench is a wired interface to test, with a cable and a router's DHCP behind it. No
// test needs it for itself.
type NetworkBench struct {
	Network   topology.Network
	Interface string
	// Address and Another are free there.
	Address, Another netip.Prefix
	// Again is the network as the next process sees it, after this one was killed.
	Again func() (topology.Network, topology.Recoverer)
	Hands NetworkHands
}

// NetworkHands are somebody with a terminal.
type NetworkHands interface {
	// DropAddresses takes the addresses of an interface away.
	DropAddresses(iface string) error
	// DropRoute takes a route over an interface away.
	DropRoute(iface string, to netip.Prefix) error
	// Forget restarts the device, as far as its network goes.
	Forget() error
}

// Network is the suite of a network.
func Network(t *testing.T, bench func(*testing.T) *NetworkBench) { suite(t, bench, networkTests) }

const netWindow = 2 * time.Second

// wired is a connection of the bench with a fixed address.
func (b *NetworkBench) wired(t *testing.T, name string, address netip.Prefix) topology.ConnectionConfig {
	after(t, func(ctx context.Context) {
		if err := b.Network.RemoveConnection(ctx, name); err != nil {
			t.Errorf("cannot remove %q: %v", name, err)
		}
	})
	return topology.ConnectionConfig{
		Name: name, Type: topology.ConnectionEthernet, Interface: b.Interface, Priority: 10,
		IPv4: topology.IPConfig{Method: "static", Addresses: []netip.Prefix{address}}, IPv6: topology.IPConfig{Method: "disabled"},
	}
}

func (b *NetworkBench) state(t *testing.T, c topology.ConnectionConfig) topology.ConnectionState {
	t.Helper()
	st, err := b.Network.Connection(t.Context(), c)
	ok(t, err)
	return st
}

// is wants a connection to be there, in force and durable.
func (b *NetworkBench) is(t *testing.T, c topology.ConnectionConfig, m topology.Mark) {
	t.Helper()
	st := b.state(t, c)
	if !st.Present || st.Link != topology.LinkUp || !st.Durable || st.Mark != m || st.Device != b.Interface || st.Other != "" {
		t.Fatalf("got %+v", st)
	}
	equal(t, "IPv4", st.Config.IPv4.String(), c.IPv4.String())
	equal(t, "IPv6", st.Config.IPv6.String(), c.IPv6.String())
	equal(t, "interface", st.Config.Interface, c.Interface)
	equal(t, "priority", st.Config.Priority, c.Priority)
	equal(t, "MTU", st.Config.MTU, c.MTU)
	for _, a := range c.IPv4.Addresses {
		if !slices.Contains(st.Addresses, a) {
			t.Errorf("%s has %v and not %s", b.Interface, st.Addresses, a)
		}
	}
}

func (b *NetworkBench) isAbsent(t *testing.T, c topology.ConnectionConfig) {
	t.Helper()
	eventually(t, "the connection's absence", func(ctx context.Context) (topology.ConnectionState, error) { return b.Network.Connection(ctx, c) },
		func(st topology.ConnectionState) bool {
			return !st.Present && st.Mark == "" && st.Device == b.Interface && st.Link == topology.LinkDown && len(c.IPv4.Addresses) == 1 && !slices.Contains(st.Addresses, c.IPv4.Addresses[0])
		})
}

func (b *NetworkBench) checkpoint(t *testing.T) topology.Checkpoint {
	t.Helper()
	cp, err := b.Network.Checkpoint(t.Context(), netWindow)
	ok(t, err)
	return cp
}

// next goes on as the process after the one that made the checkpoint.
func (b *NetworkBench) next() (topology.Network, topology.Recoverer) {
	again, r := b.Again()
	b.Network = again
	return again, r
}

var networkTests = []test[*NetworkBench]{
	{"life", func(t *testing.T, b *NetworkBench) { // cases 98, 99
		c := b.wired(t, "ct-life", b.Address)
		b.isAbsent(t, c)
		ok(t, b.Network.RemoveConnection(t.Context(), c.Name))
		for range 2 {
			ok(t, b.Network.SetConnection(t.Context(), c, "kiosk/net"))
			b.is(t, c, "kiosk/net")
		}
		gateway := b.Another.Addr()
		c.IPv4.Routes = []topology.Route{{To: netip.MustParsePrefix("198.51.100.0/24"), Via: gateway, Metric: 77}}
		c.IPv4.DNS, c.IPv4.Search, c.IPv4.Metric, c.Priority = []netip.Addr{gateway}, []string{"example.org"}, 60, -3
		c.IPv4.Gateway, c.IPv6.Method = gateway, "link-local"
		ok(t, b.Network.SetConnection(t.Context(), c, "kiosk/other"))
		b.is(t, c, "kiosk/other")
		st := b.state(t, c)
		for _, r := range []topology.Route{c.IPv4.Routes[0], {To: netip.MustParsePrefix("0.0.0.0/0"), Via: gateway, Metric: 60}} {
			if !slices.Contains(st.Routes, r) {
				t.Errorf("routes are %v, without %v", st.Routes, r)
			}
		}
		ok(t, b.Network.RemoveConnection(t.Context(), c.Name))
		b.isAbsent(t, c)
	}},
	{"from the network", func(t *testing.T, b *NetworkBench) {
		c := b.wired(t, "ct-auto", b.Address)
		c.IPv4, c.MTU = topology.IPConfig{Method: "auto"}, 1400
		ok(t, b.Network.SetConnection(t.Context(), c, "kiosk/net"))
		b.is(t, c, "kiosk/net")
		if st := b.state(t, c); len(st.Addresses) == 0 {
			t.Error("it has no address")
		}
	}},
	{"version 6", func(t *testing.T, b *NetworkBench) {
		c := b.wired(t, "ct-six", b.Address)
		c.IPv4 = topology.IPConfig{Method: "disabled"}
		c.IPv6 = topology.IPConfig{
			Method: "static", Addresses: []netip.Prefix{netip.MustParsePrefix("2001:db8::10/64")}, Gateway: netip.MustParseAddr("2001:db8::1"),
			DNS: []netip.Addr{netip.MustParseAddr("2001:db8::53")}, Metric: 70,
			Routes: []topology.Route{{To: netip.MustParsePrefix("2001:db8:1::/48"), Via: netip.MustParseAddr("fe80::2"), Metric: 71}},
		}
		for range 2 {
			ok(t, b.Network.SetConnection(t.Context(), c, "kiosk/net"))
			b.is(t, c, "kiosk/net")
			if st := b.state(t, c); len(c.Missing(st.Addresses, st.Routes)) > 0 {
				t.Errorf("there is no %v among %v and %v", c.Missing(st.Addresses, st.Routes), st.Addresses, st.Routes)
			}
		}
	}},
	{"names", func(t *testing.T, b *NetworkBench) { // cases 101
		for _, name := range []string{"Wired connection 1", "aa:bb:cc:dd:ee:ff", "Caf\u00e9 \u2615", "../../etc/x", "a/b;c='d'"} {
			c := b.wired(t, name, b.Address)
			ok(t, b.Network.SetConnection(t.Context(), c, "kiosk/net"))
			b.is(t, c, "kiosk/net")
			ok(t, b.Network.RemoveConnection(t.Context(), c.Name))
			b.isAbsent(t, c)
		}
	}},
	{"address taken away by hand", func(t *testing.T, b *NetworkBench) {
		c := b.wired(t, "ct-drop", b.Address)
		ok(t, b.Network.SetConnection(t.Context(), c, "kiosk/net"))
		hands(t, b.Hands.DropAddresses(b.Interface))
		if st := b.state(t, c); slices.Contains(st.Addresses, b.Address) {
			t.Fatalf("it has %v", st.Addresses)
		}
		ok(t, b.Network.SetConnection(t.Context(), c, "kiosk/net"))
		b.is(t, c, "kiosk/net")
	}},
	{"route taken away by hand", func(t *testing.T, b *NetworkBench) {
		c := b.wired(t, "ct-route", b.Address)
		c.IPv4.Routes = []topology.Route{{To: netip.MustParsePrefix("198.51.100.0/24"), Via: b.Another.Addr()}}
		ok(t, b.Network.SetConnection(t.Context(), c, "kiosk/net"))
		hands(t, b.Hands.DropRoute(b.Interface, c.IPv4.Routes[0].To))
		if st := b.state(t, c); len(c.Missing(st.Addresses, st.Routes)) != 1 {
			t.Fatalf("it has %v", st.Routes)
		}
		ok(t, b.Network.SetConnection(t.Context(), c, "kiosk/net"))
		if st := b.state(t, c); len(c.Missing(st.Addresses, st.Routes)) != 0 {
			t.Errorf("it has %v", st.Routes)
		}
	}},
	{"no such interface", func(t *testing.T, b *NetworkBench) {
		c := b.wired(t, "ct-none", b.Address)
		c.Interface = "ct-nosuch0"
		ok(t, b.Network.SetConnection(t.Context(), c, "kiosk/net"))
		if st := b.state(t, c); !st.Present || !st.Durable || st.Link != topology.LinkUnavailable || st.Reason == "" {
			t.Errorf("got %+v", st)
		}
	}},
	{"committed", func(t *testing.T, b *NetworkBench) {
		c := b.wired(t, "ct-commit", b.Address)
		cp := b.checkpoint(t)
		ok(t, b.Network.SetConnection(t.Context(), c, "kiosk/net"))
		b.is(t, c, "kiosk/net")
		ok(t, cp.Commit(t.Context()))
		b.is(t, c, "kiosk/net")
		hands(t, b.Hands.Forget())
		eventually(t, "the connection after a restart", func(ctx context.Context) (topology.ConnectionState, error) { return b.Network.Connection(ctx, c) },
			func(st topology.ConnectionState) bool { return st.Link == topology.LinkUp && st.Durable })

		cp = b.checkpoint(t)
		ok(t, b.Network.RemoveConnection(t.Context(), c.Name))
		b.isAbsent(t, c)
		ok(t, cp.Commit(t.Context()))
		b.isAbsent(t, c)
		hands(t, b.Hands.Forget())
		b.isAbsent(t, c)
	}},
	{"rolled back", func(t *testing.T, b *NetworkBench) { // cases 104
		b.takenBack(t, func(cp topology.Checkpoint) { ok(t, cp.Rollback(t.Context())) })
	}},
	{"rolled back by itself", func(t *testing.T, b *NetworkBench) { // cases 104
		b.takenBack(t, func(cp topology.Checkpoint) {
			first := topology.ConnectionConfig{Name: "ct-new", Type: topology.ConnectionEthernet, Interface: b.Interface}
			eventually(t, "the end of the window", func(ctx context.Context) (topology.ConnectionState, error) { return b.Network.Connection(ctx, first) },
				func(st topology.ConnectionState) bool { return !st.Present })
			fails(t, cp.Commit(t.Context()), topology.CodeConnectivity)
			ok(t, cp.Rollback(t.Context()))
		})
	}},
	{"rolled back by the next process", func(t *testing.T, b *NetworkBench) { // cases 104
		b.takenBack(t, func(topology.Checkpoint) {
			again, r := b.next()
			of, err := r.Recover(t.Context())
			ok(t, err)
			if len(of) == 0 {
				t.Error("it says nothing of what it took back")
			}
			of, err = r.Recover(t.Context())
			ok(t, err)
			if len(of) > 0 {
				t.Errorf("and again: %v", of)
			}
			cp, err := again.Checkpoint(t.Context(), netWindow)
			ok(t, err)
			ok(t, cp.Rollback(t.Context()))
		})
	}},
	{"restart of the device in the window", func(t *testing.T, b *NetworkBench) { // cases 104
		b.takenBack(t, func(topology.Checkpoint) {
			hands(t, b.Hands.Forget())
			b.next()
		})
	}},
	{"one at a time", func(t *testing.T, b *NetworkBench) {
		cp := b.checkpoint(t)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := b.Network.Checkpoint(ctx, netWindow)
		fails(t, err, topology.CodeTimeout)
		done := make(chan error)
		go func() {
			next, err := b.Network.Checkpoint(t.Context(), netWindow)
			if err == nil {
				err = next.Rollback(t.Context())
			}
			done <- err
		}()
		ok(t, cp.Rollback(t.Context()))
		ok(t, <-done)
	}},
	{"canceled", func(t *testing.T, b *NetworkBench) {
		c := b.wired(t, "ct-cancel", b.Address)
		_, err := b.Network.Connection(canceled(t), c)
		fails(t, err, topology.CodeCanceled)
		fails(t, b.Network.SetConnection(canceled(t), c, "kiosk/net"), topology.CodeCanceled)
		_, err = b.Network.Checkpoint(canceled(t), netWindow)
		fails(t, err, topology.CodeCanceled)
		b.isAbsent(t, c)
	}},
}

// takenBack changes a connection, makes a new one and removes a third, and wants end to bring
// back what was there.
func (b *NetworkBench) takenBack(t *testing.T, end func(topology.Checkpoint)) {
	old := b.wired(t, "ct-old", b.Address)
	ok(t, b.Network.SetConnection(t.Context(), old, "kiosk/net"))
	spare := old
	spare.Name, spare.Interface = "ct-spare", "ct-nosuch0"
	after(t, func(ctx context.Context) { _ = b.Network.RemoveConnection(ctx, spare.Name) })
	ok(t, b.Network.SetConnection(t.Context(), spare, "kiosk/spare"))

	cp := b.checkpoint(t)
	changed := old
	changed.IPv4.Addresses = []netip.Prefix{b.Another}
	ok(t, b.Network.SetConnection(t.Context(), changed, "kiosk/changed"))
	b.is(t, changed, "kiosk/changed")
	fresh := b.wired(t, "ct-new", b.Another)
	ok(t, b.Network.SetConnection(t.Context(), fresh, "kiosk/new"))
	b.is(t, fresh, "kiosk/new")
	ok(t, b.Network.RemoveConnection(t.Context(), spare.Name))
	if st := b.state(t, spare); st.Present {
		t.Errorf("removed, and there: %+v", st)
	}

	end(cp)
	eventually(t, "what was there before", func(ctx context.Context) (topology.ConnectionState, error) { return b.Network.Connection(ctx, old) },
		func(st topology.ConnectionState) bool { return st.Link == topology.LinkUp && st.Durable })
	b.is(t, old, "kiosk/net")
	if st := b.state(t, fresh); st.Present {
		t.Errorf("it is still there: %+v", st)
	}
	if st := b.state(t, spare); !st.Present || st.Mark != "kiosk/spare" {
		t.Errorf("what was removed did not come back: %+v", st)
	}
}
