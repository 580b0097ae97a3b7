package trust

import (
	"fmt"
	"path"
	"regexp"
	"slices"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/score"
)

// kindShellJob is the escape hatch, which most builds do not know.
const kindShellJob score.Kind = "shellJob"

// CheckDocument says why the keys that signed the document of a device may not say all that is in it; nil if enough of
// them may.
func (r Root) CheckDocument(by []string, d wire.Device, as score.Assignment) *wire.Refusal {
	return r.enough(by, RolePublisher, r.Spec.Required.Documents, func(s Scope) string {
		if !matches(s.Devices, d.String()) {
			return "documents of device " + d.String()
		}
		for _, m := range as.Spec.Manifests {
			if what := s.manifest(m); what != "" {
				return what
			}
		}
		return ""
	})
}

// CheckClass says why the keys that signed the manifest of a class may not say all that is in it.
func (r Root) CheckClass(by []string, class string, m score.Manifest) *wire.Refusal {
	return r.enough(by, RolePublisher, r.Spec.Required.Documents, func(s Scope) string {
		if !matches(s.Classes, class) {
			return "class " + class
		}
		return s.manifest(m)
	})
}

// An Act is what an operation asks for, as far as scopes go.
type Act struct {
	Device  wire.Device
	Approve bool // it lets single actions happen; everything else is of operators
	Destroy bool // one of these destroys data that cannot be made again
}

// CheckOperation says why the keys that signed an operation may not ask for it.
func (r Root) CheckOperation(by []string, a Act) *wire.Refusal {
	role, need := RoleOperator, r.Spec.Required.Operations
	if a.Approve {
		role, need = RoleApprover, r.Spec.Required.Approvals
	}
	return r.enough(by, role, need, func(s Scope) string {
		switch {
		case !matches(s.Devices, a.Device.String()):
			return "operations on device " + a.Device.String()
		case a.Destroy && !s.Destroy:
			return "the destruction of data (scope: {destroy: true})"
		}
		return ""
	})
}

// enough counts the keys that have the role and whose scope holds all of it. denied says what is outside of one.
func (r Root) enough(by []string, role Role, need int, denied func(Scope) string) *wire.Refusal {
	need = max(need, 1)
	good, why := 0, ""
	for _, public := range by {
		k, known := r.key(public)
		switch {
		case !known:
		case !slices.Contains(k.Roles, role):
			why = fmt.Sprintf("the key of %s is no %s", k.Name, role)
		default:
			if what := denied(k.Scope); what != "" {
				why = fmt.Sprintf("the key of %s may not sign %s", k.Name, what)
				continue
			}
			good++
		}
	}
	switch {
	case good >= need:
		return nil
	case why != "":
		return refuse(wire.CodeOutOfScope, "%s", why)
	}
	code := wire.CodeUntrusted
	if good > 0 {
		code = wire.CodeTooFewSignatures
	}
	return refuse(code, "signed by %d keys of role %s, %d needed", good, role, need)
}

// manifest says what of m is outside of the scope.
func (s Scope) manifest(m score.Manifest) string {
	if what := s.policy(m.Spec.Policy); what != "" {
		return fmt.Sprintf("manifest %q: its policy has %s", m.Metadata.Name, what)
	}
	for _, sc := range m.Spec.Scores {
		if sc.Spec == nil {
			continue // it is not played
		}
		kind := sc.Spec.Kind()
		if s.Kinds != nil && !slices.Contains(s.Kinds, kind) {
			return fmt.Sprintf("scores of kind %s (manifest %q, score %q)", kind, m.Metadata.Name, sc.ID)
		}
		if kind == kindShellJob && !s.Shell {
			return fmt.Sprintf("scores that run a shell (manifest %q, score %q; scope: {shell: true})", m.Metadata.Name, sc.ID)
		}
	}
	return ""
}

// policy names a word of p that is looser than the scope lets it be. That of a score can only restrict its manifest's.
func (s Scope) policy(p score.Policy) string {
	if s.Policy == nil {
		return ""
	}
	p = p.Filled()
	limit := *s.Policy
	if limit.Preset != "" {
		limit = limit.Filled()
	}
	switch {
	case looser(p.Preset, limit.Preset):
		return "preset: " + string(p.Preset)
	case looser(p.OnIntent, limit.OnIntent):
		return "onIntent: " + string(p.OnIntent)
	case looser(p.OnDrift, limit.OnDrift):
		return "onDrift: " + string(p.OnDrift)
	case looser(p.OnAbsent, limit.OnAbsent):
		return "onAbsent: " + string(p.OnAbsent)
	case looser(p.OnDestroy, limit.OnDestroy):
		return "onDestroy: " + string(p.OnDestroy)
	}
	return ""
}

func looser[T score.Word](have, limit T) bool { return score.Stricter(have, limit) != have }

var pattern = regexp.MustCompile(`^[a-z0-9.*-]{1,128}$`)

func goodPattern(p string) bool { return pattern.MatchString(p) }

// matches reports whether a name is one of those that patterns mean; no list means all.
func matches(patterns []string, name string) bool {
	return patterns == nil || slices.ContainsFunc(patterns, func(p string) bool {
		is, err := path.Match(p, name)
		return is && err == nil
	})
}
