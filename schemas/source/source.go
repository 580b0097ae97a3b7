// Package source reads the text of a document, YAML or JSON, into one tree of plain
// JSON values that remembers where each value stands.
//
// It is the one reading of a document: of the operator's command, of CI, of the
// library and of the agent. It knows nothing of JSON Schema, so that the agent does
// not link an engine for it; package schemas adds that check between the reading and
// the decoding.
//
// YAML is read as the part of it on which all readers agree. Refused, each with a
// sentence and a place: anchors, aliases and merge keys, tags, keys that are no text or
// are given twice, several documents in one file, and plain scalars that one reader takes
// for text and another for something else, such as 0644, 1e3, 2024-01-01, 22:22, yes and
// off. A byte order mark is dropped, and CRLF ends a line as LF does.
//
// A field that is left out is not managed, or has its default; an empty list or mapping
// means the same as leaving it out; empty text is text. Null means none of these, and is
// refused, except in extensions.
package source

import (
	"bytes"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/continuo-fleet/continuo/score"
)

// maxSize is how many bytes a document may have. It is what a device opens at most.
const maxSize = 4 << 20

const (
	maxDepth  = 64      // levels of mappings and lists
	maxValues = 100_000 // in a document; a score has ten or so
	maxMarks  = 300_000 // line ends and commas of a YAML file: a bound for its values, which cost the parser up to 2 KiB each
)

// A Document is a text that was read, with everything that is wrong with it.
type Document struct {
	file string
	root *node  // nil: could not be read
	raw  []byte // the text itself, if it is JSON and nothing is wrong with it

	list       []Diagnostic // reported
	more       int          // reported beyond what is kept
	moreErrors bool         // errors among those

	stage   int
	tainted map[string]int // paths without a trustworthy value, reported or not, by the stage that found them
	above   map[string]int // the paths above those
}

// Read reads data; file is for messages, and its ending says what data is: .json is
// JSON, .yaml and .yml are YAML, and anything else is what it looks like. Read reports
// what is wrong with the text itself.
func Read(file string, data []byte) *Document {
	d := &Document{file: file, tainted: map[string]int{}, above: map[string]int{}}
	if len(data) > maxSize {
		d.place(1, 1, "", "file has %d bytes, at most %d are read", len(data), maxSize)
		return d
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !d.isText(data) {
		return d
	}
	if isJSON(file, data) {
		d.readJSON(data)
	} else {
		d.readYAML(data)
	}
	if d.root != nil && d.root.kind == null {
		d.root = nil
		d.place(1, 1, "", "no manifest in file")
	}
	return d
}

// isText reports the first byte that is not UTF-8.
func (d *Document) isText(data []byte) bool {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		d.place(1, 1, "", "file is UTF-16: save it as UTF-8")
		return false
	}
	if utf8.Valid(data) {
		return true
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			line, column := lineColumn(data, i)
			d.place(line, column, "", "byte %#02x is not UTF-8: save the file as UTF-8", data[i])
			break
		}
		i += n
	}
	return false
}

func isJSON(file string, data []byte) bool {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".json":
		return true
	case ".yaml", ".yml":
		return false
	}
	inner, ok := bytes.CutPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{"))
	inner = bytes.TrimLeft(inner, " \t\r\n")
	return ok && len(inner) > 0 && (inner[0] == '"' || inner[0] == '}')
}

// lineColumn counts from 1, columns in characters.
func lineColumn(data []byte, offset int) (line, column int) {
	before := data[:min(offset, len(data))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// Readable reports whether there is a tree to check at all.
func (d *Document) Readable() bool { return d.root != nil }

// Value returns the document as the values that package encoding/json would make, with
// numbers as json.Number.
func (d *Document) Value() any { return d.root.value() }

// Manifest reads a manifest as a device does: without its schema, but with the same
// verdict. The manifest is usable if no diagnostic is an error.
func Manifest(file string, data []byte) (score.Manifest, []Diagnostic) {
	d := Read(file, data)
	var m score.Manifest
	if d.Readable() {
		d.NextStage()
		d.checkShape(&m)
		d.Manifest(&m)
	}
	return m, d.Diagnostics()
}

// Decode reads a document of another type, such as a configuration, into v, strictly.
// validate is asked when v is filled, and may be nil. v is usable if no diagnostic is an
// error.
func Decode(file string, data []byte, v any, validate func() []score.Problem) []Diagnostic {
	d := Read(file, data)
	if d.Readable() {
		d.NextStage()
		d.checkShape(v)
		d.NextStage()
		d.decode(v, validate)
	}
	return d.Diagnostics()
}

// Manifest decodes d into m, strictly, and reports what is wrong with it as a manifest.
// What earlier stages have reported is left out, and what is around it is checked all
// the same.
func (d *Document) Manifest(m *score.Manifest) {
	d.NextStage()
	unnamed := d.unnamed()
	d.decode(m, func() []score.Problem {
		return slices.DeleteFunc(m.Validate(), func(p score.Problem) bool {
			return unnamed && referenceRE.MatchString(p.Path) // it may be the score whose id could not be read
		})
	})
}

func (d *Document) decode(v any, validate func() []score.Problem) {
	if err := score.Decode(d.JSON(), v); err != nil {
		de, ok := errors.AsType[*score.DecodeError](err)
		if !ok {
			de = &score.DecodeError{Text: err.Error()}
		}
		d.Report(de.Path, score.Error, "%s", de.Text)
		return
	}
	if validate != nil {
		for _, p := range validate() {
			d.Report(p.Path, p.Severity, "%s", p.Text)
		}
	}
}

var (
	referenceRE = regexp.MustCompile(`^/spec/scores/[0-9]+/(after|spec/restartOn)/`)
	nameRE      = regexp.MustCompile(`^/spec/scores/[0-9]+(/id)?$`)
)

// unnamed reports whether there is a score whose id is not known.
func (d *Document) unnamed() bool {
	for path := range d.tainted {
		if nameRE.MatchString(path) {
			return true
		}
	}
	return false
}

// JSON returns the document as JSON, without what was reported. The document must be
// Readable.
func (d *Document) JSON() []byte {
	switch {
	case len(d.tainted) == 0 && d.raw != nil:
		return d.raw
	case len(d.tainted) == 0:
		return d.root.appendJSON(nil)
	case d.isTainted(""):
		return []byte("{}") // everything is silenced
	}
	root := d.root.prune("", d.isTainted)
	if root == nil { // a list, where no document is one
		return []byte("[]")
	}
	if scores, _, _, whole := root.walk("/spec/scores"); whole {
		for _, sc := range scores.items {
			if sc.kind == object && sc.find("spec") < 0 { // it would hide the scores around it
				sc.addKey(key{name: "spec"})
				sc.items = append(sc.items, &node{kind: object})
			}
		}
	}
	return root.appendJSON(nil)
}
