package score

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var accountRE = regexp.MustCompile(`^([a-z_][a-z0-9_-]{0,31}|[0-9]{1,10})$`)

// checkOwners refuses what is no name of an account.
func checkOwners(r *Report, owner, group string) {
	for _, a := range []struct{ field, name string }{{"owner", owner}, {"group", group}} {
		if a.name != "" && !accountRE.MatchString(a.name) {
			r.At(a.field).Errorf("%s %q is no account name and no number", a.field, a.name)
		}
	}
}

func checkPath(r *Report, p string) {
	switch {
	case !path.IsAbs(p) || p != path.Clean(p) || p == "/":
		r.Errorf("path %q must be absolute and clean: no '..', no '//' and no '/' at the end", p)
	case strings.ContainsRune(p, 0):
		r.Errorf("path has a NUL byte")
	case len(p) > 4095:
		r.Errorf("path is %d bytes long, a device takes 4095", len(p))
	}
	if strings.ContainsFunc(p, func(c rune) bool { return unicode.Is(unicode.Mn, c) }) {
		r.Warnf("path %+q has a combining character: the same name written as one character is another file", p)
	}
	for part := range strings.SplitSeq(p, "/") {
		if len(part) > 255 {
			r.Errorf("path has a name of %d bytes, a device takes 255", len(part))
		}
	}
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if p == dir || strings.HasPrefix(p, dir+"/") {
			r.Errorf("%s is no place for files: it is the kernel's", dir)
		}
	}
}

// checkFree refuses the agent's own files.
func checkFree(r *Report, p string) {
	if isAgents(p) {
		r.Errorf("%s belongs to the agent itself", p)
	}
}

// isAgents reports whether p is the agent's own: its configuration, state, unit and
// binary. A manifest that could replace them could replace the policy that binds it.
func isAgents(p string) bool {
	for _, dir := range []string{"/etc/continuo", "/var/lib/continuo", "/run/continuo", "/run/credentials/continuo-agent.service"} {
		if p == dir || strings.HasPrefix(p, dir+"/") {
			return true
		}
	}
	if base := path.Base(p); base == "continuo-agent" {
		return true
	}
	for _, dir := range unitDirs {
		below, ok := strings.CutPrefix(p, dir+"/")
		if !ok {
			continue
		}
		for part := range strings.SplitSeq(below, "/") {
			if strings.HasPrefix(part, "continuo-agent.") || part == "continuo-.service.d" || part == "service.d" { // the last two are drop-ins by prefix, and for all services
				return true
			}
		}
	}
	return false
}

// unitDirs is where the service manager reads units, and the generator of podman what it makes units of.
var unitDirs = []string{
	"/etc/systemd/system", "/etc/systemd/system.control", "/etc/systemd/system.attached", "/run/systemd/system", "/run/systemd/system.control",
	"/run/systemd/system.attached", "/run/systemd/transient", "/run/systemd/generator", "/run/systemd/generator.early", "/run/systemd/generator.late",
	"/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
	"/etc/containers/systemd", "/run/containers/systemd", "/usr/share/containers/systemd",
}

// holdsAgents reports whether p is a directory on the way to the agent's own files. Whoever
// owns one of them can put others in their place.
func holdsAgents(p string) bool {
	below := []string{"/etc/continuo", "/var/lib/continuo", "/run/continuo", "/usr/bin/x", "/usr/local/bin/x", "/usr/sbin/x", "/bin/x"}
	for _, dir := range unitDirs {
		below = append(below, dir+"/x")
	}
	return slices.ContainsFunc(below, func(own string) bool { return strings.HasPrefix(own, strings.TrimSuffix(p, "/")+"/") })
}
