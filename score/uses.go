package score

import (
	"slices"
	"strings"
)

// A User is implemented by specs that need things which scores of their own may make, such
// as the named volumes of a container.
type User interface {
	// Uses lists the resources, as the scores that make them claim them.
	Uses() []Resource
}

// Uses are the named volumes of the container and of its init containers, and its network.
func (c Container) Uses() []Resource {
	var out []Resource
	mounts := func(volumes []Volume) {
		for _, v := range volumes {
			if !strings.HasPrefix(v.Source, "/") {
				out = append(out, Resource("volume:"+v.Source))
			}
		}
	}
	mounts(c.Volumes)
	for _, i := range c.Init {
		mounts(i.Volumes)
	}
	if c.Network != "" {
		out = append(out, Resource("containerNetwork:"+c.Network))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ready are the networks that are there without a score.
var ready = map[Resource]bool{
	"containerNetwork:bridge": true, "containerNetwork:host": true, "containerNetwork:none": true, "containerNetwork:podman": true,
}

// checkUses reports scores that use what another score of the manifest makes, and do not come
// after it: a volume that a container finds missing is made by the container runtime, and then
// belongs to nobody.
func checkUses(r *Report, scores []Score) {
	makes := map[Resource]ID{}
	for _, s := range scores {
		if s.Spec == nil {
			continue
		}
		for _, res := range s.Spec.Claims() {
			makes[res] = s.ID
		}
	}
	byID := map[ID]Score{}
	for _, s := range scores {
		byID[s.ID] = s
	}
	for i, s := range scores {
		u, ok := s.Spec.(User)
		if !ok {
			continue
		}
		for _, res := range u.Uses() {
			maker, made := makes[res]
			switch {
			case !made && !ready[res]:
				r.At(i, "spec").Warnf("it uses %s, which no score of the manifest makes: it must be on the device, or come from another manifest", res)
			case made && !follows(byID, s.ID, maker, map[ID]bool{}):
				r.At(i, "after").Errorf("it uses %s, which score %q makes: it has to come after %q", res, maker, maker)
			}
		}
	}
}

// follows reports whether a score comes after another, by whatever way.
func follows(byID map[ID]Score, id, other ID, seen map[ID]bool) bool {
	if seen[id] {
		return false
	}
	seen[id] = true
	for _, need := range byID[id].Needs() {
		if need == other || follows(byID, need, other, seen) {
			return true
		}
	}
	return false
}
