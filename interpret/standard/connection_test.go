package standard_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"

	"github.com/continuo-fleet/continuo/score"
)

// canary is the value of every secret of these tests.
const canary = "canary-3f9a61c2"

func init() {
	maps.Copy(others, connectionOthers)
	maps.Copy(wishes, connectionWishes)
}

var connectionOthers = map[string][]func(reflect.Value){
	"ethernet.name":      {set("other")},
	"ethernet.interface": {set("eth1")},
	"ethernet.mac":       {set(score.MAC("02:00:5e:10:00:01"))},
	"ethernet.vlan":      {set(&score.VLAN{ID: 7, Parent: "eth1"})},
	"ethernet.ipv4":      {set((*score.IPConfig)(nil)), set(&score.IPConfig{Method: score.MethodDisabled})},
	"ethernet.ipv6":      {set((*score.IPConfig)(nil))},
	"ethernet.mtu":       {set(uint32(1400))},
	"ethernet.priority":  {set(int32(10))},
	"ethernet.state":     {set(score.Absent)},
	"ethernet.confirm":   {set(&score.Confirm{Connect: "192.0.2.1:53"})},
	"wifi.name":          {set("other")},
	"wifi.interface":     {set(""), set("wlan1")},
	"wifi.mac":           {set(score.MAC("02:00:5e:10:00:01"))},
	"wifi.ssid":          {set(score.SSID("Other"))},
	"wifi.security":      {set(score.SecuritySAE)},
	"wifi.password":      {set(score.SecretRef{Secret: "tls"}), set(score.SecretRef{})},
	"wifi.hidden":        {set(true)},
	"wifi.band":          {set(score.Band5)},
	"wifi.country":       {set("FR")},
	"wifi.ipv4":          {set(&score.IPConfig{Method: score.MethodDisabled})},
	"wifi.ipv6":          {set((*score.IPConfig)(nil))},
	"wifi.mtu":           {set(uint32(1400))},
	"wifi.priority":      {set(int32(10))},
	"wifi.state":         {set(score.Absent)},
	"wifi.confirm":       {set(&score.Confirm{Connect: "192.0.2.1:53"})},
}

var connectionWishes = map[score.Kind]func(*rand.Rand) score.Spec{
	score.KindEthernet: func(r *rand.Rand) score.Spec {
		e := score.Ethernet{Name: fmt.Sprintf("Wired connection %d", r.IntN(2)), Interface: "eth0", Priority: int32(r.IntN(3)), MTU: pick[uint32](r, 0, 1400)}
		if r.IntN(2) == 0 {
			e.Interface, e.VLAN = "eth0.7", &score.VLAN{ID: uint32(7 + r.IntN(2)), Parent: "eth0"}
		}
		e.IPv4 = pick(r, nil, &score.IPConfig{Method: score.MethodAuto, DNS: []score.IP{"192.0.2.53"}, Metric: 7},
			&score.IPConfig{Method: score.MethodStatic, Addresses: []score.CIDR{"192.0.2.10/24", "192.0.2.11/24"}, Gateway: "192.0.2.1"})
		e.IPv6 = pick(r, nil, &score.IPConfig{Method: score.MethodLinkLocal},
			&score.IPConfig{Method: score.MethodStatic, Addresses: []score.CIDR{"2001:db8::10/64"}, Gateway: "fe80::1"})
		return e
	},
	score.KindWifi: func(r *rand.Rand) score.Spec {
		w := score.Wifi{
			Name: pick(r, "home", "aa:bb:cc:dd:ee:ff", "☕"), SSID: pick(r, score.SSID("A"), "\xff\x00", "☕"), Security: score.SecurityOpen,
			Interface: pick(r, "", "wlan0"), Hidden: r.IntN(2) == 0, Country: pick(r, "DE", "FR"), Band: pick(r, "", score.Band5), Priority: 10,
		}
		if r.IntN(2) == 0 {
			w.Security, w.Password = pick(r, score.SecurityPSK, score.SecuritySAE), score.SecretRef{Secret: "wifi-psk"}
		}
		return w
	},
}
