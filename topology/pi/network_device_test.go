//go:build device

package pi

import (
	"net/netip"
	"os"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/conform"
)

// testLink is an interface of the box that no test needs for itself.
const testLink = "eth1"

// netAdmin is somebody with a terminal who knows NetworkManager.
type netAdmin struct{}

func (netAdmin) DropAddresses(iface string) error {
	_, err := do("ip", "-4", "address", "flush", "dev", iface)
	return err
}

// Forget does what a restart of the device does to its network: what is below /run is gone.
func (netAdmin) Forget() error {
	if _, err := do("systemctl", "kill", "--signal=KILL", "NetworkManager"); err != nil {
		return err
	}
	for _, p := range []string{"/run/NetworkManager/system-connections", "/run/NetworkManager/devices", "/run/continuo"} {
		if err := os.RemoveAll(p); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"address", "flush", "dev", testLink}, {"link", "set", testLink, "down"}} {
		if _, err := do("ip", args...); err != nil {
			return err
		}
	}
	return systemctl("restart", "NetworkManager")
}

// testNet is the second network of the box.
func testNet(t *testing.T) (address, another netip.Prefix) {
	t.Helper()
	if os.Getenv("CONTINUO_IN_BOX") != "1" {
		t.Fatal("this test runs in a box only: it changes the network of the machine")
	}
	return netip.MustParsePrefix("192.0.2.10/24"), netip.MustParsePrefix("192.0.2.11/24")
}

func TestConformNetworkManager(t *testing.T) {
	address, another := testNet(t)
	conform.Network(t, func(t *testing.T) *conform.NetworkBench {
		d, next := device(t), device(t)
		return &conform.NetworkBench{
			Network: d.Network(), Interface: testLink, Address: address, Another: another, Hands: netAdmin{},
			Again: func() (topology.Network, topology.Recoverer) { return next.Network(), next },
		}
	})
}
