package pi

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/internal/nftables"
	"github.com/continuo-fleet/continuo/topology"
)

// What the kernel calls things.
const (
	baseNetwork, baseTransport = unix.NFT_PAYLOAD_NETWORK_HEADER, unix.NFT_PAYLOAD_TRANSPORT_HEADER
	ctEstablished, ctRelated   = 1 << 1, 1 << 2 // bits of the state of a connection
	interfaceLen               = unix.IFNAMSIZ
)

var protocols = map[string]byte{"icmp": unix.IPPROTO_ICMP, "tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP, "ipv6-icmp": unix.IPPROTO_ICMPV6}

// exprs is a rule as the kernel runs it, one way for each rule: what is read back is compared with it.
func exprs(r topology.FirewallRule) (out []nftables.Expr) {
	add := func(e ...nftables.Expr) { out = append(out, e...) }
	is := func(data string) nftables.Expr {
		return nftables.Expr{Name: nftables.Cmp, Op: unix.NFT_CMP_EQ, Data: data}
	}
	meta := func(key uint32, data string) {
		add(nftables.Expr{Name: nftables.Meta, Key: key}, is(data))
	}
	span := func(offset, size uint32, p topology.PortRange) {
		if p == (topology.PortRange{}) {
			return
		}
		text := func(n uint16) string {
			return string(binary.BigEndian.AppendUint16(nil, n)[2-size:])
		}
		add(nftables.Expr{Name: nftables.Payload, Base: baseTransport, Offset: offset, Len: size})
		if p.First == p.Last {
			add(is(text(p.First)))
			return
		}
		add(nftables.Expr{Name: nftables.Cmp, Op: unix.NFT_CMP_GTE, Data: text(p.First)}, nftables.Expr{Name: nftables.Cmp, Op: unix.NFT_CMP_LTE, Data: text(p.Last)})
	}
	if r.Interface != "" {
		meta(unix.NFT_META_IIFNAME, r.Interface+strings.Repeat("\x00", interfaceLen-len(r.Interface)))
	}
	if r.Established {
		number := func(n uint32) string { return string(binary.NativeEndian.AppendUint32(nil, n)) }
		add(nftables.Expr{Name: nftables.CT, Key: unix.NFT_CT_STATE}, nftables.Expr{Name: nftables.Bitwise, Data: number(ctEstablished | ctRelated)},
			nftables.Expr{Name: nftables.Cmp, Op: unix.NFT_CMP_NEQ, Data: number(0)})
	}
	if r.From.IsValid() {
		family, offset := byte(unix.NFPROTO_IPV4), uint32(12)
		if r.From.Addr().Is6() {
			family, offset = unix.NFPROTO_IPV6, 8
		}
		meta(unix.NFT_META_NFPROTO, string([]byte{family}))
		address := r.From.Addr().AsSlice()
		if r.From.Bits() > 0 {
			add(nftables.Expr{Name: nftables.Payload, Base: baseNetwork, Offset: offset, Len: uint32(len(address))})
			if !r.From.IsSingleIP() {
				add(nftables.Expr{Name: nftables.Bitwise, Data: mask(r.From.Bits(), len(address))})
			}
			add(is(string(address)))
		}
	}
	if r.Protocol != "" {
		meta(unix.NFT_META_L4PROTO, string([]byte{protocols[r.Protocol]}))
	}
	span(0, 2, r.FromPorts)
	span(2, 2, r.Ports)
	span(0, 1, r.Types)
	add(nftables.Expr{Name: nftables.Immediate, Verdict: accept})
	return out
}

// mask is a number of bytes of which the first bits are set.
func mask(bits, size int) string {
	out := make([]byte, size)
	for i := range out {
		n := min(max(bits-8*i, 0), 8)
		out[i] = byte(0xff << (8 - n))
	}
	return string(out)
}

// ruleOf is the rule that a rule of the kernel is. One that is not made exactly as ours are is foreign.
func ruleOf(r nftables.Rule) topology.FirewallRule {
	have, err := r.Parse()
	if err != nil {
		return topology.FirewallRule{Foreign: "rule of others that cannot be read"}
	}
	guess := guessed(have)
	if (topology.FirewallConfig{Rules: []topology.FirewallRule{guess}}).Check() == nil && slices.Equal(exprs(guess), have) {
		return guess
	}
	names := make([]string, 0, 10)
	for _, e := range have[:min(len(have), 10)] {
		names = append(names, strings.Map(printable, e.Name[:min(len(e.Name), 20)]))
	}
	return topology.FirewallRule{Foreign: "rule of others: " + strings.Join(names, " ")}
}

func printable(c rune) rune {
	if c < ' ' || c > '~' {
		return '?'
	}
	return c
}

// guessed reads what a rule may say. Whether it says that, and nothing else, is for the caller to prove.
func guessed(list []nftables.Expr) (r topology.FirewallRule) {
	at := func(i int, name string) string { // what the i-th expression compares with
		if i < len(list) && list[i].Name == name {
			return list[i].Data
		}
		return ""
	}
	first := func(s string) byte {
		if s == "" {
			return 0
		}
		return s[0]
	}
	for i, e := range list {
		data := at(i+1, nftables.Cmp)
		switch {
		case e.Name == nftables.CT:
			r.Established = true
		case e.Name == nftables.Meta && e.Key == unix.NFT_META_IIFNAME:
			r.Interface = strings.TrimRight(data, "\x00")
		case e.Name == nftables.Meta && e.Key == unix.NFT_META_NFPROTO:
			r.From = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
			if first(data) == unix.NFPROTO_IPV6 {
				r.From = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
			}
		case e.Name == nftables.Meta && e.Key == unix.NFT_META_L4PROTO:
			for name, n := range protocols {
				if n == first(data) {
					r.Protocol = name
				}
			}
		case e.Name == nftables.Payload && e.Base == baseNetwork:
			bits := 8 * int(e.Len)
			if m := at(i+1, nftables.Bitwise); m != "" {
				data = at(i+2, nftables.Cmp)
				for bits = 0; bits < 8*len(m) && m[bits/8]&(0x80>>(bits%8)) != 0; bits++ {
				}
			}
			if a, ok := netip.AddrFromSlice([]byte(data)); ok {
				r.From = netip.PrefixFrom(a, bits)
			}
		case e.Name == nftables.Payload && e.Base == baseTransport:
			p := topology.PortRange{First: short(data), Last: short(data)}
			if i+1 < len(list) && list[i+1].Op != unix.NFT_CMP_EQ {
				p.Last = short(at(i+2, nftables.Cmp))
			}
			switch {
			case e.Len == 1:
				r.Types = p
			case e.Offset == 0:
				r.FromPorts = p
			default:
				r.Ports = p
			}
		}
	}
	return r
}

// short is the number that one or two bytes are.
func short(s string) uint16 {
	var n uint16
	for i := range min(len(s), 2) {
		n = n<<8 | uint16(s[i])
	}
	return n
}
