package authority

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// A Ceiling is what a device lets be done to it at all, whoever signed for it. It is
// written on the device, and can only take away. A list that is left out restricts
// nothing, an empty one allows nothing. It holds for what scores say; what the device's
// own programs make of the content of a file, or show of one that they see, nobody can tell, so that a device that
// lists units, images or secrets lists paths as well.
type Ceiling struct {
	// Policy bounds the policy of every manifest: of each field the strictest word counts.
	Policy *score.Policy `json:"policy,omitempty"`
	// Kinds are the kinds of scores that are played.
	Kinds []score.Kind `json:"kinds,omitzero"`
	// Paths are directories, or single files, that files may be written to, that links may lead to, and that containers may
	// see, device nodes included. What a service or a container needs for itself, such as its unit file, is not meant.
	Paths []string `json:"paths,omitzero"`
	// Images are registries, or repositories below one, that images may come from: registry.example.org/team.
	Images []string `json:"images,omitzero"`
	// Units are patterns of units that scores may claim, those of containers included: kiosk.service, app-*.service.
	Units []string `json:"units,omitzero"`
	// Secrets are patterns of the secrets that scores may use: wifi-psk, kiosk-*.
	Secrets []string `json:"secrets,omitzero"`
	// ShellJobs lets scores of the kind shellJob be played, where the agent was built with them at all: any command, each run of
	// which is signed by itself.
	ShellJobs bool `json:"shellJobs,omitzero"`
	// Verbs are the operations that are done when a person asks for them.
	Verbs []interpret.Verb `json:"verbs,omitzero"`
	// Adopt are directories, or single files, that may be adopted. If it is left out, all but those that by their name
	// hold keys or passwords, or are no configuration.
	Adopt []string `json:"adopt,omitzero"`
}

// kindShellJob is the escape hatch, which most builds do not know.
const kindShellJob score.Kind = "shellJob"

// Codes of what a ceiling refuses.
const (
	CodeKind  interpret.Code = "kind_not_allowed"
	CodePath  interpret.Code = "path_not_allowed"
	CodeImage interpret.Code = "image_not_allowed"
	CodeUnit  interpret.Code = "unit_not_allowed"
	CodeVerb  interpret.Code = "verb_not_allowed"

	CodeSecret interpret.Code = "secret_not_allowed"
)

// RefusesKind reports whether no score of a kind may be played, and why.
func (c Ceiling) RefusesKind(kind score.Kind) (message string, refused bool) {
	switch {
	case c.Kinds != nil && !slices.Contains(c.Kinds, kind):
		return fmt.Sprintf("this device plays no %s: its ceiling does not list the kind", kind), true
	case kind == kindShellJob && !c.ShellJobs:
		return fmt.Sprintf("this device plays no %s: its own configuration does not say ceiling: {shellJobs: true}", kind), true
	}
	return "", false
}

// Refuses reports whether s may not be played, and why. A score that the agent cannot
// read claims nothing, and is refused for its kind only.
func (c Ceiling) Refuses(s score.Score) (code interpret.Code, message string, refused bool) {
	if s.Spec == nil {
		return "", "", false
	}
	if message, refused = c.RefusesKind(s.Spec.Kind()); refused {
		return CodeKind, message, true
	}
	touched := score.TouchedBy(s.Spec)
	for _, p := range touched.Paths {
		if code, message, refused = c.RefusesPath(p); refused {
			return code, message, true
		}
		if unit := unitAt(p); unit != "" && !c.unit(unit) {
			return CodeUnit, fmt.Sprintf("%s is a part of the unit %s, which the ceiling of this device does not list", p, unit), true
		}
		if (c.Images != nil || c.Units != nil) && below(p, quadletDirs) {
			return CodeImage, fmt.Sprintf("%s describes a container, and the ceiling of this device lists the images and units that there may be: use a score of kind container", p), true
		}
	}
	for _, r := range s.Spec.Claims() {
		if unit, ok := strings.CutPrefix(string(r), "unit:"); ok && !c.unit(unit) {
			return CodeUnit, fmt.Sprintf("this device does not let the unit %s be touched: its ceiling lists no pattern that matches", unit), true
		}
	}
	if user, ok := s.Spec.(score.SecretUser); ok {
		for _, name := range user.SecretNames() {
			if !listed(c.Secrets, name) {
				return CodeSecret, fmt.Sprintf("this device does not let the secret %q be used: its ceiling lists no pattern that matches", name), true
			}
		}
	}
	for _, image := range touched.Images {
		if c.Images != nil && !c.image(image) {
			return CodeImage, fmt.Sprintf("this device takes no image from %s: its ceiling lists no such registry or repository", repository(image)), true
		}
	}
	return "", "", false
}

// RefusesPath reports whether a path that a score leads to by a link may not be touched, and why.
func (c Ceiling) RefusesPath(p string) (code interpret.Code, message string, refused bool) {
	if within(c.Paths, p) {
		return "", "", false
	}
	return CodePath, fmt.Sprintf("this device does not let %s be touched: its ceiling lists no path that it is below", p), true
}

// RefusesVerb reports whether an operation is not done here, and why.
func (c Ceiling) RefusesVerb(v interpret.Verb) (code interpret.Code, message string, refused bool) {
	if c.Verbs == nil || slices.Contains(c.Verbs, v) {
		return "", "", false
	}
	return CodeVerb, fmt.Sprintf("this device does not accept %s: its ceiling does not list the verb", v), true
}

// RefusesAdoption reports whether what s claims may not be adopted, and why. That s may
// be played is another question.
func (c Ceiling) RefusesAdoption(s score.Score) (code interpret.Code, message string, refused bool) {
	if s.Spec == nil {
		return "", "", false
	}
	for _, r := range s.Spec.Claims() {
		p, ok := strings.CutPrefix(string(r), "file:")
		switch {
		case !ok:
		case !within(c.Adopt, p):
			return CodePath, fmt.Sprintf("this device does not let %s be adopted: its ceiling lists no path for it", p), true
		case c.Adopt == nil && !adoptable[score.ClassOfPath(p)]:
			return CodePath, fmt.Sprintf("%s is %s, and not adopted unless the ceiling of this device lists it under adopt", p, classes[score.ClassOfPath(p)]), true
		}
	}
	return "", "", false
}

// within reports whether p is one of roots or below it. No list is no limit.
func within(roots []string, p string) bool { return roots == nil || below(p, roots) }

func below(p string, roots []string) bool {
	if !path.IsAbs(p) || p != path.Clean(p) {
		return false // where it leads is not what it says
	}
	return slices.ContainsFunc(roots, func(root string) bool {
		return p == root || strings.HasPrefix(p, strings.TrimSuffix(root, "/")+"/")
	})
}

// Where the service manager and podman look for what they are to run.
var (
	unitDirs = []string{
		"/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient", "/run/systemd/generator.early",
		"/etc/systemd/system", "/etc/systemd/system.attached", "/run/systemd/system", "/run/systemd/system.attached", "/run/systemd/generator",
		"/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system", "/run/systemd/generator.late",
	}
	quadletDirs = []string{"/etc/containers/systemd", "/run/containers/systemd", "/usr/share/containers/systemd"}
)

// unitAt is the unit that a file makes, or changes, if there is one.
func unitAt(p string) string {
	for _, dir := range unitDirs {
		rest, ok := strings.CutPrefix(p, dir+"/")
		if !ok {
			continue
		}
		unit, _, _ := strings.Cut(rest, "/")
		for _, suffix := range []string{".d", ".wants", ".requires", ".upholds"} {
			unit = strings.TrimSuffix(unit, suffix)
		}
		return unit
	}
	return ""
}

func (c Ceiling) unit(name string) bool { return listed(c.Units, name) }

// listed reports whether one of the patterns matches. No list is no limit.
func listed(patterns []string, name string) bool {
	return patterns == nil || slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// image compares part by part, as a prefix of text would take team-x for team. The name
// of a registry has no case.
func (c Ceiling) image(ref string) bool {
	have := strings.Split(repository(ref), "/")
	return slices.ContainsFunc(c.Images, func(prefix string) bool {
		want := strings.Split(prefix, "/")
		return len(want) <= len(have) && strings.EqualFold(want[0], have[0]) && slices.Equal(want[1:], have[1:len(want)])
	})
}

// repository is an image without its tag and digest.
func repository(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	if colon := strings.LastIndexByte(ref, ':'); colon > strings.LastIndexByte(ref, '/') && strings.Contains(ref, "/") {
		ref = ref[:colon]
	}
	return ref
}
