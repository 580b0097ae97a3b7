package topology

import (
	"slices"
	"strings"
)

// UnitSettings names the settings that the text of a unit file or a drop-in makes, as Section.Setting, each once, sorted; at
// most 64 of them, of at most 100 bytes. Values are not read.
func UnitSettings(text string) (out []string) {
	const most, longest = 64, 100
	section, continued := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		was := continued
		if line == "" || line[0] == '#' || line[0] == ';' {
			continued = continued && line != "" // a comment does not end a line that goes on
			continue
		}
		continued = strings.HasSuffix(line, `\`)
		if was {
			continue
		}
		if line[0] == '[' {
			section = strings.Trim(line, "[]")
			continue
		}
		key, _, is := strings.Cut(line, "=")
		name := section + "." + strings.TrimSpace(key)
		if is && section != "" && len(name) <= longest && !slices.Contains(out, name) {
			out = append(out, strings.ToValidUTF8(name, "\uFFFD"))
		}
		if len(out) == most {
			break
		}
	}
	slices.Sort(out)
	return out
}
