package score

import (
	"fmt"
	"slices"
	"strings"
)

// Validate reports everything that is wrong with m beyond the shape of the
// document, which its schema and the decoder check: names, references, cycles,
// resources claimed twice, capabilities that the profile lacks, and what the kinds
// themselves refuse. It is the same check for authors, CI and devices.
func (m Manifest) Validate() []Problem {
	r := NewReport()
	if m.APIVersion != APIVersion {
		r.At("apiVersion").Errorf("apiVersion is %q, this version reads %q", m.APIVersion, APIVersion)
	}
	if m.Kind != ManifestKind {
		r.At("kind").Errorf("kind is %q, want %q", m.Kind, ManifestKind)
	}
	if !nameRE.MatchString(m.Metadata.Name) {
		r.At("metadata", "name").Errorf("name %q must be lower-case letters, digits and '-', at most 63", m.Metadata.Name)
	}
	m.Spec.check(r.At("spec"))
	return r.Problems()
}

func (s ManifestSpec) check(r *Report) {
	s.Target.check(r.At("target"))
	if s.Policy.Preset != Converge {
		r.At("policy", "preset").Errorf("preset is %q; this version knows %q only, and it must be asked for in words", s.Policy.Preset, Converge)
	}
	if len(s.Scores) == 0 {
		r.At("scores").Errorf("no score in the manifest: to stop managing things, say so with their own fields; an empty list means nothing")
	}
	caps, known := ProfileCapabilities(s.Profile)
	if s.Profile != "" && !known {
		r.At("profile").Errorf("unknown profile %q%s", s.Profile, didYouMean(s.Profile, Profiles()))
	}
	for i, sc := range s.Scores {
		at := r.At("scores", i)
		sc.ID.check(at.At("id"))
		if sc.Spec == nil {
			at.At("spec").Errorf("no spec")
			continue
		}
		if info, ok := Lookup(sc.Spec.Kind()); ok && known {
			for _, need := range info.Needs {
				if !slices.Contains(caps, need) {
					at.At("kind").Errorf("kind %q needs the capability %q, which the profile %q lacks", info.Kind, need, s.Profile)
				}
			}
		}
		sc.Spec.Check(at.At("spec"))
	}
	checkReferences(r.At("scores"), s.Scores)
	checkClaims(r.At("scores"), s.Scores)
}

func (t Target) check(r *Report) {
	switch {
	case t.Device == "" && t.Selector == nil:
		r.Errorf("target names no device and no selector")
	case t.Device != "" && t.Selector != nil:
		r.Errorf("target has a device and a selector; give one")
	case t.Device != "" && !nameRE.MatchString(t.Device):
		r.At("device").Errorf("device id %q must be lower-case letters, digits and '-', at most 63", t.Device)
	}
	if t.Selector == nil {
		return
	}
	for i, e := range t.Selector.MatchExpressions {
		at := r.At("selector", "matchExpressions", i)
		if wants := e.Operator == In || e.Operator == NotIn; wants != (len(e.Values) > 0) {
			at.At("values").Errorf("operator %s goes with values: In and NotIn need some, Exists and DoesNotExist take none", e.Operator)
		}
	}
}

// checkReferences reports ids used twice, needs that name no score, and cycles.
func checkReferences(r *Report, scores []Score) {
	at := map[ID]int{}
	var ids []string
	for i, s := range scores {
		if first, dup := at[s.ID]; dup {
			r.At(i, "id").Errorf("id %q is used twice, first by score %d", s.ID, first+1)
			continue
		}
		at[s.ID] = i
		ids = append(ids, string(s.ID))
	}
	for i, s := range scores {
		for j, need := range s.After {
			if _, ok := at[need]; !ok {
				r.At(i, "after", j).Errorf("there is no score %q%s", need, didYouMean(string(need), ids))
			}
		}
		if rs, ok := s.Spec.(Restarter); ok {
			for j, need := range rs.RestartTriggers() {
				if _, ok := at[need]; !ok {
					r.At(i, "spec", "restartOn", j).Errorf("there is no score %q%s", need, didYouMean(string(need), ids))
				}
			}
		}
	}
	if cycle := Cycle(scores); len(cycle) > 0 {
		names := make([]string, len(cycle))
		for i, id := range cycle {
			names[i] = string(id)
		}
		r.At(at[cycle[0]]).Errorf("scores wait for each other: %s", strings.Join(append(names, names[0]), " → "))
	}
}

func checkClaims(r *Report, scores []Score) {
	owner := map[Resource]int{}
	var ports []Resource // the only resources that can overlap without being equal
	for i, s := range scores {
		if s.Spec == nil {
			continue
		}
		for _, c := range s.Spec.Claims() {
			first, taken := owner[c]
			for _, p := range ports {
				if !taken && p.Overlaps(c) {
					first, taken = owner[p], true
				}
			}
			if taken && first != i {
				r.At(i).Errorf("score %q claims %s, which score %q claims too", s.ID, c, scores[first].ID)
				continue
			}
			owner[c] = i
			if c.IsPort() {
				ports = append(ports, c)
			}
		}
	}
}

// Validate reports what is wrong with a as a whole: the manifests in it, and
// resources that two of them claim.
func (a Assignment) Validate() []Problem {
	r := NewReport()
	if a.APIVersion != APIVersion || a.Kind != AssignmentKind {
		r.Errorf("document is %q %q, want %q %q", a.APIVersion, a.Kind, APIVersion, AssignmentKind)
	}
	n := 0
	names := map[string]int{}
	for i, m := range a.Spec.Manifests {
		at := r.At("spec", "manifests", i)
		for _, p := range m.Validate() {
			*at.all = append(*at.all, Problem{at.path + p.Path, p.Severity, p.Text})
		}
		if first, dup := names[m.Metadata.Name]; dup {
			at.At("metadata", "name").Errorf("manifest %q is listed twice, first as number %d", m.Metadata.Name, first+1)
		}
		names[m.Metadata.Name] = i
		n += len(m.Spec.Scores)
	}
	if n != a.Spec.Scores {
		r.At("spec", "scores").Errorf("assignment says it holds %d scores and holds %d: it is not whole", a.Spec.Scores, n)
	}
	return r.Problems()
}

// Cycle returns scores that wait for each other in a circle, or nothing.
func Cycle(scores []Score) []ID {
	_, cycle := order(scores)
	return cycle
}

// Order returns scores so that each comes after everything it needs; scores that
// are free come in the order of their ids, so that the order of a document means
// nothing. Needs that name no score are ignored. It panics on a cycle: validate first.
func Order(scores []Score) []Score {
	out, cycle := order(scores)
	if cycle != nil {
		panic(fmt.Sprintf("score: cannot order a cycle %v", cycle))
	}
	return out
}

func order(scores []Score) (out []Score, cycle []ID) {
	const visiting, done = 1, 2
	byID := make(map[ID]Score, len(scores))
	for _, s := range scores {
		byID[s.ID] = s
	}
	state := make(map[ID]int, len(scores))
	var path []ID
	var visit func(ID) bool
	visit = func(id ID) bool {
		s, ok := byID[id]
		switch {
		case !ok || state[id] == done:
			return true
		case state[id] == visiting:
			cycle = slices.Clone(path[slices.Index(path, id):])
			return false
		}
		state[id], path = visiting, append(path, id)
		for _, need := range slices.Sorted(slices.Values(s.Needs())) {
			if !visit(need) {
				return false
			}
		}
		state[id], path = done, path[:len(path)-1]
		out = append(out, s)
		return true
	}
	ids := make([]ID, 0, len(byID))
	for id := range byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if !visit(id) {
			return nil, cycle
		}
	}
	return out, nil
}
