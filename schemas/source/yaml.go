package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

func (d *Document) readYAML(data []byte) {
	if i := bytes.IndexFunc(data, func(r rune) bool { return r == '\u0085' || r == '\u2028' || r == '\u2029' }); i >= 0 {
		line, column := lineColumn(data, i)
		r := []rune(string(data[i:min(i+4, len(data))]))[0]
		d.place(line, column, "", `character U+%04X is the end of a line to some YAML readers: write it as "\u%04X" in double quotes`, r, r)
		return
	}
	if bytes.Count(data, []byte("\n"))+bytes.Count(data, []byte(",")) > maxMarks {
		d.place(1, 1, "", "file has more than %d lines and commas, which is more than is read as YAML: write it as JSON", maxMarks)
		return
	}
	roots, err := parse(data)
	if err != nil {
		d.failYAML(data, err)
		return
	}
	switch len(roots) {
	case 0:
		d.place(1, 1, "", "no manifest in file")
	case 1:
		y := yamlReader{d: d}
		d.root = y.read(roots[0], "")
		if y.values > maxValues {
			d.root = nil
			d.place(y.last.Line, y.last.Column, "", "cannot read YAML: %s", errTooMany)
		}
	default:
		d.place(roots[1].Line, roots[1].Column, "", "file has %d documents: put each manifest into a file of its own", len(roots))
	}
}

// parse returns the root of each document that holds anything.
func parse(data []byte) (roots []*yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			roots, err = nil, fmt.Errorf("the YAML parser cannot go on: %v", p)
		}
	}()
	l, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithUniqueKeys(false),
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth))))
	if err != nil {
		return nil, err
	}
	for {
		var doc yaml.Node
		if err := l.Load(&doc); err != nil {
			if errors.Is(err, io.EOF) {
				return roots, nil
			}
			return nil, err
		}
		for _, n := range doc.Content {
			if n.Kind != yaml.ScalarNode || n.Value != "" || n.Style&quotedStyle != 0 {
				roots = append(roots, n)
			}
		}
	}
}

const quotedStyle = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// failYAML says in plain words what the parser did not like.
func (d *Document) failYAML(data []byte, err error) {
	le, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		d.place(1, 1, "", "cannot read YAML: %v", err)
		return
	}
	line, column, what := le.Mark.Line, le.Mark.Column, le.Message
	switch {
	case strings.HasPrefix(what, "control characters"):
		i := bytes.IndexFunc(data, func(r rune) bool {
			return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r <= 0x9f || r == 0xfffe || r == 0xffff
		})
		line, column = lineColumn(data, max(i, 0))
		r, _ := utf8.DecodeRune(data[max(i, 0):])
		what = fmt.Sprintf(`control character U+%04X is not allowed: write it as "\u%04X" in double quotes`, r, r)
	case strings.HasPrefix(what, "exceeded max depth"):
		what = fmt.Sprintf("more than %d levels of mappings and lists", maxDepth)
	case strings.HasPrefix(what, "unknown anchor"), strings.Contains(what, "anchor"):
		what = noAnchors
	case strings.Contains(what, "tab character"), tabAt(data, line, column):
		what = "a tab is used to indent: YAML wants spaces"
	case strings.HasPrefix(what, "found character that cannot start any token"):
		what = "this character cannot start a value: put the value in quotes"
	case strings.HasPrefix(what, "mapping values are not allowed"):
		what = "a second ':' on the line, or a key that is indented too far: put a value with ': ' in it in quotes, or correct the indentation"
	case strings.HasPrefix(what, "found unexpected end of stream"):
		line, column = le.ContextMark.Line, le.ContextMark.Column
		what = "the quote that opens here is never closed"
	case what == "did not find expected key", what == "did not find expected '-' indicator":
		what = "the indentation fits nothing above it"
	case what == "did not find expected <document start>":
		what = "this stands behind the end of the document"
	case what == "could not find expected ':'":
		what = "a key without ':' behind it"
	case what == "found invalid Unicode character escape code":
		what = `not a character: write it as it is, or as "\U0001F600" with eight digits`
	}
	if missing, ok := strings.CutPrefix(what, "did not find expected "); ok {
		what = missing + " is missing"
	}
	d.place(max(line, 1), max(column, 1), "", "cannot read YAML: %s", what)
}

// tabAt reports whether the indentation of a line up to a column has a tab.
func tabAt(data []byte, line, column int) bool {
	lines := bytes.SplitN(data, []byte("\n"), line+1)
	if line < 1 || line > len(lines) {
		return false
	}
	l := lines[line-1]
	indent := l[:len(l)-len(bytes.TrimLeft(l, " \t"))]
	return bytes.ContainsRune(indent, '\t') && column <= len(indent)+1
}

const noAnchors = "anchors (&), aliases (*) and merge keys (<<) are not part of the language: write the value out"

type yamlReader struct {
	d      *Document
	values int
	last   *yaml.Node // that was read
}

// read turns y into a node. What is refused in it is reported; it stands in the tree as
// text or null, and later stages are silent about it.
func (r *yamlReader) read(y *yaml.Node, path string) *node {
	n := &node{line: y.Line, column: y.Column}
	if r.values > maxValues {
		return n
	}
	r.values, r.last = r.values+1, y
	if y.Anchor != "" || y.Kind == yaml.AliasNode {
		r.refuseAnchor(y, path)
		if y.Kind == yaml.AliasNode {
			n.kind, n.text = null, "null"
			return n
		}
	}
	if y.Style&yaml.TaggedStyle != 0 || y.Tag == "!" {
		r.d.place(n.line, n.column, path, "tag %s is not part of the language: write the value as it is, and text in quotes", y.Tag)
	}
	switch y.Kind {
	case yaml.MappingNode:
		r.mapping(n, y, path)
	case yaml.SequenceNode:
		n.kind = list
		n.items = make([]*node, len(y.Content))
		for i, c := range y.Content {
			n.items[i] = r.read(c, path+"/"+strconv.Itoa(i))
		}
	default:
		r.scalar(n, y, path)
	}
	return n
}

func (r *yamlReader) mapping(n *node, y *yaml.Node, path string) {
	n.kind = object
	n.keys = make([]key, 0, len(y.Content)/2)
	n.items = make([]*node, 0, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		c := key{k.Value, k.Line, k.Column}
		at := path + "/" + escape(k.Value)
		plain := k.Kind == yaml.ScalarNode && k.Style&quotedStyle == 0
		kind, _, what := resolve(k.Value)
		switch {
		case k.Kind == yaml.AliasNode || k.Anchor != "" || plain && k.Value == "<<":
			r.refuseAnchor(k, path)
			continue
		case k.Kind != yaml.ScalarNode:
			r.d.place(k.Line, k.Column, path, "a key must be text, and this is a list or a mapping")
			continue
		case k.Style&yaml.TaggedStyle != 0 || k.Tag == "!":
			r.d.place(k.Line, k.Column, at, "tag %s is not part of the language", k.Tag)
		case plain && (kind != text || what != ""):
			r.d.place(k.Line, k.Column, at, "key %s must be text: put it in quotes, %q", k.Value, k.Value)
		}
		if r.d.addKey(n, c, at) {
			n.items = append(n.items, r.read(v, at))
		}
	}
}

func (r *yamlReader) scalar(n *node, y *yaml.Node, path string) {
	n.kind, n.text = text, y.Value
	if y.Style&(quotedStyle|yaml.TaggedStyle) != 0 {
		return
	}
	var what string
	n.kind, n.text, what = resolve(y.Value)
	switch {
	case what != "":
		r.d.place(n.line, n.column, path, "%s is %s", y.Value, disagreement(y.Value, what))
	case n.kind == null:
		r.d.refuseNull(path, n)
	}
}

// disagreement says why a plain scalar is refused, and what to write.
func disagreement(s, what string) string {
	switch what {
	case "true or false":
		return fmt.Sprintf("text to some YAML readers and true or false to others: put it in quotes, %q, or write true or false", s)
	case "a number":
		if octal := strings.TrimPrefix(strings.TrimPrefix(s, "0o"), "0"); octal != s && strings.Trim(octal, "01234567") == "" {
			return fmt.Sprintf("not the same number to all YAML readers: put it in quotes, %q", "0"+octal)
		}
		return fmt.Sprintf("not the same to all YAML readers: put it in quotes, %q, or write a number in plain decimal", s)
	case "no number":
		return fmt.Sprintf("no number of the language: put it in quotes, %q, if it is text", s)
	}
	return fmt.Sprintf("text to some YAML readers and %s to others: put it in quotes, %q", what, s)
}

func (r *yamlReader) refuseAnchor(y *yaml.Node, path string) {
	for _, g := range r.d.list {
		if g.Text == noAnchors { // once is enough: there are as many as there are uses
			r.d.taint(path)
			return
		}
	}
	r.d.place(y.Line, y.Column, path, noAnchors)
}
