// Package directory interprets score.Directory.
//
// It looks at what is in an exclusive directory, tells what does not belong there, and takes
// nothing away: what is foreign is for a person to remove.
package directory

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer.
type Needs interface{ topology.HasFiles }

// Kind binds the interpreter to t.
func Kind[T Needs](t T) interpret.Binding {
	f := t.Files()
	return interpret.Of[score.Directory, Observed, topology.FileReader, topology.FileWriter](interpreter{}, f, f)
}

// Observed is the actual state of one directory.
type Observed struct {
	// Present is true if a directory is there.
	Present bool `json:"present"`
	// Type of what is there: absent, regular, directory, symlink, special.
	Type string `json:"type"`
	// Mode as octal text.
	Mode string `json:"mode,omitempty"`
	// Owner is the name of the user, or its number.
	Owner string `json:"owner,omitempty"`
	// Group is the name of the group, or its number.
	Group string `json:"group,omitempty"`
	// Foreign are the names in an exclusive directory that do not belong there, at most twenty.
	Foreign []string `json:"foreign,omitempty"`
	// ForeignMore counts those that were found beyond the twenty.
	ForeignMore int `json:"foreignMore,omitzero"`
	// Target of a symbolic link that is in the place of the directory.
	Target string `json:"target,omitempty"`

	uid, gid string
	mark     topology.Mark
	wanted   bool
}

// Exists reports whether anything is at the path.
func (o Observed) Exists() bool { return o.Type != string(topology.Absent) }

// OwnedBy returns the mark of the directory.
func (o Observed) OwnedBy() topology.Mark { return o.mark }

// Conditions: a directory that is there, if it is to be, is written.
func (o Observed) Conditions() interpret.Conditions {
	return interpret.Conditions{Written: new(o.Present == o.wanted)}
}

type interpreter struct{}

func (interpreter) FieldOf(c topology.Code) string {
	if c == topology.CodeNoAccount {
		return "owner"
	}
	return "path"
}

func (interpreter) Observe(ctx context.Context, r topology.FileReader, s score.Directory) (Observed, error) {
	st, err := r.File(ctx, s.Path)
	if err != nil {
		return Observed{}, err
	}
	o := Observed{Type: string(st.Type), Target: st.Target, mark: st.Mark, wanted: s.State != score.Absent}
	switch st.Type {
	case topology.Absent:
		return o, nil
	case topology.Directory:
	case topology.Symlink:
		return o, topology.Faultf(topology.CodeSymlink, "%s is a symbolic link to %s; links are not followed: name its target, or remove it", s.Path, st.Target)
	default:
		return o, topology.Faultf(topology.CodeNotRegular, "%s is a %s, not a directory", s.Path, st.Type)
	}
	o.Present, o.Mode, o.Owner, o.Group = true, score.Mode(st.Mode).String(), st.Owner, st.Group
	o.uid, o.gid = strconv.FormatUint(uint64(st.UID), 10), strconv.FormatUint(uint64(st.GID), 10)
	if s.Exclusive && o.wanted {
		return o, o.look(ctx, r, s)
	}
	return o, nil
}

// Bounds of what is said of an exclusive directory.
const (
	maxListed  = 10_000
	maxForeign = 20
)

// look finds what does not belong in an exclusive directory.
func (o *Observed) look(ctx context.Context, r topology.FileReader, s score.Directory) error {
	names, more, err := r.Entries(ctx, s.Path, maxListed)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch {
		case slices.Contains(s.Entries, name):
		case len(o.Foreign) < maxForeign:
			o.Foreign = append(o.Foreign, strings.ToValidUTF8(name, "\uFFFD"))
		default:
			o.ForeignMore++
		}
	}
	o.ForeignMore += more
	return nil
}

func (interpreter) Diff(s score.Directory, o Observed) []interpret.Change {
	switch {
	case !o.wanted && !o.Present:
		return nil
	case !o.wanted:
		return []interpret.Change{{Field: "state", Have: string(score.Present), Want: string(score.Absent), Effect: interpret.Remove}}
	case !o.Present:
		return []interpret.Change{{Field: "present", Have: "false", Want: "true", Effect: interpret.Create}}
	}
	var out []interpret.Change
	differ := func(field, have, want string) { // the rights of a directory that somebody else made are kept nowhere
		out = append(out, interpret.Change{Field: field, Have: have, Want: want, Effect: interpret.Mutate, Replaces: true})
	}
	if want := s.Mode.String(); want != o.Mode {
		differ("mode", o.Mode, want)
	}
	if s.Owner != "" && s.Owner != o.Owner && s.Owner != o.uid {
		differ("owner", o.Owner, s.Owner)
	}
	if s.Group != "" && s.Group != o.Group && s.Group != o.gid {
		differ("group", o.Group, s.Group)
	}
	if len(o.Foreign) > 0 {
		have := strings.Join(o.Foreign, ", ")
		if o.ForeignMore > 0 {
			have += fmt.Sprintf(" and %d more", o.ForeignMore)
		}
		out = append(out, interpret.Change{Field: "exclusive", Have: interpret.Brief(have), Want: "nothing else", Effect: interpret.Nothing})
	}
	return out
}

func (interpreter) Apply(ctx context.Context, w topology.FileWriter, s score.Directory, t interpret.Task) error {
	if t.Has("state") {
		return w.RemoveDirectory(ctx, s.Path)
	}
	return w.MakeDirectory(ctx, topology.DirectoryWrite{Path: s.Path, Mode: uint32(s.Mode), Owner: s.Owner, Group: s.Group, Mark: t.Mark})
}

// RemovalEffect: a directory that is to be absent is not there to be removed.
func (interpreter) RemovalEffect(last score.Directory) interpret.Effect {
	if last.State == score.Absent {
		return interpret.Nothing
	}
	return interpret.Remove
}

func (interpreter) Remove(ctx context.Context, w topology.FileWriter, last score.Directory) error {
	return w.RemoveDirectory(ctx, last.Path)
}
