package memory_test

import (
	"net/netip"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/conform"
	"github.com/continuo-fleet/continuo/topology/memory"
)

type netHands struct{ d *memory.Device }

func (h netHands) DropAddresses(iface string) error { h.d.DropAddresses(iface); return nil }
func (h netHands) DropRoute(iface string, to netip.Prefix) error {
	h.d.DropRoute(iface, to)
	return nil
}
func (h netHands) Forget() error { h.d.RestartNetwork(); return nil }

func TestConformNetwork(t *testing.T) {
	conform.Network(t, func(*testing.T) *conform.NetworkBench {
		d := memory.New()
		return &conform.NetworkBench{
			Network: d.Network(), Interface: "eth0", Address: netip.MustParsePrefix("192.0.2.10/24"), Another: netip.MustParsePrefix("192.0.2.11/24"),
			Hands: netHands{d}, Again: func() (topology.Network, topology.Recoverer) { return d.Network(), d },
		}
	})
}
