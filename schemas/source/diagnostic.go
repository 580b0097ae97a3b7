package source

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/continuo-fleet/continuo/score"
)

// A Diagnostic is one thing that is wrong with a document, and where.
type Diagnostic struct {
	File     string         `json:"file"`
	Line     int            `json:"line"`   // from 1
	Column   int            `json:"column"` // from 1, in characters
	Path     string         `json:"path"`   // JSON pointer (RFC 6901); empty: the document
	Severity score.Severity `json:"severity"`
	Text     string         `json:"text"` // a sentence a person understands, without place and path
}

// String is "FILE:LINE:COLUMN: path: text", as compilers write it: one line, and harmless on a terminal, whatever names
// and values of a document are in it.
func (g Diagnostic) String() string {
	s := fmt.Sprintf("%s:%d:%d: ", g.File, g.Line, g.Column)
	if g.Path != "" {
		s += g.Path + ": "
	}
	if g.Severity == score.Warning {
		s += "warning: "
	}
	return visible(s + g.Text)
}

// visible writes what does not print, such as escape sequences and line ends, as Go writes it in a string.
func visible(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 && utf8.ValidString(s) {
		return s
	}
	s = strconv.QuoteToGraphic(s)
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(s[1 : len(s)-1])
}

const (
	maxKept  = 1000 // diagnostics that are kept while reading
	maxShown = 100  // of them shown
)

// NextStage begins a stage of checks. What an earlier stage reported silences later
// stages there, above and below: one mistake is reported once.
func (d *Document) NextStage() { d.stage++ }

// Report adds a problem with the value at path, unless an earlier stage has reported
// it, or this stage has reported that very value.
func (d *Document) Report(path string, s score.Severity, format string, args ...any) {
	if d.full(s) || d.root == nil || d.silenced(path) {
		return
	}
	line, column := d.root.position(path)
	d.add(line, column, path, s, fmt.Sprintf(format, args...))
	if s == score.Error {
		d.taint(path)
	}
}

// full counts a report that is one too many.
func (d *Document) full(s score.Severity) bool {
	if len(d.list) < maxKept {
		return false
	}
	d.more++
	d.moreErrors = d.moreErrors || s == score.Error
	return true
}

// silenced reports whether a report at path would repeat one: of this stage at path, or of
// an earlier stage at path, above it or below it.
func (d *Document) silenced(path string) bool {
	if d.isTainted(path) {
		return true
	}
	if stage, ok := d.above[path]; ok && stage < d.stage {
		return true
	}
	for path != "" {
		path = parent(path)
		if stage, ok := d.tainted[path]; ok && stage < d.stage {
			return true
		}
	}
	return false
}

func (d *Document) isTainted(path string) bool {
	_, ok := d.tainted[path]
	return ok
}

// place reports an error at a place.
func (d *Document) place(line, column int, path, format string, args ...any) {
	d.add(line, column, path, score.Error, fmt.Sprintf(format, args...))
	d.taint(path)
}

func (d *Document) add(line, column int, path string, s score.Severity, text string) {
	if d.full(s) {
		return
	}
	d.list = append(d.list, Diagnostic{d.file, line, column, path, s, text})
}

func parent(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }

// taint says that there is no trustworthy value at path.
func (d *Document) taint(path string) {
	if d.isTainted(path) {
		return
	}
	d.tainted[path] = d.stage
	for path != "" {
		path = parent(path)
		if _, ok := d.above[path]; !ok {
			d.above[path] = d.stage
		}
	}
}

// Diagnostics returns what was reported, in the order of the text. Of more than a
// hundred, errors are kept rather than warnings, and the rest is only counted.
func (d *Document) Diagnostics() []Diagnostic {
	out := slices.Clone(d.list)
	slices.SortStableFunc(out, byPlace)
	more := len(out) - maxShown + d.more
	if len(out) <= maxShown {
		return out
	}
	slices.SortStableFunc(out, func(a, b Diagnostic) int { return cmp.Compare(a.Severity, b.Severity) }) // "error" < "warning"
	severity := out[maxShown].Severity
	if d.moreErrors {
		severity = score.Error
	}
	out = out[:maxShown]
	slices.SortStableFunc(out, byPlace)
	last := out[maxShown-1]
	return append(out, Diagnostic{d.file, last.Line, last.Column, "", severity, fmt.Sprintf("and %d more", more)})
}

func byPlace(a, b Diagnostic) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
}

// Errors counts the diagnostics that are errors.
func Errors(gs []Diagnostic) int {
	n := 0
	for _, g := range gs {
		if g.Severity == score.Error {
			n++
		}
	}
	return n
}
