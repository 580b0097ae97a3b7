package score

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A Duration is written as text, such as "90s" or "1h30m".
type Duration time.Duration

// String is the text form, without the units that are zero behind the others: 1h, not 1h0m0s.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText writes the text form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the text form. A bare number is refused: its unit would be a guess.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil || !durationRE.Match(b) {
		return fmt.Errorf("cannot read duration %q: want text such as \"90s\"", b)
	}
	*d = Duration(v)
	return nil
}

// A Mode is a file mode with setuid, setgid and sticky bits, written as octal text
// with a leading zero: "0644". A bare number is refused, because readers disagree
// on its base.
type Mode uint32

func (m Mode) String() string { return fmt.Sprintf("%04o", uint32(m)) }

// MarshalText writes the text form.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the text form.
func (m *Mode) UnmarshalText(b []byte) error {
	v, err := strconv.ParseUint(string(b), 8, 32)
	if err != nil || v > 0o7777 || len(b) < 3 || len(b) > 5 {
		return fmt.Errorf("cannot read mode %q: want octal text such as \"0644\"", b)
	}
	*m = Mode(v)
	return nil
}

// Patterns of the text types, shared by the types and their schemas.
const (
	ModePattern     = `^0?[0-7]{3,4}$`
	DurationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	IDPattern       = `^[a-z0-9]([a-z0-9._-]*[a-z0-9])?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)*$`
	NamePattern     = `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`
)

var (
	durationRE = regexp.MustCompile(DurationPattern)
	idRE       = regexp.MustCompile(IDPattern)
	nameRE     = regexp.MustCompile(NamePattern)
)

// Valid reports whether id is one that a manifest may use.
func (id ID) Valid() bool { return len(id) <= 128 && idRE.MatchString(string(id)) }

// ValidName reports whether a manifest, a device or a site may have a name.
func ValidName(name string) bool { return nameRE.MatchString(name) }

func (id ID) check(r *Report) {
	if !id.Valid() {
		r.Errorf("id %q must be lower-case letters, digits, '.', '_' and '-', parts divided by '/', at most 128 long", id)
	}
}
