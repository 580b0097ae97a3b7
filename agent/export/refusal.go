package export

import (
	"fmt"
	"strings"
)

// A Code says why something is not exported.
type Code string

// Codes.
const (
	CodeTooLarge    Code = "too_large"    // one file is larger than a file may be
	CodeTooMany     Code = "too_many"     // there are more files, directories and links than may be
	CodeTooMuch     Code = "too_much"     // the files are too large together
	CodeClass       Code = "class"        // by its path it is nothing that a repository keeps
	CodeType        Code = "type"         // a pipe, a socket, a device, or a file with rights of another
	CodeUnscannable Code = "unscannable"  // no text, so that nobody can say what is in it
	CodeSecret      Code = "secret"       // a secret is written in it
	CodePrivate     Code = "private"      // not everybody may read it, and it was not named by itself
	CodeChanged     Code = "live_changed" // it changed whenever it was read
	CodeMissing     Code = "missing"      // it, or what it refers to, is not there
	CodeOutside     Code = "outside"      // what it refers to may not be exported
	CodeUnclear     Code = "unclear"      // it refers to something that only its program can find
	CodeNotAllowed  Code = "not_allowed"  // the device's own configuration does not let it be adopted
	CodeUnreadable  Code = "unreadable"   // the device could not read it
	CodeOwn         Code = "own"          // it is the agent's own
	CodeUnsaid      Code = "unsaid"       // no score can say it
)

// A Finding is one thing that is not exported.
type Finding struct {
	// Path of it, or its name.
	Path string `json:"path"`
	// From is the path of what refers to it.
	From string `json:"from,omitempty"`
	// Code says why.
	Code Code `json:"code"`
	// Why, for people. It never has a value.
	Why string `json:"why"`
}

func (f Finding) String() string {
	if f.From != "" {
		return fmt.Sprintf("%s refers to %s, and %s (%s)", f.From, f.Path, f.Why, f.Code)
	}
	return fmt.Sprintf("%s: %s (%s)", f.Path, f.Why, f.Code)
}

// maxFindings is how many findings are told.
const maxFindings = 20

// A Refusal says why nothing was exported.
type Refusal struct {
	// Findings that refuse it, not all if there are many.
	Findings []Finding `json:"findings"`
}

func (r *Refusal) Error() string {
	lines := make([]string, 0, len(r.Findings))
	for _, f := range r.Findings {
		lines = append(lines, f.String())
	}
	return "nothing was exported: " + strings.Join(lines, "; ")
}
