package score

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A CIDR is an address with the length of its network: "192.0.2.10/24", "2001:db8::10/64".
type CIDR string

// An IP is an address: "192.0.2.1", "2001:db8::1".
type IP string

// A MAC is the hardware address of an interface: "02:00:5e:10:00:01".
type MAC string

// An SSID is the name of a wireless network, 1 to 32 bytes of any kind. It is written as text,
// or, if it is none, as "hex:" and its bytes in hexadecimal digits.
type SSID string

// Patterns of the text types of networks.
const (
	CIDRPattern = `^[0-9a-fA-F:.]+/[0-9]{1,3}$`
	IPPattern   = `^[0-9a-fA-F:.]+$`
	MACPattern  = `^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$`
)

var macRE = regexp.MustCompile(MACPattern)

// Prefix returns the address and its network.
func (c CIDR) Prefix() (netip.Prefix, error) {
	p, err := netip.ParsePrefix(string(c))
	if err != nil || p.Addr().Is4In6() {
		if _, bare := netip.ParseAddr(string(c)); bare == nil {
			return netip.Prefix{}, fmt.Errorf("address %q has no length of its network: want text such as \"192.0.2.10/24\"", string(c))
		}
		return netip.Prefix{}, fmt.Errorf("cannot read address %q: want text such as \"192.0.2.10/24\" or \"2001:db8::10/64\"", string(c))
	}
	return p, nil
}

// MarshalText writes the text form.
func (c CIDR) MarshalText() ([]byte, error) { return []byte(c), nil }

// UnmarshalText reads any spelling.
func (c *CIDR) UnmarshalText(b []byte) error {
	p, err := CIDR(b).Prefix()
	if err == nil {
		*c = CIDR(p.String())
	}
	return err
}

// Addr returns the address.
func (a IP) Addr() (netip.Addr, error) {
	p, err := netip.ParseAddr(string(a))
	if err != nil || p.Zone() != "" || p.Is4In6() {
		return netip.Addr{}, fmt.Errorf("cannot read address %q: want text such as \"192.0.2.1\" or \"2001:db8::1\"", string(a))
	}
	return p, nil
}

// MarshalText writes the text form.
func (a IP) MarshalText() ([]byte, error) { return []byte(a), nil }

// UnmarshalText reads any spelling.
func (a *IP) UnmarshalText(b []byte) error {
	p, err := IP(b).Addr()
	if err == nil {
		*a = IP(p.String())
	}
	return err
}

// Canonical is the spelling with small letters, or an error if m is none.
func (m MAC) Canonical() (MAC, error) {
	if !macRE.MatchString(string(m)) {
		return "", fmt.Errorf("cannot read hardware address %q: want text such as \"02:00:5e:10:00:01\"", string(m))
	}
	hw, err := net.ParseMAC(string(m))
	return MAC(hw.String()), err
}

// MarshalText writes the text form.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m), nil }

// UnmarshalText reads any spelling.
func (m *MAC) UnmarshalText(b []byte) error {
	c, err := MAC(b).Canonical()
	if err == nil {
		*m = c
	}
	return err
}

const hexPrefix = "hex:"

// MarshalText writes text that everybody can read, and hexadecimal digits of any other name.
func (s SSID) MarshalText() ([]byte, error) {
	plain := utf8.ValidString(string(s)) && !strings.HasPrefix(string(s), hexPrefix)
	for _, r := range string(s) {
		plain = plain && unicode.IsPrint(r)
	}
	if plain {
		return []byte(s), nil
	}
	return []byte(hexPrefix + hex.EncodeToString([]byte(s))), nil
}

// UnmarshalText reads both forms.
func (s *SSID) UnmarshalText(b []byte) error {
	text := string(b)
	if digits, ok := strings.CutPrefix(text, hexPrefix); ok {
		raw, err := hex.DecodeString(digits)
		if err != nil {
			return fmt.Errorf("cannot read ssid %q: after \"hex:\" come the bytes of the name, two hexadecimal digits each", b)
		}
		text = string(raw)
	}
	if len(text) == 0 || len(text) > 32 {
		return fmt.Errorf("cannot read ssid %q: a name has 1 to 32 bytes", b)
	}
	*s = SSID(text)
	return nil
}
