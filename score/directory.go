package score

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func init() {
	Register(Definition[Directory]{
		Doc:    "A directory, with its rights.",
		Needs:  []Capability{CapFiles},
		Sample: Directory{Path: "/srv/kiosk", Mode: 0o755, Owner: "root", Group: "root"},
	})
}

// KindDirectory is the kind of Directory.
const KindDirectory Kind = "directory"

// Directory is a directory. What is in it is other scores' to say, and is not touched. Parent
// directories that are missing are made, 0755. Links are never followed.
type Directory struct {
	// Path of the directory: absolute and clean.
	Path string `json:"path" effect:"remove" jsonschema:"pattern=^/,maxLength=4095,example=/srv/kiosk"`
	// State is present, or absent for a directory that is to be gone. If it is left out, present. A directory that is not empty is never removed.
	State Presence `json:"state,omitempty" effect:"remove" jsonschema:"enum=present,enum=absent"`
	// Mode is the permission bits, setgid and sticky, as quoted octal text.
	Mode Mode `json:"mode,omitzero" effect:"mutate"`
	// Owner is the name or number of the user. If it is left out, the owner is not managed.
	Owner string `json:"owner,omitempty" effect:"mutate" jsonschema:"example=root"`
	// Group is the name or number of the group. If it is left out, the group is not managed.
	Group string `json:"group,omitempty" effect:"mutate" jsonschema:"example=root"`
	// Exclusive says that nothing but entries may be in the directory. Whatever else is there is reported as drift, and stays.
	Exclusive bool `json:"exclusive,omitzero" effect:"mutate"`
	// Entries are the names that an exclusive directory may hold. Scores may claim paths below them, and no others in it.
	Entries []string `json:"entries,omitempty" effect:"mutate" jsonschema:"example=kiosk.conf"`
}

// Kind is KindDirectory.
func (Directory) Kind() Kind { return KindDirectory }

// requires says that a directory is not closed to everybody because somebody forgot its mode.
func (d Directory) requires() []lack {
	if d.Mode == 0 && d.State != Absent {
		return []lack{{"mode", `such as mode: "0755"`}}
	}
	return nil
}

// MarshalJSONTo writes what requires wants to be given.
func (d Directory) MarshalJSONTo(enc *jsontext.Encoder) error {
	type plain Directory
	if d.Mode != 0 || d.State == Absent {
		return json.MarshalEncode(enc, plain(d))
	}
	return json.MarshalEncode(enc, struct {
		plain `json:",inline"`
		Mode  Mode `json:"mode"`
	}{plain: plain(d)})
}

// MarshalJSON serves encoding/json.
func (d Directory) MarshalJSON() ([]byte, error) { return Encode(d) }

// Claims is the path.
func (d Directory) Claims() []Resource { return []Resource{fileResource(d.Path)} }

// AddDirectory adds a directory to a draft.
func AddDirectory[P Files](d *Draft[P], id ID, dir Directory) Ref[Directory] {
	return add(d, id, dir)
}

// Check refuses paths and accounts that no device may be given.
func (d Directory) Check(r *Report) {
	at := r.At("path")
	checkPath(at, d.Path)
	checkFree(at, d.Path)
	if holdsAgents(d.Path) {
		at.Errorf("%s holds the agent's own files, or what runs it: its rights are for no score to change", d.Path)
	}
	d.State.check(r.At("state"))
	checkOwners(r, d.Owner, d.Group)
	switch {
	case d.Mode > 0o7777:
		r.At("mode").Errorf("mode has more than permission, setuid, setgid and sticky bits")
	case d.Mode&0o111 == 0 && d.State != Absent:
		r.At("mode").Warnf("mode %s lets nobody into the directory: for a directory, x is the right to use what is in it", d.Mode)
	}
	if len(d.Entries) > 0 && !d.Exclusive {
		r.At("entries").Errorf("entries are what an exclusive directory may hold: write exclusive: true, or leave them out")
	}
	for i, name := range d.Entries {
		switch {
		case name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || len(name) > 255:
			r.At("entries", i).Errorf("entry %q is no name of a file", name)
		case slices.Contains(d.Entries[:i], name):
			r.At("entries", i).Errorf("entry %q is listed twice", name)
		}
	}
}

// admits reports whether a path may be claimed by another score than the one of d.
func (d Directory) admits(p string) bool {
	rest, below := strings.CutPrefix(p, d.Path+"/")
	if !below || !d.Exclusive || d.State == Absent {
		return true
	}
	name, _, _ := strings.Cut(rest, "/")
	return slices.Contains(d.Entries, name)
}

// checkExclusive reports what claimants claim inside the exclusive directory of another one. It
// leaves out those of one manifest if across is true.
func checkExclusive(claimants []claimant, across bool) {
	for i, owner := range claimants {
		dir, is := owner.spec.(Directory)
		if !is || !dir.Exclusive {
			continue
		}
		for j, c := range claimants {
			if i == j || c.spec == nil || across && c.in == owner.in {
				continue
			}
			for _, res := range c.spec.Claims() {
				p, file := strings.CutPrefix(string(res), "file:")
				if file && !dir.admits(p) {
					name, _, _ := strings.Cut(strings.TrimPrefix(p, dir.Path+"/"), "/")
					c.at.Errorf("%s claims %s, inside %s, which %s has for itself: add %q to its entries, or take another path", c.name, res, dir.Path, owner.name, name)
				}
			}
		}
	}
}
