package score

import (
	"path"
	"slices"
	"strings"
)

// agentUnit is the unit of the agent.
const agentUnit = "continuo-agent.service"

// reaching are settings by which a unit does something to the units that it names: takes their name, enables or
// disables them as well, keeps them from starting, or stops them. By others it only waits for them or starts them.
var reaching = []string{"Install.Alias", "Install.Also", "Install.RequiredBy", "Unit.Conflicts", "Unit.PropagatesStopTo", "Socket.Service"}

// checkReach refuses the text of a unit that reaches for the agent itself.
func checkReach(r *Report, unit, text string) {
	for _, s := range UnitSettings(text) {
		if !slices.Contains(reaching, s.Name) {
			continue
		}
		for word := range strings.FieldsSeq(s.Value) {
			if expandUnit(strings.Trim(word, `"'`), unit) == agentUnit {
				_, name, _ := strings.Cut(s.Name, ".")
				r.Errorf("%s=%s reaches for the agent itself", name, agentUnit)
			}
		}
	}
}

// A UnitSetting is one assignment in the text of a unit.
type UnitSetting struct{ Name, Value string } // the name is Section.Setting

// UnitSettings takes the text of a unit apart as the service manager does: a backslash at the end of a line goes on in
// the next, and comments in between are left out.
func UnitSettings(text string) (out []UnitSetting) {
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
			out = append(out, UnitSetting{section + "." + strings.TrimSpace(key), strings.TrimSpace(value)})
		}
	}
	return out
}

// expandUnit fills in what a text says about the name of the unit that it is in.
func expandUnit(s, unit string) string {
	whole := strings.TrimSuffix(unit, path.Ext(unit))
	prefix, instance, _ := strings.Cut(whole, "@")
	last := prefix[strings.LastIndexByte(prefix, '-')+1:]
	return strings.NewReplacer("%%", "%", "%n", unit, "%N", whole, "%p", prefix, "%P", prefix, "%i", instance, "%I", instance, "%j", last, "%J", last).Replace(s)
}
