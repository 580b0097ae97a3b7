// Package symlink interprets score.Symlink. It looks at links and never where they lead to.
package symlink

import (
	"context"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer.
type Needs interface{ topology.HasFiles }

// Kind binds the interpreter to t.
func Kind[T Needs](t T) interpret.Binding {
	f := t.Files()
	return interpret.Of[score.Symlink, Observed, topology.FileReader, topology.FileWriter](interpreter{}, f, f)
}

// Observed is the actual state of one symbolic link.
type Observed struct {
	// Present is true if a symbolic link is there.
	Present bool `json:"present"`
	// Type of what is there: absent, regular, directory, symlink, special.
	Type string `json:"type"`
	// Target is where the link leads to.
	Target string `json:"target,omitempty"`
	// Owner is the name of the user, or its number.
	Owner string `json:"owner,omitempty"`
	// Group is the name of the group, or its number.
	Group string `json:"group,omitempty"`

	wanted bool
}

// Exists reports whether anything is at the path.
func (o Observed) Exists() bool { return o.Type != string(topology.Absent) }

// OwnedBy is always empty: a symbolic link can carry no mark.
func (o Observed) OwnedBy() topology.Mark { return "" }

// Conditions: a link that is there, if it is to be, is written.
func (o Observed) Conditions() interpret.Conditions {
	return interpret.Conditions{Written: new(o.Present == o.wanted)}
}

type interpreter struct{}

func (interpreter) FieldOf(topology.Code) string { return "path" }

func (interpreter) Observe(ctx context.Context, r topology.FileReader, s score.Symlink) (Observed, error) {
	st, err := r.File(ctx, s.Path)
	if err != nil {
		return Observed{}, err
	}
	o := Observed{Type: string(st.Type), Target: st.Target, Owner: st.Owner, Group: st.Group, wanted: s.State != score.Absent}
	switch st.Type {
	case topology.Absent:
	case topology.Symlink:
		o.Present = true
	default:
		return o, topology.Faultf(topology.CodeNotRegular, "%s is a %s, not a symbolic link: only a link is replaced by one; move it away first", s.Path, st.Type)
	}
	return o, nil
}

func (interpreter) Diff(s score.Symlink, o Observed) []interpret.Change {
	switch {
	case !o.wanted && !o.Present:
		return nil
	case !o.wanted:
		return []interpret.Change{{Field: "state", Have: string(score.Present), Want: string(score.Absent), Effect: interpret.Remove}}
	case !o.Present:
		return []interpret.Change{{Field: "present", Have: "false", Want: "true", Effect: interpret.Create}}
	case o.Target != s.Target: // where somebody else's link leads to is kept nowhere
		return []interpret.Change{{Field: "target", Have: o.Target, Want: s.Target, Effect: interpret.Mutate, Replaces: true}}
	}
	return nil
}

func (interpreter) Apply(ctx context.Context, w topology.FileWriter, s score.Symlink, t interpret.Task) error {
	link := topology.SymlinkWrite{Path: s.Path, Target: s.Target, Replaces: string(topology.Absent)}
	for _, c := range t.Changes {
		switch c.Field {
		case "state":
			return w.RemoveSymlink(ctx, s.Path)
		case "target":
			link.Replaces = c.Have
		}
	}
	return w.MakeSymlink(ctx, link)
}

// RemovalEffect: a link that is to be absent is not there to be removed.
func (interpreter) RemovalEffect(last score.Symlink) interpret.Effect {
	if last.State == score.Absent {
		return interpret.Nothing
	}
	return interpret.Remove
}

func (interpreter) Remove(ctx context.Context, w topology.FileWriter, last score.Symlink) error {
	return w.RemoveSymlink(ctx, last.Path)
}
