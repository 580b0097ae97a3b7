package score

import (
	"fmt"
	"strconv"
	"strings"
)

// A Severity says whether a problem stops a document from being used.
type Severity string

// Severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// A Problem is one thing wrong with a document.
type Problem struct {
	// Path is a JSON pointer (RFC 6901) into the document: "/spec/scores/2/spec/mode".
	Path     string   `json:"path"`
	Severity Severity `json:"severity"`
	// Text is a sentence a person understands, without the path.
	Text string `json:"text"`
}

func (p Problem) String() string { return p.Path + ": " + p.Text }

// A Report collects problems at a place in a document. The zero value is not
// usable; start with NewReport.
type Report struct {
	path string
	all  *[]Problem
}

// NewReport returns an empty report at the root of a document.
func NewReport() *Report { return &Report{all: new([]Problem)} }

// At returns a report one or more steps further down, sharing the problems of r.
// The step ".." goes up.
func (r *Report) At(steps ...any) *Report {
	p := r.path
	for _, s := range steps {
		var t string
		switch s := s.(type) {
		case string:
			t = s
		case ID:
			t = string(s)
		case int:
			t = strconv.Itoa(s)
		default:
			t = fmt.Sprint(s)
		}
		if t == ".." {
			p = p[:max(strings.LastIndexByte(p, '/'), 0)]
			continue
		}
		if strings.ContainsAny(t, "~/") {
			t = escaper.Replace(t)
		}
		p += "/" + t
	}
	return &Report{p, r.all}
}

// escaper is made once: building it is most of the cost of validating a manifest.
var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// Errorf adds an error at r.
func (r *Report) Errorf(format string, args ...any) {
	*r.all = append(*r.all, Problem{r.path, Error, fmt.Sprintf(format, args...)})
}

// Warnf adds a warning at r.
func (r *Report) Warnf(format string, args ...any) {
	*r.all = append(*r.all, Problem{r.path, Warning, fmt.Sprintf(format, args...)})
}

// Problems returns what was found, in the order it was found.
func (r *Report) Problems() []Problem { return *r.all }

// Errors counts the problems that are errors.
func Errors(ps []Problem) int {
	n := 0
	for _, p := range ps {
		if p.Severity == Error {
			n++
		}
	}
	return n
}
