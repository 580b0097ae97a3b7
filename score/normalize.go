package score

import (
	"bytes"
	"slices"
)

// A Normalization is a difference between two texts that does not count.
type Normalization string

// Normalizations.
const (
	NormalizeCRLF            Normalization = "crlf"            // how lines end: as on Windows, or as everywhere else
	NormalizeTrailingNewline Normalization = "trailingNewline" // whether, and how often, the last line ends
)

var normalizations = []string{string(NormalizeCRLF), string(NormalizeTrailingNewline)}

// Normalize is the form of a text in which it is compared: two texts that differ only in what
// does not count have one. Doing it again changes nothing.
func Normalize(text []byte, what []Normalization) []byte {
	if slices.Contains(what, NormalizeCRLF) {
		text = dropCR(text)
	}
	if slices.Contains(what, NormalizeTrailingNewline) {
		text = bytes.TrimRight(text, "\n")
	}
	return text
}

// dropCR drops every carriage return that is before the end of a line. All of them: of two,
// one would be left for the next time.
func dropCR(text []byte) []byte {
	if !bytes.Contains(text, []byte("\r\n")) {
		return text
	}
	out := make([]byte, 0, len(text))
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutSuffix(line, []byte("\n")); ok {
			out = append(append(out, bytes.TrimRight(rest, "\r")...), '\n')
			continue
		}
		out = append(out, line...)
	}
	return out
}

func checkNormalize(r *Report, what []Normalization) {
	for i, n := range what {
		if !slices.Contains(normalizations, string(n)) {
			r.At(i).Errorf("unknown normalization %q%s", n, didYouMean(string(n), normalizations))
		} else if slices.Contains(what[:i], n) {
			r.At(i).Errorf("%s is listed twice", n)
		}
	}
}
