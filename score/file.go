package score

import (
	"path"
	"regexp"
	"strings"
	"unicode"
)

func init() {
	Register(Definition[File]{
		Doc:    "A regular file with given content.",
		Needs:  []Capability{CapFiles},
		Sample: File{Path: "/etc/motd", Content: "Welcome.\n", Mode: 0o644, Owner: "root", Group: "root"},
	})
}

// KindFile is the kind of File.
const KindFile Kind = "file"

// File is a regular file with given content. Parent directories that are missing are
// made, 0755. Links are never followed: a link in the place of the file is reported,
// and left alone.
type File struct {
	// Path of the file: absolute and clean.
	Path string `json:"path" effect:"remove" jsonschema:"pattern=^/,maxLength=4095,example=/etc/motd"`
	// Content is the whole of the file, byte for byte.
	Content string `json:"content" effect:"mutate"`
	// Mode is the permission bits as quoted octal text.
	Mode Mode `json:"mode" effect:"mutate"`
	// Owner is the name or number of the user. If it is left out, the owner is not managed.
	Owner string `json:"owner,omitempty" effect:"mutate"`
	// Group is the name or number of the group. If it is left out, the group is not managed.
	Group string `json:"group,omitempty" effect:"mutate"`
}

// Kind is KindFile.
func (File) Kind() Kind { return KindFile }

// Claims is the path.
func (f File) Claims() []Resource { return []Resource{fileResource(f.Path)} }

// AddFile adds a file to a draft.
func AddFile[P Files](d *Draft[P], id ID, f File) Ref[File] { return add(d, id, f) }

var accountRE = regexp.MustCompile(`^([a-z_][a-z0-9_-]{0,31}|[0-9]{1,10})$`)

// Check refuses paths and accounts that no device may be given.
func (f File) Check(r *Report) {
	checkPath(r.At("path"), f.Path)
	if f.Mode&0o700 == 0 {
		r.At("mode").Warnf("mode %s gives the owner no right at all", f.Mode)
	}
	if f.Mode&0o1000 != 0 && f.Mode <= 0o7777 { // 644 in Go, without its 0o, is 01204
		r.At("mode").Warnf("mode %s has the sticky bit, which means nothing for a file; in Go, write 0o644 and not 644", f.Mode)
	}
	if f.Mode > 0o7777 {
		r.At("mode").Errorf("mode has more than permission, setuid, setgid and sticky bits")
	}
	for _, a := range []struct{ field, name string }{{"owner", f.Owner}, {"group", f.Group}} {
		if a.name != "" && !accountRE.MatchString(a.name) {
			r.At(a.field).Errorf("%s %q is no account name and no number", a.field, a.name)
		}
	}
	if dir := path.Dir(f.Path); dir == "/etc/NetworkManager/system-connections" && f.Mode&0o077 != 0 {
		r.At("mode").Errorf("NetworkManager ignores a connection that others may read: mode must be \"0600\"")
	}
	if f.Path == "/etc/resolv.conf" {
		r.At("path").Warnf("/etc/resolv.conf belongs to NetworkManager or systemd-resolved, which will write it again")
	}
	if isAgents(f.Path) {
		r.At("path").Errorf("%s belongs to the agent itself", f.Path)
	}
}

func checkPath(r *Report, p string) {
	switch {
	case !path.IsAbs(p) || p != path.Clean(p) || p == "/":
		r.Errorf("path %q must be absolute and clean: no '..', no '//' and no '/' at the end", p)
	case strings.ContainsRune(p, 0):
		r.Errorf("path has a NUL byte")
	case len(p) > 4095:
		r.Errorf("path is %d bytes long, a device takes 4095", len(p))
	}
	if strings.ContainsFunc(p, func(c rune) bool { return unicode.Is(unicode.Mn, c) }) {
		r.Warnf("path %+q has a combining character: the same name written as one character is another file", p)
	}
	for part := range strings.SplitSeq(p, "/") {
		if len(part) > 255 {
			r.Errorf("path has a name of %d bytes, a device takes 255", len(part))
		}
	}
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if p == dir || strings.HasPrefix(p, dir+"/") {
			r.Errorf("%s is no place for files: it is the kernel's", dir)
		}
	}
}

// isAgents reports whether p is the agent's own: its configuration, state, unit and
// binary. A manifest that could replace them could replace the policy that binds it.
func isAgents(p string) bool {
	for _, dir := range []string{"/etc/continuo", "/var/lib/continuo", "/run/continuo"} {
		if p == dir || strings.HasPrefix(p, dir+"/") {
			return true
		}
	}
	if base := path.Base(p); base == "continuo-agent" {
		return true
	}
	for _, root := range []string{"/etc", "/run", "/usr/lib", "/lib", "/usr/local/lib"} {
		rest, below := strings.CutPrefix(p, root)
		unit, ok := strings.CutPrefix(rest, "/systemd/system/")
		if below && ok && (strings.HasPrefix(unit, "continuo-agent.service") || strings.HasPrefix(unit, "continuo-.service.d/")) { // the second is a drop-in by prefix
			return true
		}
	}
	return false
}
