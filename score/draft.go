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
		Spec:       ManifestSpec{Profile: profileName[P](), Target: target},
	}}
}

// Manifest returns what was written so far. Validate it before use.
func (d *Draft[P]) Manifest() Manifest { return d.m.Clone() }

// A Ref is a score that was added, for use in After and in fields that name scores.
type Ref[S Spec] struct{ id ID }

// ID of the score.
func (r Ref[S]) ID() ID { return r.id }

// Policy says what a device may do by itself. Without it, the preset guarded counts.
func (d *Draft[P]) Policy(p Policy) *Draft[P] {
	d.m.Spec.Policy = p.clone()
	return d
}

// AllowExperimental lets scores of experimental kinds in.
func (d *Draft[P]) AllowExperimental() *Draft[P] {
	d.m.Spec.AllowExperimental = true
	return d
}

// After makes the score added last wait for others.
func (d *Draft[P]) After(ids ...ID) *Draft[P] {
	last := d.last()
	last.After = append(slices.Clone(last.After), ids...)
	return d
}

// Restrict gives the score added last a policy of its own, which can only forbid what the policy of the manifest allows.
func (d *Draft[P]) Restrict(p Policy) *Draft[P] {
	d.last().Policy = new(p.clone())
	return d
}

// Health says how to find out whether the score added last works.
func (d *Draft[P]) Health(h Health) *Draft[P] {
	d.last().Health = new(h.clone())
	return d
}

// Engine says how the score added last is played.
func (d *Draft[P]) Engine(e Engine) *Draft[P] {
	d.last().Engine = new(e.clone())
	return d
}

// Decommission says that what the score added last describes is to be removed, with its data.
func (d *Draft[P]) Decommission() *Draft[P] {
	d.last().Decommission = true
	return d
}

// NoSecrets says that what looks like a secret in the score added last is none.
func (d *Draft[P]) NoSecrets() *Draft[P] {
	d.last().NoSecrets = true
	return d
}

func (d *Draft[P]) last() *Score {
	if len(d.m.Spec.Scores) == 0 {
		panic("score: the draft has no score yet that this could be said of")
	}
	return &d.m.Spec.Scores[len(d.m.Spec.Scores)-1]
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
