package export

import (
	"path"
	"strings"
)

// A setting is one assignment in the text of a unit or a Quadlet file.
type setting struct {
	name, value string // Section.Setting
	in          string // path of the file
}

// settings takes a text apart as the service manager does: a backslash at the end of a line goes on in the next, and
// comments in between are left out.
func settings(in, text string) (out []setting) {
	section, begun := "", ""
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r", "\n"), "\n") {
		line = strings.TrimLeft(line, " \t")
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		if rest, more := strings.CutSuffix(line, `\`); more {
			begun += rest + " "
			continue
		}
		line, begun = strings.TrimSpace(begun+line), ""
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
		} else if key, value, is := strings.Cut(line, "="); is {
			out = append(out, setting{section + "." + strings.TrimSpace(key), strings.TrimSpace(value), in})
		}
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

// words takes a command line apart; what is quoted or escaped in another way than whole words is not clear.
func words(s string) (out []string, clear bool) {
	for s = strings.TrimLeft(s, " \t"); s != ""; s = strings.TrimLeft(s, " \t") {
		var word string
		if q := s[0]; q == '"' || q == '\'' {
			end := strings.IndexByte(s[1:], q)
			if end < 0 || end+2 < len(s) && s[end+2] != ' ' && s[end+2] != '\t' {
				return nil, false
			}
			word, s = s[1:end+1], s[end+2:]
		} else {
			end := strings.IndexAny(s, " \t")
			if end < 0 {
				end = len(s)
			}
			word, s = s[:end], s[end:]
		}
		out = append(out, word)
	}
	return out, true
}

// programs are the programs that an Exec setting starts, with their prefixes. The words of each after its first are its own
// to understand, and not read.
func programs(value string) (out []string, clear bool) {
	first := true
	for s := strings.TrimLeft(value, " \t"); s != ""; s = strings.TrimLeft(s, " \t") {
		word, rest := s, ""
		if i := strings.IndexAny(s, " \t"); i >= 0 {
			word, rest = s[:i], s[i:]
		}
		switch {
		case word == ";":
			first = true
		case first:
			bare := strings.TrimLeft(word, "@-:+!|")
			if strings.ContainsAny(bare, `"'\`) {
				in, clear := words(strings.TrimPrefix(s, word[:len(word)-len(bare)]))
				if !clear || strings.Contains(bare, `\`) || len(in) == 0 {
					return nil, false
				}
				word, rest = word[:len(word)-len(bare)]+in[0], s[len(word)-len(bare)+len(in[0])+2:]
			}
			out, first = append(out, word), false
		}
		s = rest
	}
	return out, true
}
