package nftables

import (
	"encoding/binary"
	"errors"
)

// Attributes of netlink: length and type in the order of bytes of the machine, then the
// value, filled up to four bytes. Numbers inside of nftables are big-endian.

const (
	nested   = 0x8000
	typeMask = 0x3fff
)

var errAttr = errors.New("cannot read an attribute: it is longer than what holds it")

// An attr is one attribute.
type attr struct {
	typ uint16
	val []byte
}

// parse splits b into its attributes, at most max of them.
func parse(b []byte, max int) ([]attr, error) {
	var out []attr
	for len(b) > 0 {
		if len(b) < 4 {
			return nil, errAttr
		}
		n := int(binary.NativeEndian.Uint16(b))
		if n < 4 || n > len(b) {
			return nil, errAttr
		}
		if len(out) == max {
			return nil, errors.New("cannot read attributes: there are too many")
		}
		out = append(out, attr{binary.NativeEndian.Uint16(b[2:]) & typeMask, b[4:n]})
		b = b[min(align(n), len(b)):]
	}
	return out, nil
}

func align(n int) int { return (n + 3) &^ 3 }

// add appends an attribute.
func add(b []byte, typ uint16, val []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(4+len(val)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, val...)
	return append(b, make([]byte, align(len(val))-len(val))...)
}

func addNested(b []byte, typ uint16, val []byte) []byte { return add(b, typ|nested, val) }

func addText(b []byte, typ uint16, s string) []byte { return add(b, typ, append([]byte(s), 0)) }

func addNumber(b []byte, typ uint16, n uint32) []byte {
	return add(b, typ, binary.BigEndian.AppendUint32(nil, n))
}

// number is the value of a big-endian attribute; ok is false for one of another length.
func (a attr) number() (n uint32, ok bool) {
	if len(a.val) != 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(a.val), true
}

func (a attr) text() string {
	for i, c := range a.val {
		if c == 0 {
			return string(a.val[:i])
		}
	}
	return string(a.val)
}
