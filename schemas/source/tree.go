package source

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The kinds of nodes.
const (
	null    = 'n'
	boolean = 'b'
	number  = '0'
	text    = '"'
	object  = '{'
	list    = '['
)

// A node is one value with its place.
type node struct {
	kind         byte
	quoted       bool   // text is a JSON string as written
	text         string // of a scalar, as JSON has it
	line, column int
	keys         []key   // of an object
	items        []*node // of a list, or the values of keys

	index map[string]int // of many keys
}

type key struct {
	name         string
	line, column int
}

func (n *node) string() string {
	if !n.quoted {
		return n.text
	}
	b, err := jsontext.AppendUnquote(nil, n.text)
	if err != nil {
		return ""
	}
	return string(b)
}

const manyKeys = 32

func (n *node) find(name string) int {
	if n.index != nil {
		if i, ok := n.index[name]; ok {
			return i
		}
		return -1
	}
	for i, k := range n.keys {
		if k.name == name {
			return i
		}
	}
	return -1
}

// addKey adds a key whose value is appended to items next.
func (n *node) addKey(k key) {
	if len(n.keys) == manyKeys {
		n.index = make(map[string]int, 2*manyKeys)
		for i, k := range n.keys {
			n.index[k.name] = i
		}
	}
	if n.index != nil {
		n.index[k.name] = len(n.keys)
	}
	n.keys = append(n.keys, k)
}

// walk follows a JSON pointer as far as it goes. It returns the last node reached, the
// index of the key under which it stands (-1: none) in parent, and whether it is the
// whole way.
func (n *node) walk(pointer string) (at, parent *node, index int, whole bool) {
	at, index = n, -1
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		i := -1
		switch at.kind {
		case object:
			i = at.find(unescape(step))
		case list:
			if v, err := strconv.Atoi(step); err == nil && v >= 0 && v < len(at.items) {
				i = v
			}
		}
		if i < 0 {
			return at, parent, index, false
		}
		at, parent, index = at.items[i], at, i
	}
	return at, parent, index, true
}

// position is where a message about the value at pointer points to: to a scalar itself,
// to the key of anything else, and for what is not there to what should hold it.
func (n *node) position(pointer string) (line, column int) {
	at, parent, index, whole := n.walk(pointer)
	if parent != nil && parent.kind == object && (!whole || at.kind == object || at.kind == list) {
		return parent.keys[index].line, parent.keys[index].column
	}
	return at.line, at.column
}

// appendJSON writes n as JSON.
func (n *node) appendJSON(b []byte) []byte {
	switch n.kind {
	case object:
		b = append(b, '{')
		for i, k := range n.keys {
			if i > 0 {
				b = append(b, ',')
			}
			b, _ = jsontext.AppendQuote(b, k.name)
			b = n.items[i].appendJSON(append(b, ':'))
		}
		return append(b, '}')
	case list:
		b = append(b, '[')
		for i, v := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.appendJSON(b)
		}
		return append(b, ']')
	case text:
		if !n.quoted {
			b, _ = jsontext.AppendQuote(b, n.text)
			return b
		}
	}
	return append(b, n.text...)
}

// prune returns n without the values at bad paths. An item of a list is replaced by an
// empty mapping if the list is one of mappings, and else takes the list with it: the
// others keep their places.
func (n *node) prune(path string, bad func(path string) bool) *node {
	out := &node{kind: n.kind, quoted: n.quoted, text: n.text}
	for i, v := range n.items {
		at := path + "/" + strconv.Itoa(i)
		if n.kind == object {
			at = path + "/" + escape(n.keys[i].name)
		}
		switch {
		case !bad(at):
			p := v.prune(at, bad)
			if p == nil {
				continue
			}
			out.items = append(out.items, p)
		case n.kind == object:
			continue
		case slices.ContainsFunc(n.items, func(n *node) bool { return n.kind == object }):
			out.items = append(out.items, &node{kind: object})
		default:
			return nil
		}
		if n.kind == object {
			out.keys = append(out.keys, n.keys[i])
		}
	}
	return out
}

// value is n as package encoding/json would decode it.
func (n *node) value() any {
	switch n.kind {
	case object:
		m := make(map[string]any, len(n.keys))
		for i, k := range n.keys {
			m[k.name] = n.items[i].value()
		}
		return m
	case list:
		l := make([]any, len(n.items))
		for i, v := range n.items {
			l[i] = v.value()
		}
		return l
	case text:
		return n.string()
	case boolean:
		return n.text == "true"
	case number:
		if len(n.text) > 40 || strings.ContainsAny(n.text, "eE") {
			return 0.5 // whoever computes with an exponent of a billion, computes for long
		}
		return json.Number(n.text)
	}
	return nil
}

var escaper, unescaper = strings.NewReplacer("~", "~0", "/", "~1"), strings.NewReplacer("~1", "/", "~0", "~")

func escape(s string) string   { return escaper.Replace(s) }
func unescape(s string) string { return unescaper.Replace(s) }
