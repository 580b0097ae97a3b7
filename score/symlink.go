package score

import (
	"cmp"
	"path"
	"strings"
)

func init() {
	Register(Definition[Symlink]{
		Doc:    "A symbolic link.",
		Needs:  []Capability{CapFiles},
		Sample: Symlink{Path: "/etc/localtime", Target: "/usr/share/zoneinfo/Europe/Berlin"},
	})
}

// KindSymlink is the kind of Symlink.
const KindSymlink Kind = "symlink"

// Symlink is a symbolic link. Where it leads to is not looked at: it may be nowhere yet. Only
// a link is ever replaced by one: a file or a directory in its place is reported, and left
// alone. Parent directories that are missing are made, 0755.
type Symlink struct {
	// Path of the link: absolute and clean.
	Path string `json:"path" effect:"remove" jsonschema:"pattern=^/,maxLength=4095,example=/etc/localtime"`
	// State is present, or absent for a link that is to be gone. If it is left out, present.
	State Presence `json:"state,omitempty" effect:"remove" jsonschema:"enum=present,enum=absent"`
	// Target is where the link leads to, byte for byte: absolute, or from the directory of the link.
	Target string `json:"target,omitempty" effect:"mutate" jsonschema:"maxLength=4095,example=/usr/share/zoneinfo/Europe/Berlin"`
}

// Kind is KindSymlink.
func (Symlink) Kind() Kind { return KindSymlink }

// Claims is the path.
func (s Symlink) Claims() []Resource { return []Resource{fileResource(s.Path)} }

// Touches is the link, and where it leads to: a container that sees the link sees that. A target with a name before a ".."
// is not cleaned, because the name may be a link itself.
func (s Symlink) Touches() Touches {
	t := Touches{Paths: []string{s.Path}}
	switch to := strings.TrimSuffix(s.Target, "/"); {
	case s.State == Absent:
	case path.IsAbs(to) || s.Target == "/":
		t.Paths = append(t.Paths, cmp.Or(to, "/"))
	case to == path.Clean(to):
		t.Paths = append(t.Paths, path.Join(path.Dir(s.Path), to))
	default:
		t.Paths = append(t.Paths, path.Dir(s.Path)+"/"+to)
	}
	return t
}

// AddSymlink adds a symbolic link to a draft.
func AddSymlink[P Files](d *Draft[P], id ID, s Symlink) Ref[Symlink] { return add(d, id, s) }

// Check refuses paths that no device may be given, and links that lead nowhere.
func (s Symlink) Check(r *Report) {
	checkPath(r.At("path"), s.Path)
	checkFree(r.At("path"), s.Path)
	if holdsAgents(s.Path) {
		r.At("path").Errorf("%s holds the agent's own files, or what runs it, and cannot be a link", s.Path)
	}
	s.State.check(r.At("state"))
	at := r.At("target")
	to := s.Target
	switch {
	case to == "" && s.State != Absent:
		r.Errorf("no target: say where the link leads to")
	case len(to) > 4095:
		at.Errorf("target is %d bytes long, a device takes 4095", len(to))
	case strings.ContainsRune(to, 0):
		at.Errorf("target has a NUL byte")
	}
	if to != "" && !path.IsAbs(to) {
		to = path.Join(path.Dir(s.Path), to)
	}
	switch {
	case to != "" && path.Clean(to) == s.Path:
		at.Errorf("the link leads to itself")
	case isAgents(path.Clean(to)):
		at.Errorf("the link leads to %s, which belongs to the agent itself", path.Clean(to))
	}
}
