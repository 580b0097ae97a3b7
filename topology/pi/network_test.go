package pi

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// full is a connection with everything that a type can have.
func full(typ topology.ConnectionType) topology.ConnectionConfig {
	c := topology.ConnectionConfig{
		Name: "Wired ☎: 1", Type: typ, Interface: "eth0", MAC: "02:00:5e:10:00:01", MTU: 1400, Priority: -7,
		IPv4: topology.IPConfig{
			Method: "static", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.10/24"), netip.MustParsePrefix("192.0.2.11/25")},
			Gateway: netip.MustParseAddr("192.0.2.1"), DNS: []netip.Addr{netip.MustParseAddr("192.0.2.53")}, Search: []string{"example.org", "~."},
			Routes: []topology.Route{{To: netip.MustParsePrefix("198.51.100.0/24"), Via: netip.MustParseAddr("192.0.2.2"), Metric: 77}, {To: netip.MustParsePrefix("203.0.113.0/24")}},
			Metric: 50,
		},
		IPv6: topology.IPConfig{Method: "auto", DNS: []netip.Addr{netip.MustParseAddr("2001:db8::53")}},
	}
	switch typ {
	case topology.ConnectionVLAN:
		c.MAC, c.VLANID, c.Parent, c.Interface = "", 7, "eth0", "eth0.7"
	case topology.ConnectionWifi:
		c.SSID, c.Security, c.Hidden, c.Band = "\xff\x00 raw", "sae", true, "5GHz"
	}
	return c
}

// What is written as a profile of NetworkManager is read back as the same (cases 98, 101), and so is a .network file.
func TestConnectionsAreReadBack(t *testing.T) {
	for _, typ := range []topology.ConnectionType{topology.ConnectionEthernet, topology.ConnectionVLAN, topology.ConnectionWifi} {
		for _, c := range []topology.ConnectionConfig{full(typ), {Name: "x", Type: typ, Security: map[bool]string{true: "open"}[typ == topology.ConnectionWifi], IPv4: topology.IPConfig{Method: "link-local"}, IPv6: topology.IPConfig{Method: "disabled"}}} {
			for _, removed := range []bool{false, true} {
				got, mark, gone := nmRead(nmOf(c, "kiosk/net", removed))
				if !reflect.DeepEqual(got, c) || mark != "kiosk/net" || gone != removed {
					t.Errorf("%s: got  %+v %s %v\nwant %+v", typ, got, mark, gone, c)
				}
				f := networkdParse(networkdContent{Config: c, Mark: "kiosk/net", Removed: removed}.render())
				if fmt.Sprint(f.Config) != fmt.Sprint(c) && typ != topology.ConnectionWifi || f.Mark != "kiosk/net" || f.Removed != removed {
					t.Errorf("%s: got  %+v\nwant %+v", typ, f, c)
				}
			}
		}
	}
	edited := strings.Replace(string(networkdContent{Config: full(topology.ConnectionEthernet)}.render()), "192.0.2.1\n", "192.0.2.2\n", 1)
	if f := networkdParse([]byte(edited)); f.Config.IPv4.String() != "edited by hand" {
		t.Errorf("a file that was edited is read as %s", f.Config.IPv4)
	}
}

// The UUID of a connection is its name's, for all time: another one would make a second profile.
func TestConnectionUUID(t *testing.T) {
	for name, want := range map[string]string{"ct-old": "f20c919d-1349-5f71-a100-0e7cdeede2a8", "uplink ☎": "d21c67b0-717c-5e4b-836d-a5cb0314f2c6"} {
		if got := nmUUID(name); got != want {
			t.Errorf("%s has %s, want %s", name, got, want)
		}
	}
}

func TestPasswordIsNotPrinted(t *testing.T) {
	c := full(topology.ConnectionWifi)
	c.Password = topology.SecretValue("canary-3f9a61c2")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if got := fmt.Sprintf(verb, c); strings.Contains(got, "canary") || strings.Contains(got, fmt.Sprintf("%x", "canary")) {
			t.Errorf("%s prints it: %s", verb, got)
		}
	}
	if got := networkdContent(networkdContent{Config: c}).render(); strings.Contains(string(got), "canary") {
		t.Errorf("a file has it: %s", got)
	}
}

const (
	routeTable = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	100	00000000	0	0	0
eth0	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
wlan0	006433C6	020200C0	0003	0	0	77	00FFFFFF	0	0	0
eth0	nonsense	00000000	0001	0	0	0	00FFFFFF	0	0	0
eth0
`
	routeTable6 = `20010db8000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0
20010db8000000000000000000000010 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000002 00000000 80200001     eth0
ff000000000000000000000000000000 08 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
zz                               00
`
)

func TestRoutesOfTheKernel(t *testing.T) {
	if got, want := fmt.Sprint(routes4(strings.NewReader(routeTable), "eth0")), "[0.0.0.0/0 via 192.0.2.1 metric 100 192.0.2.0/24]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(routes6(strings.NewReader(routeTable6), "eth0")), "[2001:db8::/64 metric 256 ::/0 via fe80::1 metric 1024]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzRoutes(f *testing.F) {
	f.Add(routeTable)
	f.Add(routeTable6)
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range append(routes4(strings.NewReader(text), "eth0"), routes6(strings.NewReader(text), "eth0")...) {
			if !r.To.IsValid() {
				t.Errorf("a route to nowhere: %v", r)
			}
		}
	})
}

func FuzzNetworkFile(f *testing.F) {
	f.Add(networkdContent{Config: full(topology.ConnectionEthernet), Mark: "a/b"}.render())
	f.Add([]byte("# \n# continuo: {}\n"))
	f.Fuzz(func(t *testing.T, text []byte) { _ = networkdParse(text).Config.IPv4.String() })
}

// A profile of any types and values is read, as far as it is one.
func FuzzProfile(f *testing.F) {
	f.Add("connection", "id", "x", int64(3), []byte("y"))
	f.Add("ipv4", "address-data", "192.0.2.1", int64(24), []byte(nil))
	f.Add("802-11-wireless", "ssid", "x", int64(-1), []byte("\xff"))
	f.Fuzz(func(t *testing.T, setting, key, text string, number int64, data []byte) {
		s := nmOf(full(topology.ConnectionWifi), "m", false)
		for _, v := range []any{
			text, number, uint32(number), data, []string{text}, map[string]string{key: text},
			[]map[string]dbus.Variant{{"address": dbus.MakeVariant(text), "dest": dbus.MakeVariant(text), "prefix": dbus.MakeVariant(uint32(number)), key: dbus.MakeVariant(data)}},
		} {
			if s[setting] == nil {
				s[setting] = map[string]dbus.Variant{}
			}
			s[setting][key] = dbus.MakeVariant(v)
			c, _, _ := nmRead(s)
			_ = c.IPv4.String() + c.IPv6.String()
		}
	})
}

// The kernel answers what a family of generic netlink is called, and says which it does not have.
func TestGenericNetlink(t *testing.T) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_GENERIC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if id, err := genericFamily(fd, "nlctrl"); err != nil || id != unix.GENL_ID_CTRL {
		t.Errorf("got %d, %v", id, err)
	}
	if _, err := genericFamily(fd, "ct-nosuch"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("got %v", err)
	}
}

func FuzzFamilyID(f *testing.F) {
	f.Add([]byte{6, 0, 1, 0, 16, 0, 0, 0})
	f.Fuzz(func(t *testing.T, answer []byte) { _, _ = familyID(answer) })
}
