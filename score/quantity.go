package score

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// Bytes is an amount of memory or storage, written as text in binary units: "512Ki",
// "256Mi", "1Gi". A bare number is refused: its unit would be a guess.
type Bytes uint64

var byteUnits = []struct {
	name  string
	shift uint
}{{"Ti", 40}, {"Gi", 30}, {"Mi", 20}, {"Ki", 10}}

// String is the text in the largest unit that divides it. An amount that has no text, zero
// or no multiple of 1Ki, is shown as a number.
func (b Bytes) String() string {
	for _, u := range byteUnits {
		if b != 0 && b%(1<<u.shift) == 0 {
			return strconv.FormatUint(uint64(b)>>u.shift, 10) + u.name
		}
	}
	return strconv.FormatUint(uint64(b), 10)
}

// MarshalText writes the text form.
func (b Bytes) MarshalText() ([]byte, error) {
	if b == 0 || b%1024 != 0 {
		return nil, fmt.Errorf("cannot write a size of %d bytes: want a multiple of 1Ki, such as 256 << 20", uint64(b))
	}
	return []byte(b.String()), nil
}

// UnmarshalText reads the text form.
func (b *Bytes) UnmarshalText(text []byte) error {
	m := bytesRE.FindSubmatch(text)
	if m == nil {
		return fmt.Errorf("cannot read size %q: want text such as \"256Mi\": a whole number of Ki, Mi, Gi or Ti", text)
	}
	n, err := strconv.ParseUint(string(m[1]), 10, 64)
	for _, u := range byteUnits {
		if u.name == string(m[2]) {
			if err != nil || n > math.MaxInt64>>u.shift {
				return fmt.Errorf("cannot read size %q: it is too large", text)
			}
			*b = Bytes(n << u.shift)
		}
	}
	return nil
}

// Percent is a share of one processor, written as text: "50%" is half of one, "200%" two
// of them.
type Percent uint32

func (p Percent) String() string { return strconv.FormatUint(uint64(p), 10) + "%" }

// MarshalText writes the text form.
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the text form.
func (p *Percent) UnmarshalText(text []byte) error {
	if !percentRE.Match(text) {
		return fmt.Errorf("cannot read share %q: want text such as \"50%%\", from 1%% to 99999%%", text)
	}
	n, err := strconv.ParseUint(string(text[:len(text)-1]), 10, 32)
	if err != nil {
		return fmt.Errorf("cannot read share %q: %w", text, err)
	}
	*p = Percent(n)
	return nil
}

// Patterns of the quantities, shared by the types and their schemas.
const (
	BytesPattern   = `^([1-9][0-9]{0,14})([KMGT]i)$`
	PercentPattern = `^[1-9][0-9]{0,4}%$`
)

var (
	bytesRE   = regexp.MustCompile(BytesPattern)
	percentRE = regexp.MustCompile(PercentPattern)
)
