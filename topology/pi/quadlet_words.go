package pi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// specifier keeps a value as it is: systemd would expand % in any setting, and $ in the
// command line that the generator makes of it.
func specifier(s string) string {
	return strings.NewReplacer("%", "%%", "$", "$$").Replace(s)
}

// word makes one word of a setting that is split at spaces, whatever is in it.
func word(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '%' || c == '$':
			b.WriteByte(c)
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// asOne is a list of words as the runtime reads it from one value: JSON, in which nothing is lost.
func asOne(words []string) (string, bool) {
	for _, w := range words {
		if !utf8.ValidString(w) {
			return "", false
		}
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(words) != nil {
		return "", false
	}
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`), true
}

// fromOne reads what asOne wrote.
func fromOne(s string) (words []string) {
	if json.Unmarshal([]byte(s), &words) != nil {
		return nil
	}
	return words
}

// plain undoes specifier and word.
func plain(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return strings.NewReplacer("%%", "%", "$$", "$").Replace(s)
	}
	var b strings.Builder
	for s = s[1 : len(s)-1]; s != ""; s = s[1:] {
		switch {
		case len(s) > 3 && s[:2] == `\x`:
			n, err := strconv.ParseUint(s[2:4], 16, 8)
			if err != nil {
				return "" // nothing that word has written
			}
			b.WriteByte(byte(n))
			s = s[3:]
			continue
		case len(s) > 1 && (s[0] == '\\' || s[:2] == "%%" || s[:2] == "$$"):
			s = s[1:]
		}
		b.WriteByte(s[0])
	}
	return b.String()
}

// arguments takes a command apart.
func arguments(s string) []string {
	var out []string
	for s != "" {
		end := strings.IndexByte(s, ' ')
		if s[0] == '"' {
			for end = 1; end < len(s) && s[end] != '"'; end++ {
				if s[end] == '\\' {
					end++
				}
			}
			end++
		}
		if end < 0 || end > len(s) {
			end = len(s)
		}
		switch w := s[:end]; w {
		case "${" + emptyVar + "}":
			out = append(out, "")
		case "${" + semicolonVar + "}":
			out = append(out, ";")
		default:
			out = append(out, plain(w))
		}
		s = strings.TrimPrefix(s[end:], " ")
	}
	return out
}
