//go:build device

package pi

import (
	"context"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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

func (netAdmin) DropRoute(iface string, to netip.Prefix) error {
	_, err := do("ip", "route", "delete", to.String(), "dev", iface)
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

// What somebody else does to a connection is told, and what a look costs is said.
func TestConnectionIsWatched(t *testing.T) {
	address, _ := testNet(t)
	d := device(t)
	c := topology.ConnectionConfig{
		Name: "ct watched", Type: topology.ConnectionEthernet, Interface: testLink,
		IPv4: topology.IPConfig{Method: "static", Addresses: []netip.Prefix{address}}, IPv6: topology.IPConfig{Method: "disabled"},
	}
	t.Cleanup(func() {
		if err := d.Network().RemoveConnection(context.WithoutCancel(t.Context()), c.Name); err != nil {
			t.Error(err)
		}
	})
	if err := d.Network().SetConnection(t.Context(), c, "kiosk/net"); err != nil {
		t.Fatal(err)
	}
	told := make(chan topology.Resource, 100)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		_ = d.Events().Watch(ctx, []topology.Resource{"connection:ct watched"}, func(r topology.Resource) { told <- r })
	}()
	if first := <-told; first != "" {
		t.Fatalf("told of %q first", first)
	}
	for _, by := range [][]string{
		{"connection", "down", c.Name}, {"connection", "modify", c.Name, "ipv4.route-metric", "77"}, {"connection", "up", c.Name}, {"connection", "delete", c.Name},
	} {
		drain(told)
		if _, err := do("nmcli", by...); err != nil {
			t.Fatal(err)
		}
		select {
		case r := <-told:
			if r != "connection:ct watched" && r != "" {
				t.Errorf("%v: told of %q", by, r)
			}
		case <-ctx.Done():
			t.Fatalf("%v: told of nothing", by)
		}
	}

	if err := d.Network().SetConnection(t.Context(), c, "kiosk/net"); err != nil {
		t.Fatal(err)
	}
	const looks = 200
	start := time.Now()
	for range looks {
		if st, err := d.Network().Connection(t.Context(), c); err != nil || st.Link != topology.LinkUp {
			t.Fatalf("%+v, %v", st, err)
		}
	}
	t.Logf("number: a look at a connection takes %s", (time.Since(start) / looks).Round(time.Microsecond))
}

// drain takes what was told and waits until nothing more comes.
func drain(told <-chan topology.Resource) {
	for {
		select {
		case <-told:
		case <-time.After(500 * time.Millisecond):
			return
		}
	}
}

// A password comes from NetworkManager as it was given to it, and its file is nobody else's (cases 101, 103). A box has no
// radio: such a connection waits for one.
func TestWifiProfile(t *testing.T) {
	testNet(t)
	d := device(t)
	c := topology.ConnectionConfig{
		Name: "Wi-Fi ☕ 5", Type: topology.ConnectionWifi, SSID: "\xff\x00 raw", Security: "wpa-psk", Password: topology.SecretValue("canary-3f9a61c2"),
		Hidden: true, Band: "5GHz", Country: "DE", IPv4: topology.IPConfig{Method: "auto"}, IPv6: topology.IPConfig{Method: "disabled"},
	}
	t.Cleanup(func() {
		if err := d.Network().RemoveConnection(context.WithoutCancel(t.Context()), c.Name); err != nil {
			t.Error(err)
		}
		_ = os.Remove(countryFile)
	})
	for range 2 {
		if err := d.Network().SetConnection(t.Context(), c, "kiosk/wifi"); err != nil {
			t.Fatal(err)
		}
		st, err := d.Network().Connection(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		got, want := st.Config, c
		if string(got.Password) != string(c.Password) {
			t.Error("the password is another one")
		}
		if !reflect.DeepEqual(got, want) || !st.Present || !st.Durable || st.Mark != "kiosk/wifi" || st.Link != topology.LinkUnavailable || st.Reason == "" {
			t.Errorf("got  %+v\nwant %+v", st, want)
		}
	}
	if got := sh(t, `stat -c '%a %U' /etc/NetworkManager/system-connections/Wi-Fi*`); got != "600 root" {
		t.Errorf("the file of the profile is %s", got)
	}
	if got := sh(t, "cat "+countryFile); !strings.Contains(got, "options cfg80211 ieee80211_regdom=DE") {
		t.Errorf("the country is %q", got)
	}
}

// A NetworkManager that was restarted in the window has forgotten its checkpoint and reads what is in /run again. What was
// there before comes back all the same (cases 104).
func TestNetworkManagerRestartedInTheWindow(t *testing.T) {
	address, another := testNet(t)
	d := device(t)
	old := topology.ConnectionConfig{
		Name: "ct restarted", Type: topology.ConnectionEthernet, Interface: testLink,
		IPv4: topology.IPConfig{Method: "static", Addresses: []netip.Prefix{address}}, IPv6: topology.IPConfig{Method: "disabled"},
	}
	fresh := old
	fresh.Name = "ct fresh"
	t.Cleanup(func() {
		for _, name := range []string{old.Name, fresh.Name} {
			if err := d.Network().RemoveConnection(context.WithoutCancel(t.Context()), name); err != nil {
				t.Error(err)
			}
		}
	})
	if err := d.Network().SetConnection(t.Context(), old, "kiosk/net"); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"commit", "change"} {
		cp, err := d.Network().Checkpoint(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		changed := old
		changed.IPv4.Addresses = []netip.Prefix{another}
		for _, c := range []topology.ConnectionConfig{changed, fresh} {
			if err := d.Network().SetConnection(t.Context(), c, "kiosk/changed"); err != nil {
				t.Fatal(err)
			}
		}
		sh(t, "systemctl restart NetworkManager")
		if end == "commit" {
			wantCode(t, cp.Commit(t.Context()), topology.CodeConnectivity)
		} else {
			wantCode(t, d.Network().SetConnection(t.Context(), changed, "kiosk/changed"), topology.CodeTimeout, "gone")
		}
		if err := cp.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		st, err := d.Network().Connection(t.Context(), old)
		if err != nil || st.Link != topology.LinkUp || !st.Durable || st.Mark != "kiosk/net" || !slices.Contains(st.Addresses, address) {
			t.Errorf("after %s: %+v, %v", end, st, err)
		}
		if st, err := d.Network().Connection(t.Context(), fresh); err != nil || st.Present {
			t.Errorf("after %s: the new one is there: %+v, %v", end, st, err)
		}
	}
}
