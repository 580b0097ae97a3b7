package wire

import (
	"bytes"
	"encoding/binary"
)

const (
	maxDepth   = 32  // of nested containers
	maxMapKeys = 128 // of one map; no struct here comes near
)

// guard reads b once, without allocating by anything it says, and refuses what a msgpack decoder must not see: more
// than limit bytes, a length that exceeds what is left, deep nesting, a map with a key twice or a key that is no text,
// a code that does not exist, and anything but exactly one value. The decoders in use either allocate what a length
// claims or overflow the stack on such bytes, and neither can be recovered from.
func guard(b []byte, limit int) *Refusal {
	if len(b) > limit {
		return refuse(CodeTooLarge, "msgpack of %d bytes, at most %d are read", len(b), limit)
	}
	var stack [maxDepth + 1]level
	stack[0].left = 1 // the document itself
	depth, pos := 0, 0
	for {
		for stack[depth].left == 0 {
			if depth == 0 {
				if pos != len(b) {
					return refuse(CodeMalformed, "msgpack: %d bytes follow the value", len(b)-pos)
				}
				return nil
			}
			depth--
		}
		top := &stack[depth]
		isKey := top.isMap && top.left%2 == 0
		top.left--
		start := pos
		h, ok := readHead(b[pos:])
		if !ok {
			return refuse(CodeMalformed, "msgpack: no value at byte %d", start)
		}
		pos += h.size
		remaining := uint64(len(b) - pos)
		if h.body > remaining || h.items > remaining {
			return refuse(CodeMalformed, "msgpack: the value at byte %d claims more than is left", start)
		}
		if isKey {
			if !h.isText {
				return refuse(CodeMalformed, "msgpack: the map key at byte %d is no text", start)
			}
			key := b[pos : pos+int(h.body)]
			for _, seen := range top.keys {
				if bytes.Equal(seen, key) {
					return refuse(CodeMalformed, "msgpack: the map key at byte %d appears twice", start)
				}
			}
			if len(top.keys) == maxMapKeys {
				return refuse(CodeMalformed, "msgpack: more than %d keys in one map", maxMapKeys)
			}
			top.keys = append(top.keys, key)
		}
		pos += int(h.body)
		if h.items > 0 {
			if depth == maxDepth {
				return refuse(CodeMalformed, "msgpack: nested deeper than %d at byte %d", maxDepth, start)
			}
			depth++
			keys := stack[depth].keys[:0] // of an earlier map at this depth: only its space is used again
			stack[depth] = level{left: int(h.items), isMap: h.isMap, keys: keys}
		}
	}
}

// A level is a container that is being read.
type level struct {
	left  int // values still to come; a map has two for each pair
	isMap bool
	keys  [][]byte // seen in this map
}

// A head is the first bytes of a value: its code and its length.
type head struct {
	size   int    // bytes of the head itself
	body   uint64 // bytes that follow the head and belong to the value
	items  uint64 // values that follow; a map has two for each pair
	isText bool
	isMap  bool
}

func readHead(b []byte) (head, bool) {
	if len(b) == 0 {
		return head{}, false
	}
	c := b[0]
	switch {
	case c <= 0x7f || c >= 0xe0: // small integers
		return head{size: 1}, true
	case c <= 0x8f:
		return head{size: 1, items: 2 * uint64(c&0x0f), isMap: true}, true
	case c <= 0x9f:
		return head{size: 1, items: uint64(c & 0x0f)}, true
	case c <= 0xbf:
		return head{size: 1, body: uint64(c & 0x1f), isText: true}, true
	}
	switch c {
	case 0xc0, 0xc2, 0xc3: // nil, false, true
		return head{size: 1}, true
	case 0xc4, 0xc5, 0xc6: // bin
		n, size, ok := readLength(b, int(c-0xc4))
		return head{size: size, body: n}, ok
	case 0xc7, 0xc8, 0xc9: // ext: a type byte, then the data
		n, size, ok := readLength(b, int(c-0xc7))
		return head{size: size, body: n + 1}, ok
	case 0xca, 0xcb: // floats
		return head{size: 1, body: 4 << (c - 0xca)}, true
	case 0xcc, 0xcd, 0xce, 0xcf: // unsigned
		return head{size: 1, body: 1 << (c - 0xcc)}, true
	case 0xd0, 0xd1, 0xd2, 0xd3: // signed
		return head{size: 1, body: 1 << (c - 0xd0)}, true
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8: // fixext
		return head{size: 1, body: 1 + 1<<(c-0xd4)}, true
	case 0xd9, 0xda, 0xdb: // str
		n, size, ok := readLength(b, int(c-0xd9))
		return head{size: size, body: n, isText: true}, ok
	case 0xdc, 0xdd: // array
		n, size, ok := readLength(b, int(c-0xdc)+1)
		return head{size: size, items: n}, ok
	case 0xde, 0xdf: // map
		n, size, ok := readLength(b, int(c-0xde)+1)
		return head{size: size, items: 2 * n, isMap: true}, ok
	}
	return head{}, false // 0xc1 is never used
}

// readLength reads the length after a code: 1, 2 or 4 bytes for width 0, 1, 2.
func readLength(b []byte, width int) (n uint64, size int, ok bool) {
	size = 1 + 1<<width
	if len(b) < size {
		return 0, 0, false
	}
	switch width {
	case 0:
		n = uint64(b[1])
	case 1:
		n = uint64(binary.BigEndian.Uint16(b[1:]))
	default:
		n = uint64(binary.BigEndian.Uint32(b[1:]))
	}
	return n, size, true
}
