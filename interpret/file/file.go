// Package file interprets score.File.
package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"unicode/utf8"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer.
type Needs interface{ topology.HasFiles }

// Kind binds the interpreter to t.
func Kind[T Needs](t T) interpret.Binding {
	f := t.Files()
	return interpret.Of[score.File, Observed, topology.FileReader, topology.FileWriter](interpreter{}, f, f)
}

// Observed is the actual state of one file.
type Observed struct {
	// Present is true if a regular file is there.
	Present bool `json:"present"`
	// Type of what is there: absent, regular, directory, symlink, special.
	Type string `json:"type"`
	// SHA256 of the content.
	SHA256 string `json:"sha256,omitempty"`
	// Size in bytes.
	Size int64 `json:"size,omitzero"`
	// Mode as octal text.
	Mode string `json:"mode,omitempty"`
	// Owner is the name of the user, or its number.
	Owner string `json:"owner,omitempty"`
	// Group is the name of the group, or its number.
	Group string `json:"group,omitempty"`
	// Links counts the names of the file; above 1, other names keep the old content when it is replaced.
	Links uint64 `json:"links,omitzero"`
	// Target of a symbolic link that is in the place of the file.
	Target string `json:"target,omitempty"`

	uid, gid string
	mark     topology.Mark
}

// Exists reports whether anything is at the path.
func (o Observed) Exists() bool { return o.Type != string(topology.Absent) }

// OwnedBy returns the mark of the file.
func (o Observed) OwnedBy() topology.Mark { return o.mark }

// Conditions: a file that is there is written; nobody has to load it.
func (o Observed) Conditions() interpret.Conditions {
	return interpret.Conditions{Written: &o.Present}
}

type interpreter struct{}

func (interpreter) FieldOf(c topology.Code) string {
	if c == topology.CodeNoAccount {
		return "owner"
	}
	return "path"
}

func (interpreter) Observe(ctx context.Context, r topology.FileReader, s score.File) (Observed, error) {
	st, err := r.File(ctx, s.Path)
	if err != nil {
		return Observed{}, err
	}
	o := Observed{Type: string(st.Type), Target: st.Target, mark: st.Mark}
	switch st.Type {
	case topology.Absent:
	case topology.Regular:
		o.Present, o.SHA256, o.Size, o.Links = true, st.SHA256, st.Size, st.Links
		o.Mode, o.Owner, o.Group = score.Mode(st.Mode).String(), st.Owner, st.Group
		o.uid, o.gid = strconv.FormatUint(uint64(st.UID), 10), strconv.FormatUint(uint64(st.GID), 10)
	case topology.Symlink:
		return o, topology.Faultf(topology.CodeSymlink, "%s is a symbolic link to %s; links are not followed: name its target, or remove it", s.Path, st.Target)
	default:
		return o, topology.Faultf(topology.CodeNotRegular, "%s is a %s, not a regular file", s.Path, st.Type)
	}
	return o, nil
}

func (interpreter) Diff(s score.File, o Observed) []interpret.Change {
	if !o.Present {
		return []interpret.Change{{Field: "present", Have: "false", Want: "true", Effect: interpret.Create}}
	}
	var out []interpret.Change
	differ := func(field, have, want string) {
		// of a file that is there, rights and owner are lost as well as content
		out = append(out, interpret.Change{Field: field, Have: have, Want: want, Effect: interpret.Mutate, Replaces: true})
	}
	if want := digest(s.Content); want != o.SHA256 {
		differ("content", o.SHA256, want)
		if o.Links > 1 { // said for people: the other names keep the old content
			differ("links", strconv.FormatUint(o.Links, 10), "1")
		}
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
	return out
}

func (interpreter) Apply(ctx context.Context, w topology.FileWriter, s score.File, t interpret.Task) error {
	fw := topology.FileWrite{Path: s.Path, Content: []byte(s.Content), Mode: uint32(s.Mode), Owner: s.Owner, Group: s.Group, Mark: t.Mark}
	for _, c := range t.Changes {
		switch c.Field {
		case "present":
			fw.Replaces = string(topology.Absent)
			return w.WriteFile(ctx, fw)
		case "content":
			fw.Replaces = c.Have // what is there now may be worth a backup, and was not asked about
			return w.WriteFile(ctx, fw)
		}
	}
	return w.SetAttributes(ctx, fw)
}

func (interpreter) Remove(ctx context.Context, w topology.FileWriter, last score.File) error {
	return w.RemoveFile(ctx, last.Path)
}

// Text is the content of a file that is one, up to 64 KiB.
func (interpreter) Text(ctx context.Context, r topology.FileReader, s score.File) (string, bool, bool) {
	st, err := r.File(ctx, s.Path)
	if err != nil || st.Type != topology.Regular {
		return "", false, false
	}
	b, err := r.Content(ctx, s.Path, 64<<10)
	if err != nil || !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return "", false, false
	}
	return string(b), st.Mode&0o004 != 0, true
}

func digest(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}
