package topology

import (
	"strings"
	"unicode"
)

// Excerpt is the end of what a program wrote, as it may stand in a status: at most LogLines
// lines and LogBytes bytes, valid UTF-8, without control characters, colours included.
func Excerpt(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	var kept []string
	for size := 0; len(lines) > 0 && len(kept) < LogLines; lines = lines[:len(lines)-1] {
		line := printable(lines[len(lines)-1])
		if size += len(line) + 1; size > LogBytes+1 {
			if len(kept) == 0 { // one line that is too long: its end
				kept = append(kept, strings.ToValidUTF8(line[len(line)-LogBytes:], ""))
			}
			break
		}
		kept = append(kept, line)
	}
	var b strings.Builder
	for i := len(kept) - 1; i >= 0; i-- {
		b.WriteString(kept[i])
		if i > 0 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Exceeds reports whether Excerpt leaves out a part of text.
func Exceeds(text string) bool {
	text = strings.TrimRight(text, "\n")
	return len(text) > LogBytes || strings.Count(text, "\n") >= LogLines
}

// printable drops what a terminal would act on.
func printable(line string) string {
	const escape = '\x1b'
	var b strings.Builder
	inEscape := false
	for _, c := range strings.ToValidUTF8(line, "\uFFFD") {
		switch {
		case c == escape:
			inEscape = true
		case inEscape: // ESC [ parameters letter, which is what colours are
			inEscape = c == '[' || c == ';' || '0' <= c && c <= '9'
		case c == '\t':
			b.WriteByte(' ')
		case unicode.IsControl(c), unicode.Is(unicode.Cf, c), unicode.Is(unicode.Zl, c), unicode.Is(unicode.Zp, c):
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}
