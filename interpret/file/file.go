// Package file interprets score.File.
//
// What a file is to hold is found out when it is looked at: an inline text is there, a
// template is filled in with the facts and the secrets of the device, and a blob is known by
// its digest. Contents are compared on the device; what is told of them is for interpret.Teller to
// say: of a file that holds a secret, or that is not for everybody, a fingerprint.
package file

import (
	"bytes"
	"context"
	"strconv"
	"unicode/utf8"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer. One that has secrets, facts and blobs can have the
// files that use them.
type Needs interface{ topology.HasFiles }

// Kind binds the interpreter to t.
func Kind[T Needs](t T) interpret.Binding {
	f, s := t.Files(), sourcesOf(t)
	return interpret.Of[score.File, Observed, reader, writer](interpreter{}, reader{f, s}, writer{f, s})
}

// reader and writer are the two halves of a file system, beside what contents are made of.
type (
	reader struct {
		topology.FileReader
		sources
	}
	writer struct {
		topology.FileWriter
		sources
	}
)

// Observed is the actual state of one file.
type Observed struct {
	// Present is true if a regular file is there.
	Present bool `json:"present"`
	// Type of what is there: absent, regular, directory, symlink, special.
	Type string `json:"type"`
	// SHA256 of the content, byte for byte. Left out if it holds, or may hold, a secret, or if not everybody on the device may read it and no manifest says what it is.
	SHA256 string `json:"sha256,omitempty"`
	// Normalized is the sha256 of the content without the differences that do not count.
	Normalized string `json:"normalized,omitempty"`
	// Fingerprint stands for the content where its sha256 is left out: the same for the same content on this device, and nothing else.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Size in bytes. Left out with the sha256.
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
	wanted   bool         // a file is to be there
	is       topology.Sum // as topology.FileState.Is
	have     string       // what is told of the content, and of the wanted one if it is another
	want     string
}

// Exists reports whether anything is at the path.
func (o Observed) Exists() bool { return o.Type != string(topology.Absent) }

// OwnedBy returns the mark of the file.
func (o Observed) OwnedBy() topology.Mark { return o.mark }

// Conditions: a file that is there, if it is to be, is written; nobody has to load it.
func (o Observed) Conditions() interpret.Conditions {
	return interpret.Conditions{Written: new(o.Present == o.wanted)}
}

type interpreter struct{}

func (interpreter) FieldOf(c topology.Code) string {
	switch c {
	case topology.CodeNoAccount:
		return "owner"
	case topology.CodeSecret:
		return "template"
	case topology.CodeUnreachable:
		return "blob"
	}
	return "path"
}

func (interpreter) Observe(ctx context.Context, r reader, s score.File) (Observed, error) {
	st, err := r.File(ctx, s.Path)
	if err != nil {
		return Observed{}, err
	}
	o := Observed{Type: string(st.Type), Target: st.Target, mark: st.Mark, wanted: s.State != score.Absent, is: st.Is()}
	switch st.Type {
	case topology.Absent:
		if s.AttributesOnly && o.wanted {
			return o, topology.Faultf(topology.CodeInvalid, "%s is not there, and the score manages only the rights of a file that is: install what brings it, or give a content", s.Path)
		}
	case topology.Regular:
		o.Present, o.Links = true, st.Links
		o.Mode, o.Owner, o.Group = score.Mode(st.Mode).String(), st.Owner, st.Group
		o.uid, o.gid = strconv.FormatUint(uint64(st.UID), 10), strconv.FormatUint(uint64(st.GID), 10)
	case topology.Symlink:
		return o, topology.Faultf(topology.CodeSymlink, "%s is a symbolic link to %s; links are not followed: name its target, or remove it", s.Path, st.Target)
	default:
		return o, topology.Faultf(topology.CodeNotRegular, "%s is a %s, not a regular file", s.Path, st.Type)
	}
	if !o.wanted || s.AttributesOnly || o.Present && s.Create == score.CreateOnce {
		stated, _ := s.ContentDigest() // it is not asked for
		o.tell(ctx, r, s, st, topology.Sum(stated))
		return o, nil
	}
	c, err := r.content(ctx, s)
	if err != nil {
		o.tell(ctx, r, s, st, "")
		return o, err
	}
	return o, o.compare(ctx, r, s, st, c)
}

// Text is the content of a file that is one, up to 64 KiB, and holds no secret.
func (interpreter) Text(ctx context.Context, r reader, s score.File) (t interpret.Content, ok bool) {
	if len(s.SecretNames()) > 0 || interpret.Sealed(ctx) || s.Blob != nil || s.AttributesOnly {
		return t, false
	}
	st, err := r.File(ctx, s.Path)
	if err != nil || st.Type != topology.Regular {
		return t, false
	}
	b, err := r.Content(ctx, s.Path, 64<<10)
	if err != nil || !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return t, false
	}
	want, err := r.content(ctx, s)
	if err != nil {
		return t, false
	}
	public := interpret.Public(st.Mode)
	return interpret.Content{Text: string(b), Public: public, Digest: r.teller.Tell(ctx, topology.SumOf(b), public, want.stated())}, true
}
