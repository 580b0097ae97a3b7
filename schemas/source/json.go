package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A jsonReader builds a tree from JSON, and finds every key that is given twice.
type jsonReader struct {
	d    *Document
	dec  *jsontext.Decoder
	data []byte

	names            map[string]string // of keys, each held once
	values           int               // read so far
	at, line, column int               // offset up to which was counted, and its place
}

var errTooMany = fmt.Errorf("more than %d values in one document", maxValues)

func (d *Document) readJSON(data []byte) {
	if len(bytes.TrimSpace(data)) == 0 {
		d.place(1, 1, "", "no manifest in file")
		return
	}
	r := &jsonReader{d: d, data: data, line: 1, column: 1, names: map[string]string{},
		dec: jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true))}
	root, err := r.read("", 1)
	if err == nil {
		_, err = r.dec.ReadToken()
		switch {
		case err == nil:
			err = errors.New("file has more than 1 document: put each manifest into a file of its own")
		case errors.Is(err, io.EOF):
			err = nil
		}
	}
	if err != nil {
		r.fail(err)
		return
	}
	d.root = root
	if len(d.list) == 0 {
		d.raw = data
	}
}

func (r *jsonReader) fail(err error) {
	offset, what := int(r.dec.InputOffset()), err.Error()
	if se, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset, what = int(se.ByteOffset), strings.TrimPrefix(se.Err.Error(), "jsontext: ")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		what = "the file ends too early"
	}
	line, column := lineColumn(r.data, offset)
	r.d.place(line, column, "", "cannot read JSON: %s", what)
}

// position is lineColumn for offsets that only grow.
func (r *jsonReader) position(offset int) (line, column int) {
	passed := r.data[r.at:offset]
	if n := bytes.Count(passed, []byte("\n")); n > 0 {
		r.line, r.column = r.line+n, 1
		passed = passed[bytes.LastIndexByte(passed, '\n')+1:]
	}
	r.column += utf8.RuneCount(passed)
	r.at = offset
	return r.line, r.column
}

func (r *jsonReader) name(b []byte) string {
	name, known := r.names[string(b)]
	if !known {
		name = string(b)
		r.names[name] = name
	}
	return name
}

func (r *jsonReader) read(path string, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("more than %d levels of mappings and lists", maxDepth)
	}
	if r.values++; r.values > maxValues {
		return nil, errTooMany
	}
	k := r.dec.PeekKind()
	if k != '{' && k != '[' {
		v, err := r.dec.ReadValue()
		if err != nil {
			return nil, err
		}
		n := &node{kind: byte(k), text: string(v), quoted: k == '"'}
		if k == 't' || k == 'f' {
			n.kind = boolean
		}
		n.line, n.column = r.position(int(r.dec.InputOffset()) - len(v))
		if k == null {
			r.d.refuseNull(path, n)
		}
		return n, nil
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, err
	}
	n := &node{kind: byte(k)}
	n.line, n.column = r.position(int(r.dec.InputOffset()) - 1)
	for i := 0; r.dec.PeekKind() != '}' && r.dec.PeekKind() != ']'; i++ {
		var at string
		add := true
		if k == '{' {
			v, err := r.dec.ReadValue()
			if err != nil {
				return nil, err
			}
			var short [64]byte
			name, err := jsontext.AppendUnquote(short[:0], v)
			if err != nil {
				return nil, err
			}
			c := key{name: r.name(name)}
			c.line, c.column = r.position(int(r.dec.InputOffset()) - len(v))
			at = path + "/" + escape(c.name)
			if add = r.d.addKey(n, c, at); !add {
				at = path
			}
		} else {
			at = path + "/" + strconv.Itoa(i)
		}
		v, err := r.read(at, depth+1)
		if err != nil {
			return nil, err
		}
		if add {
			n.items = append(n.items, v)
		}
	}
	_, err := r.dec.ReadToken()
	return n, err
}
