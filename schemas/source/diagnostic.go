package source

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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

// String is "FILE:LINE:COLUMN: path: text", as compilers write it.
func (g Diagnostic) String() string {
	s := fmt.Sprintf("%s:%d:%d: ", g.File, g.Line, g.Column)
	if g.Path != "" {
		s += g.Path + ": "
	}
	if g.Severity == score.Warning {
		s += "warning: "
	}
	return s + g.Text
}

const (
	maxKept  = 1000 // diagnostics that are kept while reading
	maxShown = 100  // of them shown
)

// NextStage begins a stage of checks. What an earlier stage reported silences later
// stages there, above and below: one mistake is reported once.
func (d *Document) NextStage() { d.earlier = len(d.tainted) }

// Report adds a problem with the value at path, unless an earlier stage has reported
// it, or this stage has reported that very value.
func (d *Document) Report(path string, s score.Severity, format string, args ...any) {
	if d.root == nil || d.silenced(path) {
		return
	}
	line, column := d.root.position(path)
	d.add(line, column, path, s, fmt.Sprintf(format, args...))
	if s == score.Error {
		d.taint(path)
	}
}

func (d *Document) silenced(path string) bool {
	for i, t := range d.tainted {
		if t == path || i < d.earlier && (t == "" || path == "" || strings.HasPrefix(path, t+"/") || strings.HasPrefix(t, path+"/")) {
			return true
		}
	}
	return false
}

// place reports an error at a place.
func (d *Document) place(line, column int, path, format string, args ...any) {
	d.add(line, column, path, score.Error, fmt.Sprintf(format, args...))
	d.taint(path)
}

func (d *Document) add(line, column int, path string, s score.Severity, text string) {
	if len(d.list) == maxKept {
		d.more++
		return
	}
	d.list = append(d.list, Diagnostic{d.file, line, column, path, s, text})
}

// taint says that there is no trustworthy value at path.
func (d *Document) taint(path string) {
	if len(d.tainted) < 2*maxKept {
		d.tainted = append(d.tainted, path)
	}
}

// Diagnostics returns what was reported, in the order of the text. Of more than a
// hundred the rest is only counted.
func (d *Document) Diagnostics() []Diagnostic {
	out := slices.Clone(d.list)
	slices.SortStableFunc(out, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
	out = slices.Compact(out)
	if more := len(out) - maxShown + d.more; more > 0 {
		last := out[maxShown-1]
		out = append(out[:maxShown], Diagnostic{d.file, last.Line, last.Column, "", score.Error, fmt.Sprintf("and %d more", more)})
	}
	return out
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
