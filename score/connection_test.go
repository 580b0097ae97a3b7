package score_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

func init() {
	maps.Copy(freeText, map[string]string{
		"ethernet.interface": "a name, of a shape that Check holds",
		"ethernet.name":      "a name for people; nobody reads more into it",
		"wifi.country":       "two letters, of a shape that Check holds",
		"wifi.interface":     "a name, of a shape that Check holds",
		"wifi.name":          "a name for people; nobody reads more into it",
	})
}

// What no device could have is refused, at its field, with a sentence (cases 101, 105).
func TestCheckConnection(t *testing.T) {
	eth := func(change func(*score.Ethernet)) score.Spec {
		e := score.Ethernet{Name: "uplink", Interface: "eth0", IPv4: &score.IPConfig{
			Method: score.MethodStatic, Addresses: []score.CIDR{"192.0.2.10/24"}, Gateway: "192.0.2.1",
		}}
		change(&e)
		return e
	}
	wifi := func(change func(*score.Wifi)) score.Spec {
		w := score.Wifi{Name: "workshop", SSID: "Workshop", Security: score.SecurityPSK, Password: score.SecretRef{Secret: "psk"}, Country: "DE"}
		change(&w)
		return w
	}
	tests := []struct {
		name string
		spec score.Spec
		want string // "" is good
	}{
		{"right", eth(func(*score.Ethernet) {}), ""},
		{"from the network", eth(func(e *score.Ethernet) { e.IPv4 = nil }), ""},
		{"by its hardware address", eth(func(e *score.Ethernet) { e.Interface, e.MAC = "", "02:00:5E:10:00:01" }), ""},
		{"name with spaces and colons", eth(func(e *score.Ethernet) { e.Name = "Wired connection 1: aa:bb ☎" }), ""},
		{"gone needs a name only", score.Ethernet{Name: "uplink", State: score.Absent}, ""},
		{"no name", eth(func(e *score.Ethernet) { e.Name = "" }), `/name: name "" must be 1 to 100 bytes`},
		{"line break in the name", eth(func(e *score.Ethernet) { e.Name = "a\nb" }), "/name: "},
		{"no interface", eth(func(e *score.Ethernet) { e.Interface = "" }), "/interface: give the interface, or the mac"},
		{"interface with a slash", eth(func(e *score.Ethernet) { e.Interface = "a/b" }), `/interface: interface "a/b" must be`},
		{"long interface", eth(func(e *score.Ethernet) { e.Interface = "abcdefghijklmnop" }), "at most 15"},
		{"loopback", eth(func(e *score.Ethernet) { e.Interface = "lo" }), "the kernel's own"},
		{"hardware address", eth(func(e *score.Ethernet) { e.MAC = "02:00" }), "/mac: cannot read hardware address"},
		{"small MTU", eth(func(e *score.Ethernet) { e.MTU = 500 }), "/mtu: mtu is 500: want 576 to 9216"},
		{"priority", eth(func(e *score.Ethernet) { e.Priority = 1000 }), "/priority: priority is 1000"},
		{"state", eth(func(e *score.Ethernet) { e.State = "gone" }), "/state: unknown state"},
		{"confirm", eth(func(e *score.Ethernet) { e.Confirm = &score.Confirm{Connect: "nowhere"} }), "/confirm/connect: "},
		{"confirm with itself", eth(func(e *score.Ethernet) { e.Confirm = &score.Confirm{Connect: "127.0.0.1:22"} }), "/confirm/connect: connect is 127.0.0.1:22, the device itself"},
		{"confirm with itself by name", eth(func(e *score.Ethernet) { e.Confirm = &score.Confirm{Connect: "LocalHost:22"} }), "the device itself"},
		{"confirm with itself, IPv6", eth(func(e *score.Ethernet) { e.Confirm = &score.Confirm{Connect: "[::1]:22"} }), "the device itself"},
		{"confirm with any address", eth(func(e *score.Ethernet) { e.Confirm = &score.Confirm{Connect: "0.0.0.0:22"} }), "the device itself"},
		{"confirm with an address of its own", eth(func(e *score.Ethernet) { e.Confirm = &score.Confirm{Connect: "192.0.2.10:22"} }), "the device itself"},
		{"confirm by name", eth(func(e *score.Ethernet) { e.Confirm = &score.Confirm{Connect: "router.example.org:22"} }), ""},
		{"VLAN", eth(func(e *score.Ethernet) { e.Interface, e.VLAN = "eth0.7", &score.VLAN{ID: 7, Parent: "eth0"} }), ""},
		{"VLAN out of range", eth(func(e *score.Ethernet) { e.Interface, e.VLAN = "eth0.7", &score.VLAN{ID: 4095, Parent: "eth0"} }), "/vlan/id: vlan id is 4095"},
		{"VLAN on itself", eth(func(e *score.Ethernet) { e.VLAN = &score.VLAN{ID: 7, Parent: "eth0"} }), "/vlan/parent: the VLAN and its parent have one name"},
		{"VLAN by hardware address", eth(func(e *score.Ethernet) {
			e.Interface, e.MAC, e.VLAN = "eth0.7", "02:00:5e:10:00:01", &score.VLAN{ID: 7, Parent: "eth0"}
		}), "/mac: a VLAN is found by its parent"},
		{"neither version", eth(func(e *score.Ethernet) {
			e.IPv4, e.IPv6 = &score.IPConfig{Method: score.MethodDisabled}, &score.IPConfig{Method: score.MethodDisabled}
		}), "/ipv6: a connection with neither version"},
		{"method", eth(func(e *score.Ethernet) { e.IPv4.Method = "dhcp" }), `/ipv4/method: unknown method "dhcp"`},
		{"address without prefix", eth(func(e *score.Ethernet) { e.IPv4.Addresses = []score.CIDR{"192.0.2.10"} }), `/ipv4/addresses/0: address "192.0.2.10" has no length of its network`},
		{"no address", eth(func(e *score.Ethernet) { e.IPv4.Addresses, e.IPv4.Gateway = nil, "" }), "/ipv4/addresses: method static needs an address"},
		{"address of the network", eth(func(e *score.Ethernet) { e.IPv4.Addresses = []score.CIDR{"192.0.2.0/24"} }), "that of the network itself"},
		{"address twice", eth(func(e *score.Ethernet) { e.IPv4.Addresses = []score.CIDR{"192.0.2.10/24", "192.0.2.10/25"} }), "/ipv4/addresses/1: address 192.0.2.10/25 is given twice"},
		{"address of the other version", eth(func(e *score.Ethernet) { e.IPv4.Addresses = []score.CIDR{"2001:db8::1/64"} }), "is not of IP version 4"},
		{"loopback address", eth(func(e *score.Ethernet) { e.IPv4.Addresses = []score.CIDR{"127.0.0.1/8"} }), "none that a device can have"},
		{"gateway elsewhere", eth(func(e *score.Ethernet) { e.IPv4.Gateway = "198.51.100.1" }), "/ipv4/gateway: gateway 198.51.100.1 is in the network of no address"},
		{"gateway is the device", eth(func(e *score.Ethernet) { e.IPv4.Gateway = "192.0.2.10" }), "is the device itself"},
		{"gateway of the other version", eth(func(e *score.Ethernet) { e.IPv4.Gateway = "2001:db8::1" }), "/ipv4/gateway: gateway 2001:db8::1 is not of IP version 4"},
		{"gateway without address", eth(func(e *score.Ethernet) { e.IPv4 = &score.IPConfig{Method: score.MethodAuto, Gateway: "192.0.2.1"} }), "a gateway needs an address beside it"},
		{"gateway of the link", eth(func(e *score.Ethernet) {
			e.IPv6 = &score.IPConfig{Method: score.MethodStatic, Addresses: []score.CIDR{"2001:db8::10/64"}, Gateway: "fe80::1"}
		}), ""},
		{"disabled with addresses", eth(func(e *score.Ethernet) { e.IPv4.Method = score.MethodDisabled }), "/ipv4/method: method disabled has no addresses"},
		{"DNS of the other version", eth(func(e *score.Ethernet) { e.IPv4.DNS = []score.IP{"2001:db8::53"} }), "/ipv4/dns/0: "},
		{"DNS twice", eth(func(e *score.Ethernet) { e.IPv4.DNS = []score.IP{"192.0.2.53", "192.0.2.53"} }), "/ipv4/dns/1: server 192.0.2.53 is given twice"},
		{"search twice", eth(func(e *score.Ethernet) { e.IPv4.Search = []string{"example.org", "example.org"} }), "/ipv4/search/1: domain example.org is given twice"},
		{"route twice", eth(func(e *score.Ethernet) {
			e.IPv4.Routes = []score.Route{{To: "198.51.100.0/24", Via: "192.0.2.2"}, {To: "198.51.100.0/24", Via: "192.0.2.3"}}
		}), "/ipv4/routes/1: there is another route"},
		{"disabled with a metric", eth(func(e *score.Ethernet) { e.IPv6 = &score.IPConfig{Method: score.MethodDisabled, Metric: 7} }), "/ipv6/method: method disabled"},
		{"search", eth(func(e *score.Ethernet) { e.IPv4.Search = []string{"example.org", "no domain"} }), "/ipv4/search/1: "},
		{"route with host bits", eth(func(e *score.Ethernet) { e.IPv4.Routes = []score.Route{{To: "198.51.100.7/24"}} }), "want 198.51.100.0/24"},
		{"default route", eth(func(e *score.Ethernet) { e.IPv4.Routes = []score.Route{{To: "0.0.0.0/0"}} }), "the default route is the gateway's"},
		{"metric", eth(func(e *score.Ethernet) { e.IPv4.Metric = 1<<32 - 1 }), "/ipv4/metric: "},
		{"too many", eth(func(e *score.Ethernet) { e.IPv4.DNS = make([]score.IP, 65) }), "a list of more than 64 entries"},

		{"wireless", wifi(func(*score.Wifi) {}), ""},
		{"wireless without a country", wifi(func(w *score.Wifi) { w.Country = "" }), "/country: country is \"\": want the two capital letters"},
		{"small country", wifi(func(w *score.Wifi) { w.Country = "de" }), "/country: "},
		{"no password", wifi(func(w *score.Wifi) { w.Password.Secret = "" }), "/password: security wpa-psk needs a password: name the secret"},
		{"password in clear", wifi(func(w *score.Wifi) { w.Password.Secret = "my pass!" }), "/password/secret: "},
		{"open with a password", wifi(func(w *score.Wifi) { w.Security = score.SecurityOpen }), "/password: an open network has no password"},
		{"security", wifi(func(w *score.Wifi) { w.Security = "wep" }), `/security: unknown security "wep"`},
		{"band", wifi(func(w *score.Wifi) { w.Band = "5Ghz" }), `/band: unknown band "5Ghz"`},
		{"long SSID", wifi(func(w *score.Wifi) { w.SSID = score.SSID(strings.Repeat("x", 33)) }), "/ssid: ssid has 33 bytes"},
		{"no SSID", wifi(func(w *score.Wifi) { w.SSID = "" }), "/ssid: ssid has 0 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := score.NewReport()
			tt.spec.Check(r)
			var said []string
			for _, p := range r.Problems() {
				said = append(said, p.Path+": "+p.Text)
			}
			got := strings.Join(said, "\n")
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Text that is no address is refused where it is read, with words; spellings of one thing are one value (cases 101).
func TestNetworkText(t *testing.T) {
	type all struct {
		C score.CIDR `json:"c,omitzero"`
		I score.IP   `json:"i,omitzero"`
		M score.MAC  `json:"m,omitzero"`
		S score.SSID `json:"s,omitzero"`
	}
	tests := []struct{ in, want string }{ // want: the text again, or an error
		{`{"c":"192.0.2.10/24"}`, `{"c":"192.0.2.10/24"}`},
		{`{"c":"2001:DB8:0:0::10/64"}`, `{"c":"2001:db8::10/64"}`},
		{`{"c":"192.0.2.10"}`, "has no length of its network"},
		{`{"c":"192.0.2.10/33"}`, "cannot read address"},
		{`{"c":"192.0.2.10/255.255.255.0"}`, "cannot read address"},
		{`{"i":"2001:DB8::1"}`, `{"i":"2001:db8::1"}`},
		{`{"i":"192.0.2.1/24"}`, "cannot read address"},
		{`{"i":"fe80::1%eth0"}`, "cannot read address"},
		{`{"i":"::ffff:192.0.2.1"}`, "cannot read address"},
		{`{"i":"192.0.2.010"}`, "cannot read address"},
		{`{"m":"02:00:5E:10:00:01"}`, `{"m":"02:00:5e:10:00:01"}`},
		{`{"m":"02-00-5e-10-00-01"}`, "cannot read hardware address"},
		{`{"s":"Café ☕ 5"}`, `{"s":"Café ☕ 5"}`},
		{`{"s":"hex:ff00"}`, `{"s":"hex:ff00"}`},
		{`{"s":"hex:4142"}`, `{"s":"AB"}`},
		{`{"s":"hex:6865783a41"}`, `{"s":"hex:6865783a41"}`}, // a network that is called hex:A
		{`{"s":"hex:f"}`, "two hexadecimal digits each"},
		{`{"s":""}`, "1 to 32 bytes"},
		{`{"s":"` + strings.Repeat("é", 17) + `"}`, "1 to 32 bytes"},
	}
	for _, tt := range tests {
		var v all
		err := json.Unmarshal([]byte(tt.in), &v)
		got := ""
		if err != nil {
			got = err.Error()
		} else if b, err := json.Marshal(v); err == nil {
			got = string(b)
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %s, want %s", tt.in, got, tt.want)
		}
	}
}

func FuzzNetworkText(f *testing.F) {
	for _, s := range []string{"192.0.2.10/24", "2001:db8::1", "02:00:5e:10:00:01", "hex:ff", "☕"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var c score.CIDR
		var i score.IP
		var m score.MAC
		var s score.SSID
		for _, v := range []interface {
			UnmarshalText([]byte) error
			MarshalText() ([]byte, error)
		}{&c, &i, &m, &s} {
			if v.UnmarshalText([]byte(text)) != nil {
				continue
			}
			first, _ := v.MarshalText()
			if err := v.UnmarshalText(first); err != nil {
				t.Fatalf("%q is written as %q, which is refused: %v", text, first, err)
			}
			if again, _ := v.MarshalText(); string(again) != string(first) {
				t.Fatalf("%q is written as %q, and that as %q", text, first, again)
			}
		}
	})
}
