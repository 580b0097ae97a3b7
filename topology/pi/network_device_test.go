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

// networkdAdmin is somebody with a terminal who knows systemd-networkd.
type networkdAdmin struct{ netAdmin }

func (networkdAdmin) Forget() error {
	if err := systemctl("stop", "systemd-networkd.socket", "systemd-networkd"); err != nil {
		return err
	}
	if err := systemctl("stop", networkdTimers+"*.timer"); err != nil {
		return err
	}
	for _, p := range []string{"/run/systemd/network", "/run/systemd/netif", "/run/continuo"} {
		if err := os.RemoveAll(p); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"address", "flush", "dev", testLink}, {"link", "set", testLink, "down"}} {
		if _, err := do("ip", args...); err != nil {
			return err
		}
	}
	return systemctl("start", "systemd-networkd")
}

func TestConformNetworkd(t *testing.T) {
	address, another := testNet(t)
	for _, args := range [][]string{{"stop", "NetworkManager"}, {"start", "systemd-networkd"}} {
		if err := systemctl(args...); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = systemctl("stop", "systemd-networkd.socket", "systemd-networkd")
		if err := systemctl("start", "NetworkManager"); err != nil {
			t.Error(err)
		}
	})
	conform.Network(t, func(t *testing.T) *conform.NetworkBench {
		d, next := device(t), device(t)
		return &conform.NetworkBench{
			Network: d.Network(), Interface: testLink, Address: address, Another: another, Hands: networkdAdmin{},
			Again: func() (topology.Network, topology.Recoverer) { return next.Network(), next },
		}
	})
	t.Run("what it cannot do", func(t *testing.T) {
		for _, typ := range []topology.ConnectionType{topology.ConnectionWifi, topology.ConnectionVLAN} {
			_, err := device(t).Network().Connection(t.Context(), topology.ConnectionConfig{Name: "x", Type: typ})
			wantCode(t, err, topology.CodeUnavailable, "NetworkManager")
		}
	})
}
