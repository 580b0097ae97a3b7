package score

import (
	"regexp"
	"slices"
)

func init() {
	Register(Definition[Wifi]{
		Doc:   "A wireless network that the device joins.",
		Needs: []Capability{CapNetwork},
		Sample: Wifi{
			Name: "workshop", Interface: "wlan0", SSID: "Workshop 5", Security: SecurityPSK, Password: SecretRef{"wifi-psk"}, Country: "DE",
			IPv6: &IPConfig{Method: MethodDisabled},
		},
	})
}

// KindWifi is the kind of Wifi.
const KindWifi Kind = "wifi"

// A Security is how a wireless network knows who may join.
type Security string

// Securities.
const (
	SecurityOpen Security = "open"    // everybody may
	SecurityPSK  Security = "wpa-psk" // WPA2, who knows the password
	SecuritySAE  Security = "sae"     // WPA3, who knows the password
)

// A Band is a range of radio channels.
type Band string

// Bands.
const (
	Band24 Band = "2.4GHz"
	Band5  Band = "5GHz"
)

// Wifi is a wireless network that the device joins. A change of it that makes the fleet
// unreachable is taken back by itself: see Confirm.
type Wifi struct {
	// Name of the connection, as the tools of the network show it. It may have spaces.
	Name string `json:"name" effect:"remove" jsonschema:"maxLength=100,example=workshop"`
	// Interface that it is for. If it is left out, any that has a radio.
	Interface string `json:"interface,omitempty" effect:"disrupt" jsonschema:"maxLength=15,pattern=^[a-zA-Z0-9_.-]+$,example=wlan0"`
	// MAC is the hardware address of the interface that it is for.
	MAC MAC `json:"mac,omitzero" effect:"disrupt"`
	// SSID is the name of the network in the air.
	SSID SSID `json:"ssid" effect:"disrupt"`
	// Security says who may join it.
	Security Security `json:"security" effect:"disrupt" jsonschema:"enum=open,enum=wpa-psk,enum=sae,example=wpa-psk"`
	// Password names the secret of the device that opens it.
	Password SecretRef `json:"password,omitzero" effect:"disrupt"`
	// Hidden networks do not tell their name: it is asked for.
	Hidden bool `json:"hidden,omitempty" effect:"disrupt" jsonschema:"example=true"`
	// Band, if only one may be used.
	Band Band `json:"band,omitempty" effect:"disrupt" jsonschema:"enum=2.4GHz,enum=5GHz,example=5GHz"`
	// Country that the device is in, two capital letters: it decides which channels the radio may use. Without one the
	// radio of a Raspberry Pi stays off.
	Country string `json:"country" effect:"mutate" jsonschema:"pattern=^[A-Z]{2}$,example=DE"`
	// IPv4 says how it gets addresses of IP version 4. If it is left out: from the network.
	IPv4 *IPConfig `json:"ipv4,omitempty" effect:"disrupt"`
	// IPv6 says how it gets addresses of IP version 6. If it is left out: from the network.
	IPv6 *IPConfig `json:"ipv6,omitempty" effect:"disrupt"`
	// MTU is the size of the largest packet. If it is left out, the driver's.
	MTU uint32 `json:"mtu,omitzero" effect:"disrupt" jsonschema:"minimum=576,maximum=9216,example=1500"`
	// Priority decides which network is joined if several are in reach: the highest.
	Priority int32 `json:"priority,omitzero" effect:"mutate" jsonschema:"minimum=-999,maximum=999,example=10"`
	// State is absent for a connection that is to be gone.
	State Presence `json:"state,omitempty" effect:"remove" jsonschema:"enum=present,enum=absent,default=present"`
	// Confirm says how a change proves that it did not cut the device off.
	Confirm *Confirm `json:"confirm,omitempty" effect:"none"`
}

// Kind is KindWifi.
func (Wifi) Kind() Kind { return KindWifi }

// Claims is the connection. A device may know several networks, so its radio belongs to none of them.
func (w Wifi) Claims() []Resource { return []Resource{Resource("connection:" + w.Name)} }

// Confirmation says how a change proves itself.
func (w Wifi) Confirmation() Confirm { return confirmation(w.Confirm) }

// SecretNames is the password.
func (w Wifi) SecretNames() []string {
	if w.Password.Secret == "" || w.State == Absent {
		return nil
	}
	return []string{w.Password.Secret}
}

// AddWifi adds a wireless network to a draft.
func AddWifi[P Networking](d *Draft[P], id ID, w Wifi) Ref[Wifi] { return add(d, id, w) }

var countryRE = regexp.MustCompile(`^[A-Z]{2}$`)

// Check refuses what no device could join.
func (w Wifi) Check(r *Report) {
	checkConnection(r, w.Name, w.Interface, w.MAC, w.MTU, w.Priority)
	w.State.check(r.At("state"))
	w.Confirm.check(r.At("confirm"), w.IPv4, w.IPv6)
	if w.State == Absent {
		return
	}
	if len(w.SSID) == 0 || len(w.SSID) > 32 {
		r.At("ssid").Errorf("ssid has %d bytes: want 1 to 32", len(w.SSID))
	}
	if words := []string{string(SecurityOpen), string(SecurityPSK), string(SecuritySAE)}; !slices.Contains(words, string(w.Security)) {
		r.At("security").Errorf("unknown security %q%s", w.Security, didYouMean(string(w.Security), words))
	}
	switch {
	case w.Security == SecurityOpen && w.Password.Secret != "":
		r.At("password").Errorf("an open network has no password")
	case w.Security != SecurityOpen && w.Password.Secret == "":
		r.At("password").Errorf("security %s needs a password: name the secret of the device that holds it", w.Security)
	case w.Password.Secret != "":
		w.Password.check(r.At("password"))
	}
	if bands := []string{string(Band24), string(Band5)}; w.Band != "" && !slices.Contains(bands, string(w.Band)) {
		r.At("band").Errorf("unknown band %q%s", w.Band, didYouMean(string(w.Band), bands))
	}
	if !countryRE.MatchString(w.Country) {
		r.At("country").Errorf("country is %q: want the two capital letters of the country that the device is in, such as DE; without one the radio of a Raspberry Pi stays off", w.Country)
	}
	w.IPv4.check(r.At("ipv4"), false)
	w.IPv6.check(r.At("ipv6"), true)
}
