package pi

import (
	"bytes"
	"encoding/binary"
)

// pick returns m without the properties that are not wanted, in the same place. The place of each value in
// a message says where it is aligned, and all entries of the answer begin at a multiple of eight.
func pick(m []byte, wanted map[string]bool) []byte {
	const reply = 2
	order, _ := byteOrder(m[0])
	if m[1] != reply {
		return m
	}
	body := fixedHeader + (int(order.Uint32(m[12:]))+7)&^7
	if signatureOf(m[:body], order) != "a{sv}" {
		return m
	}
	w := wire{b: m, order: order, at: body}
	size := w.number()
	w.align(8)
	begin, to := w.at, w.at
	if w.bad || begin+size != len(m) {
		return m
	}
	type place struct{ at, end int }
	var keep [64]place // more than are wanted
	n := 0
	for w.at < len(m) {
		w.align(8)
		at := w.at
		name := w.text(w.number())
		w.text(1)
		w.skip(variant, 0)
		if w.bad || n == len(keep) {
			return m
		}
		if wanted[string(name)] {
			keep[n] = place{at, w.at}
			n++
		}
	}
	for _, k := range keep[:n] {
		for to%8 != 0 {
			m[to] = 0
			to++
		}
		to += copy(m[to:], m[k.at:k.end])
	}
	order.PutUint32(m[body:], uint32(to-begin))
	order.PutUint32(m[4:], uint32(to-body))
	return m[:to]
}

// signatureOf finds, in the header of a message, what its body is.
func signatureOf(header []byte, order binary.ByteOrder) string {
	const signature = 8
	w := wire{b: header, order: order, at: fixedHeader}
	end := fixedHeader + int(order.Uint32(header[12:]))
	for w.at < end && !w.bad {
		w.align(8)
		field := w.text(1)
		if len(field) == 1 && field[0] == signature && bytes.HasPrefix(w.b[w.at:], []byte("\x01g\x00")) {
			w.at += 3
			return string(w.signature())
		}
		w.skip(variant, 0)
	}
	return ""
}

// wire goes over values as they are on the bus, and stays where one does not fit.
type wire struct {
	b     []byte
	order binary.ByteOrder
	at    int
	bad   bool
}

func (w *wire) align(n int) { w.text((n - w.at%n) % n) }

// text is the next n bytes; nil if there are fewer.
func (w *wire) text(n int) []byte {
	if w.bad || n < 0 || n > len(w.b)-w.at {
		w.bad = true
		return nil
	}
	w.at += n
	return w.b[w.at-n : w.at]
}

// number is a length.
func (w *wire) number() int {
	w.align(4)
	b := w.text(4)
	if b == nil || w.order.Uint32(b) > maxMessage {
		w.bad = true
		return 0
	}
	return int(w.order.Uint32(b))
}

// signature is one with its length before it and a zero behind.
func (w *wire) signature() []byte {
	n := w.text(1)
	if n == nil {
		return nil
	}
	s := w.text(int(n[0]))
	w.text(1)
	return s
}

var variant = []byte("v")

// skip goes over one value of the first type of a signature, and returns the rest of that.
func (w *wire) skip(types []byte, depth int) []byte {
	const deepest = 64
	if w.bad || len(types) == 0 || depth > deepest {
		w.bad = true
		return nil
	}
	kind, rest := types[0], types[1:]
	switch kind {
	case 's', 'o':
		w.text(w.number())
		w.text(1)
	case 'g':
		w.signature()
	case 'v':
		if inner := w.skip(w.signature(), depth+1); len(inner) > 0 {
			w.bad = true
		}
	case 'a':
		n := w.number()
		one := single(rest)
		if one == 0 {
			w.bad = true
			return nil
		}
		w.align(alignmentOf(rest[0]))
		w.text(n)
		rest = rest[one:]
	case '(', '{':
		w.align(8)
		for !w.bad && len(rest) > 0 && rest[0] != ')' && rest[0] != '}' {
			rest = w.skip(rest, depth+1)
		}
		if len(rest) == 0 {
			w.bad = true
			return nil
		}
		rest = rest[1:]
	default:
		n := alignmentOf(kind)
		if n == 0 {
			w.bad = true
			return nil
		}
		w.align(n)
		w.text(n)
	}
	return rest
}

// alignmentOf is that of a type, which is the size of those that have a fixed one; 0: there is no such type.
func alignmentOf(kind byte) int {
	switch kind {
	case 'y', 'g', 'v':
		return 1
	case 'n', 'q':
		return 2
	case 'b', 'i', 'u', 'h', 's', 'o', 'a':
		return 4
	case 'x', 't', 'd', '(', '{':
		return 8
	}
	return 0
}

// single is the length of the first type of a signature; 0: it has none.
func single(types []byte) int {
	i, open := 0, 0
	for ; i < len(types); i++ {
		switch types[i] {
		case 'a':
			continue
		case '(', '{':
			open++
			continue
		case ')', '}':
			open--
		}
		if open <= 0 {
			return i + 1
		}
	}
	return 0
}
