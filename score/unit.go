package score

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	unitRE        = regexp.MustCompile(`^[A-Za-z0-9:_.\\-]+(@[A-Za-z0-9:_.\\-]*)?\.(service|socket|timer|path|mount|automount|swap|target)$`)
	dropInRE      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,199}$`)
	accountNameRE = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)
	// a setting of a unit file, at the start of a line
	oneshotRE = regexp.MustCompile(`(?mi)^\s*Type\s*=\s*oneshot\s*$`)
	remainRE  = regexp.MustCompile(`(?mi)^\s*RemainAfterExit\s*=\s*(1|yes|true|on)\s*$`)
	reloadRE  = regexp.MustCompile(`(?mi)^\s*(ExecReload\s*=\s*\S|Type\s*=\s*notify-reload\s*$)`)
	installRE = regexp.MustCompile(`(?m)^\s*\[Install\]\s*$`)
	sectionRE = regexp.MustCompile(`(?m)^\s*\[([A-Za-z-]+)\]\s*$`)
)

var unitSections = []string{"Unit", "Service", "Socket", "Timer", "Path", "Mount", "Automount", "Swap", "Install"}

// Check refuses units that no service manager would take, and wishes that contradict
// themselves.
func (s Service) Check(r *Report) {
	s.checkUnit(r)
	if s.UnitFile == "" && len(s.DropIns) == 0 && s.Limits == nil && s.Enabled == nil && s.Masked == nil && s.State == "" && s.Run == "" && s.Linger == nil {
		r.Errorf("the score asks for nothing: give unitFile, dropIns, limits, enabled, masked, state or run")
	}
	for _, word := range []struct {
		field, have string
		words       []string
	}{{"state", string(s.State), []string{string(Running), string(Stopped)}}, {"run", s.Run, []string{RunOnce}}, {"log", s.Log, []string{LogExcerpt, NoLog}}} {
		if word.have != "" && !slices.Contains(word.words, word.have) {
			r.At(word.field).Errorf("unknown %s %q%s", word.field, word.have, didYouMean(word.have, word.words))
		}
	}
	s.checkUnitFile(r)
	s.checkDropIns(r)
	s.checkMasked(r)
	s.checkRun(r)
	s.checkTriggers(r)
}

func (s Service) checkUnit(r *Report) {
	switch {
	case len(s.Unit) > 255 || !unitRE.MatchString(s.Unit):
		r.At("unit").Errorf("unit %q must be a full unit name such as kiosk.service", s.Unit)
	case strings.Contains(s.Unit, "@."):
		r.At("unit").Errorf("unit %q is a template; name an instance, such as %s", s.Unit, strings.Replace(s.Unit, "@.", "@1.", 1))
	case strings.HasPrefix(s.Unit, "continuo-agent."): // a timer, a socket or a path of that name starts it
		r.At("unit").Errorf("%s is the agent itself", s.Unit)
	case isAgents(UnitDir + s.Unit + ".d/x.conf"):
		r.At("unit").Errorf("what is said of %s holds for the agent itself as well", s.Unit)
	}
	switch {
	case s.User == "":
		if s.Linger != nil {
			r.At("linger").Errorf("linger goes with user")
		}
	case s.User == "root":
		r.At("user").Errorf("units of root are those of the system: leave user out")
	case !accountNameRE.MatchString(s.User):
		r.At("user").Errorf("user %q is no name of an account", s.User)
	}
}

func (s Service) checkUnitFile(r *Report) {
	if s.UnitFile == "" {
		return
	}
	checkUnitText(r.At("unitFile"), "unitFile", s.UnitFile)
	if want := section(s.Unit); want != "" && sectionRE.MatchString(s.UnitFile) && !slices.Contains(sections(s.UnitFile), want) {
		r.At("unitFile").Errorf("the unit file of %s has no section [%s]", s.Unit, want)
	}
	if s.Enabled != nil && *s.Enabled && !installRE.MatchString(s.UnitFile) {
		r.At("enabled").Errorf("a unit without an [Install] section cannot be enabled")
	}
	if s.User == "" {
		checkReach(r.At("unitFile"), s.Unit, s.UnitFile)
	}
}

// checkUnitText refuses what is no text of a unit.
func checkUnitText(r *Report, what, text string) {
	if !slices.ContainsFunc(sections(text), func(s string) bool { return slices.Contains(unitSections, s) }) {
		r.Errorf("%s has no section such as [Service]", what)
	}
	if strings.ContainsRune(text, 0) {
		r.Errorf("%s has a NUL byte", what)
	}
	if strings.ContainsRune(strings.ReplaceAll(text, "\r\n", "\n"), '\r') {
		r.Errorf("%s has a carriage return within a line, which the service manager takes for the end of it", what)
	}
}

// sections names the sections of the text of a unit.
func sections(text string) (out []string) {
	for _, m := range sectionRE.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// section is the one that the file of a unit must have; empty if it needs none.
func section(unit string) string {
	suffix := strings.TrimPrefix(path.Ext(unit), ".")
	if suffix == "target" || suffix == "" {
		return ""
	}
	return strings.ToUpper(suffix[:1]) + suffix[1:]
}

func (s Service) checkDropIns(r *Report) {
	for _, name := range slices.Sorted(maps.Keys(s.DropIns)) {
		at := r.At("dropIns", name)
		switch {
		case strings.HasSuffix(name, ".conf"):
			at.Errorf("the name of drop-in %q is given without .conf", name)
		case !dropInRE.MatchString(name):
			at.Errorf("drop-in %q must be a name of letters, digits, '_', '.' and '-', such as 10-env", name)
		case name == LimitsDropIn:
			at.Errorf("drop-in %s is where limits are written: choose another name", name)
		}
		checkUnitText(at, "drop-in", s.DropIns[name])
		if installRE.MatchString(s.DropIns[name]) {
			at.Errorf("[Install] has no effect in a drop-in: it belongs in unitFile")
		}
		if s.User == "" {
			checkReach(at, s.Unit, s.DropIns[name])
		}
	}
	if s.Limits == nil {
		return
	}
	if !strings.HasSuffix(s.Unit, ".service") {
		r.At("limits").Errorf("limits go with a service, and %s is none", s.Unit)
	}
	s.Limits.check(r.At("limits"))
}

func (s Service) checkMasked(r *Report) {
	if !s.masked() {
		return
	}
	switch {
	case s.UnitFile != "":
		r.At("masked").Errorf("unitFile and masked: true contradict each other: the mask is in the place of the unit file; leave one of them out")
	case s.State == Running || s.Run != "" || s.Enabled != nil && *s.Enabled:
		r.At("masked").Errorf("masked: true contradicts a unit that is to be started: leave out state: running, run and enabled: true, or the mask")
	case len(s.DropIns) > 0 || s.Limits != nil:
		r.At("masked").Errorf("nothing that is said of a masked unit is read: leave out dropIns and limits, or the mask")
	}
}

// checkRun is about what runs to its end (cases.md 53).
func (s Service) checkRun(r *Report) {
	text := s.settings()
	oneshot, remain := oneshotRE.MatchString(text), remainRE.MatchString(text)
	if s.State == Running && oneshot && !remain {
		r.At("state").Errorf("a oneshot without RemainAfterExit=yes does not stay running: add it, or leave state out and say run: once, or enable the unit or the timer that starts it")
	}
	if s.Run == "" {
		return
	}
	switch {
	case !strings.HasSuffix(s.Unit, ".service"):
		r.At("run").Errorf("run goes with a service, and %s is none", s.Unit)
	case s.State != "":
		r.At("run").Errorf("run and state contradict each other: what runs to its end is neither running nor stopped; leave state out")
	case s.UnitFile != "" && !oneshot:
		r.At("run").Errorf("run: once needs Type=oneshot: else nobody knows when it has ended")
	case remain:
		r.At("run").Errorf("run: once and RemainAfterExit=yes contradict each other: leave one of them out")
	}
}

func (s Service) checkTriggers(r *Report) {
	if len(s.RestartOn) > 0 && s.State != Running && s.Run == "" {
		r.At("restartOn").Errorf("restartOn goes with state running, or with run")
	}
	if len(s.ReloadOn) == 0 {
		return
	}
	switch {
	case s.State != Running:
		r.At("reloadOn").Errorf("reloadOn goes with state running")
	case s.UnitFile != "" && !reloadRE.MatchString(s.settings()):
		r.At("reloadOn").Errorf("the unit does not say how it is reloaded: add ExecReload= or Type=notify-reload, or use restartOn")
	}
}

// settings is the text of the unit file and of all drop-ins.
func (s Service) settings() string {
	text := s.UnitFile
	for _, name := range slices.Sorted(maps.Keys(s.DropIns)) {
		text += "\n" + s.DropIns[name]
	}
	return text
}
