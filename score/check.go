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
	s.Policy.check(r.At("policy"), ofManifest)
	if len(s.Scores) == 0 {
		r.At("scores").Errorf("no score in the manifest: an empty list means nothing; leave out what the device shall no longer have, and keep at least one")
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
		if info, ok := Lookup(sc.Spec.Kind()); ok {
			if info.Stability == Experimental && !s.AllowExperimental {
				at.At("kind").Errorf("kind %q is experimental, which means that it may change, or go: write allowExperimental: true beside the scores to use it", info.Kind)
			}
			for _, need := range info.Needs {
				if known && !slices.Contains(caps, need) {
					at.At("kind").Errorf("kind %q needs the capability %q, which the profile %q lacks", info.Kind, need, s.Profile)
				}
			}
		}
		sc.Spec.Check(at.At("spec"))
		if !sc.NoSecrets {
			checkLiterals(at.At("spec"), sc.Spec)
		}
		sc.checkPlay(at, s.Policy)
	}
	checkReferences(r.At("scores"), s.Scores)
	checkUses(r.At("scores"), s.Scores)
	var claimants []claimant
	for i, sc := range s.Scores {
		claimants = append(claimants, claimant{r.At("scores", i), fmt.Sprintf("score %q", sc.ID), 0, sc.Spec})
	}
	checkClaims(claimants, false)
}

var operators = []string{string(In), string(NotIn), string(Exists), string(DoesNotExist)}

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
		if !slices.Contains(operators, string(e.Operator)) {
			at.At("operator").Errorf("unknown operator %q%s", e.Operator, didYouMean(string(e.Operator), operators))
			continue
		}
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
		checkNeed := func(r *Report, need ID) {
			if k, ok := at[need]; !ok {
				r.Errorf("there is no score %q%s", need, didYouMean(string(need), ids))
			} else if scores[k].Decommission && !s.Decommission {
				r.Errorf("score %q is decommissioned: what needs it has to go as well (decommission: true), or to stop needing it", need)
			}
		}
		for j, need := range s.After {
			checkNeed(r.At(i, "after", j), need)
		}
		restart, reload := s.Triggers()
		for j, need := range restart {
			checkNeed(r.At(i, "spec", "restartOn", j), need)
		}
		for j, need := range reload {
			if slices.Contains(restart, need) {
				r.At(i, "spec", "reloadOn", j).Errorf("score %q is in restartOn, too: it either restarts this one or makes it read again", need)
			}
			checkNeed(r.At(i, "spec", "reloadOn", j), need)
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

// A claimant is a score with the place to report at, and the words that name it to others.
type claimant struct {
	at   *Report
	name string
	in   int // number of its manifest
	spec Spec
}

// checkClaims reports resources that two claimants claim. It leaves out those of one
// manifest if across is true.
func checkClaims(claimants []claimant, across bool) {
	owner := map[Resource]int{}
	ports := map[string][]Resource{} // those of one number: the only ones that overlap without being equal
	for i, c := range claimants {
		if c.spec == nil {
			continue
		}
		for _, res := range c.spec.Claims() {
			first, taken := owner[res]
			number, _, _ := strings.Cut(string(res), "@")
			if res.IsPort() && !taken {
				for _, p := range ports[number] {
					if !taken && p.Overlaps(res) {
						first, taken = owner[p], true
					}
				}
			}
			switch {
			case !taken:
				owner[res] = i
				if res.IsPort() {
					ports[number] = append(ports[number], res)
				}
			case first != i && (!across || claimants[first].in != c.in):
				c.at.Errorf("%s claims %s, which %s claims too", c.name, res, claimants[first].name)
			}
		}
	}
	checkExclusive(claimants, across)
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
	var claimants []claimant
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
		for j, sc := range m.Spec.Scores {
			name := fmt.Sprintf("score %q of manifest %q", sc.ID, m.Metadata.Name)
			claimants = append(claimants, claimant{at.At("spec", "scores", j), name, i, sc.Spec})
		}
	}
	checkClaims(claimants, true)
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
	byID := make(map[ID]int, len(scores))
	for i, s := range scores {
		byID[s.ID] = i
	}
	state := make([]int, len(scores))
	out = make([]Score, 0, len(scores))
	var path []ID
	var visit func(ID) bool
	visit = func(id ID) bool {
		i, ok := byID[id]
		switch {
		case !ok || state[i] == done:
			return true
		case state[i] == visiting:
			cycle = slices.Clone(path[slices.Index(path, id):])
			return false
		}
		state[i], path = visiting, append(path, id)
		for _, need := range slices.Sorted(slices.Values(scores[i].Needs())) {
			if !visit(need) {
				return false
			}
		}
		state[i], path = done, path[:len(path)-1]
		out = append(out, scores[i])
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
