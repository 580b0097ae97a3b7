package score

import "slices"

// A Draft is a manifest being written in Go for devices of profile P. Scores are
// added by the function of their kind (AddFile, AddService, …), which compiles only
// if P has what the kind needs.
type Draft[P any] struct{ m Manifest }

// NewDraft starts a manifest. P is one of the built-in profiles:
//
//	d := score.NewDraft[score.RaspberryPi]("kiosk", score.Target{Device: "pi-7"})
func NewDraft[P any](name string, target Target) *Draft[P] {
	return &Draft[P]{Manifest{
		APIVersion: APIVersion,
		Kind:       ManifestKind,
		Metadata:   Metadata{Name: name},
		Spec:       ManifestSpec{Profile: profileName[P](), Target: target, Policy: Policy{Preset: Converge}},
	}}
}

// Manifest returns what was written so far. Validate it before use.
func (d *Draft[P]) Manifest() Manifest { return d.m.Clone() }

// A Ref is a score that was added, for use in After and in fields that name scores.
type Ref[S Spec] struct{ id ID }

// ID of the score.
func (r Ref[S]) ID() ID { return r.id }

// After makes the score added last wait for others.
func (d *Draft[P]) After(ids ...ID) *Draft[P] {
	last := &d.m.Spec.Scores[len(d.m.Spec.Scores)-1]
	last.After = append(slices.Clone(last.After), ids...)
	return d
}

// Compose adds scores made by build as the members of a composite: their ids get
// the prefix "id/", and so do the members they need. A composite is nothing but its
// members; its outcome is the fold of theirs.
func (d *Draft[P]) Compose(id ID, build func(*Draft[P])) *Draft[P] {
	inner := &Draft[P]{}
	build(inner)
	d.m.Spec.Scores = append(d.m.Spec.Scores, Compose(id, inner.m.Spec.Scores...)...)
	return d
}

func add[P any, S Spec](d *Draft[P], id ID, s S) Ref[S] {
	d.m.Spec.Scores = append(d.m.Spec.Scores, Score{ID: id, Spec: s})
	return Ref[S]{id}
}

// Compose returns members under the id of a composite: "conf" in "broker" becomes
// "broker/conf", and the references between members follow.
func Compose(id ID, members ...Score) []Score {
	inside := map[ID]bool{}
	for _, m := range members {
		inside[m.ID] = true
	}
	rename := func(ids []ID) []ID {
		out := slices.Clone(ids)
		for i, need := range out {
			if inside[need] {
				out[i] = id + "/" + need
			}
		}
		return out
	}
	out := make([]Score, len(members))
	for i, m := range members {
		out[i] = m.clone()
		out[i].ID, out[i].After = id+"/"+m.ID, rename(m.After)
		if r, ok := m.Spec.(renamer); ok {
			out[i].Spec = r.withTriggers(rename)
		}
	}
	return out
}

// A renamer is a spec with references to other scores.
type renamer interface {
	withTriggers(rename func([]ID) []ID) Spec
}
