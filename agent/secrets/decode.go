package secrets

import (
	"bytes"
	"fmt"
	"strings"
)

// decodeEnv reads the settings of a file. It is a part of what systemd reads as an
// EnvironmentFile: what systemd and a shell could understand as something else is refused.
//
//	file    = *( line LF )                    the last LF may be missing
//	line    = blanks | blanks ("#" | ";") text | blanks NAME "=" value
//	NAME    = 1 to 128 of A-Z a-z 0-9 _ . -   not "." or "-" first
//	value   = blanks plain blanks             without quotes, backslashes, and " #" inside
//	        | blanks "'" text "'" blanks      as it is, over several lines if need be
//	        | blanks '"' text '"' blanks      the same, with \" \\ \$ and \`
//	blanks  = spaces and tabs
//
// No byte is NUL or CR. A name occurs once. Errors name lines, and never what is in them.
func decodeEnv(text []byte) (map[string][]byte, error) {
	if i := bytes.IndexAny(text, "\x00\r"); i >= 0 {
		return nil, lineError(text, i, "it holds a NUL or a carriage return")
	}
	out, first := map[string][]byte{}, map[string]int{}
	for at := 0; at < len(text); {
		start := at
		end := at + lineEnd(text[at:])
		line := bytes.TrimLeft(text[at:end], " \t")
		if len(line) == 0 || line[0] == '#' || line[0] == ';' {
			at = end + 1
			continue
		}
		name, rest, ok := bytes.Cut(line, []byte("="))
		if !ok || !validName(string(name)) {
			return nil, lineError(text, start, "it is not NAME=value")
		}
		n := 1 + bytes.Count(text[:start], []byte("\n"))
		if was := first[string(name)]; was > 0 {
			return nil, fmt.Errorf("line %d sets %s again, after line %d", n, name, was)
		}
		first[string(name)] = n
		value, used, why := decodeValue(text[end-len(rest):])
		if why != "" {
			return nil, lineError(text, start, why)
		}
		out[string(name)] = value
		at = end - len(rest) + used
	}
	return out, nil
}

// decodeValue reads a value and what follows it, up to the next line.
func decodeValue(text []byte) (value []byte, used int, why string) {
	at := len(text) - len(bytes.TrimLeft(text, " \t"))
	if at == len(text) || text[at] != '\'' && text[at] != '"' {
		end := lineEnd(text)
		plain := bytes.Trim(text[:end], " \t")
		if bytes.ContainsAny(plain, "'\"\\") {
			return nil, 0, "its value holds a quote or a backslash: put it between single quotes"
		}
		if bytes.Contains(plain, []byte(" #")) || bytes.Contains(plain, []byte("\t#")) {
			return nil, 0, "its value holds what could be a comment: put the value between quotes, or the comment on a line of its own"
		}
		return bytes.Clone(plain), end + 1, ""
	}
	quote := text[at]
	value = []byte{}
	for at++; ; at++ {
		switch {
		case at >= len(text):
			return nil, 0, "the quote that begins there does not end"
		case text[at] == quote:
			end := at + 1 + lineEnd(text[at+1:])
			if len(bytes.Trim(text[at+1:end], " \t")) > 0 {
				return nil, 0, "something follows the quote that ends its value"
			}
			return value, end + 1, ""
		case text[at] == '\\' && quote == '"':
			if at++; at >= len(text) || strings.IndexByte("\"\\$`", text[at]) < 0 {
				return nil, 0, "between double quotes a backslash stands before \", \\, $ or ` only: use single quotes"
			}
		}
		value = append(value, text[at])
	}
}

func lineEnd(text []byte) int {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return i
	}
	return len(text)
}

func lineError(text []byte, at int, why string) error {
	return fmt.Errorf("line %d: %s", 1+bytes.Count(text[:at], []byte("\n")), why)
}

// validName is what score.SecretRef allows.
func validName(name string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
	return len(name) > 0 && len(name) <= 128 && strings.Trim(name, letters+".-") == "" && strings.IndexByte(letters, name[0]) >= 0
}
