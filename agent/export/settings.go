package export

import (
	"path"
	"strings"

	"github.com/continuo-fleet/continuo/score"
)

// A setting is one assignment in the text of a unit or a Quadlet file.
type setting struct {
	name, value string // Section.Setting
	in          string // path of the file
}

// settings are those of a text, as the service manager takes it apart.
func settings(in, text string) (out []setting) {
	for _, s := range score.UnitSettings(text) {
		out = append(out, setting{s.Name, s.Value, in})
	}
	return out
}

// inForce drops what a later, empty assignment takes back.
func inForce(all []setting) (out []setting) {
	for _, s := range all {
		if s.value != "" {
			out = append(out, s)
			continue
		}
		kept := out[:0]
		for _, o := range out {
			if o.name != s.name {
				kept = append(kept, o)
			}
		}
		out = kept
	}
	return out
}

// expand fills in the specifiers whose value is known without asking the service manager.
func expand(s, unit string, system bool) (out string, clear bool) {
	whole := strings.TrimSuffix(unit, path.Ext(unit))
	prefix, instance, templated := strings.Cut(whole, "@")
	known := map[byte]string{'%': "%", 'p': prefix, 'j': prefix[strings.LastIndexByte(prefix, '-')+1:]}
	if !templated || instance != "" {
		known['n'], known['N'], known['i'] = unit, whole, instance
		if !strings.ContainsAny(instance, `-\`) { // else it is escaped
			known['I'] = instance
		}
	}
	if system {
		known['E'], known['S'], known['t'], known['C'], known['L'], known['T'], known['V'] = "/etc", "/var/lib", "/run", "/var/cache", "/var/log", "/tmp", "/var/tmp"
		known['h'] = "/root"
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", false
		}
		value, is := known[s[i]]
		if !is {
			return "", false
		}
		b.WriteString(value)
	}
	return b.String(), true
}

// programs are the programs that an Exec setting starts, with their prefixes. The words behind each are its own to
// understand, and are skipped. A program that is escaped, or quoted in part, is not clear.
func programs(value string) (out []string, clear bool) {
	first := true
	for s := strings.TrimLeft(value, " \t"); s != ""; s = strings.TrimLeft(s, " \t") {
		word := s[:wordEnd(s)]
		s = s[len(word):]
		if word == ";" {
			first = true
			continue
		}
		if !first {
			continue
		}
		bare := strings.TrimLeft(word, "@-:+!|")
		prefix := word[:len(word)-len(bare)]
		if n := len(bare); n > 1 && (bare[0] == '"' || bare[0] == '\'') && bare[n-1] == bare[0] {
			bare = bare[1 : n-1]
		}
		if bare == "" || strings.ContainsAny(bare, `"'\`) {
			return nil, false
		}
		out, first = append(out, prefix+bare), false
	}
	return out, true
}

// wordEnd is where the first word of a command line ends: at a space that is neither quoted nor escaped.
func wordEnd(s string) int {
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == ' ' || c == '\t':
			return i
		}
	}
	return len(s)
}
