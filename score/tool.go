package score

import (
	"regexp"
	"slices"
)

func init() {
	Register(Definition[Tool]{
		Doc:    "A program that must be there, in a version that will do. It is looked at and never changed.",
		Needs:  []Capability{CapTools},
		Sample: Tool{Name: "python3", Version: ">= 3.9", Path: "/usr/bin/python3"},
	})
}

// KindTool is the kind of Tool.
const KindTool Kind = "tool"

// Tool is a program that must be there. What differs is reported and never mended: who
// installs programs knows why. The device starts the program with --version and nothing
// else, as whoever types that; so name only programs that know it.
type Tool struct {
	// Name of the program, as it is typed. The names agent, kernel and systemd mean those that run.
	Name string `json:"name" effect:"none" jsonschema:"maxLength=64,pattern=^[A-Za-z0-9_+][A-Za-z0-9_.+-]*$,example=podman"`
	// Version that will do; left out, any does.
	Version VersionRange `json:"version,omitzero" effect:"none"`
	// Path that it must be found at first, or that this leads to; left out, any will do.
	Path string `json:"path,omitzero" effect:"none" jsonschema:"pattern=^/.*[^/]$,example=/usr/bin/podman"`
}

// Kind is KindTool.
func (Tool) Kind() Kind { return KindTool }

// Claims is the name: what it must be is said once.
func (t Tool) Claims() []Resource { return []Resource{Resource("tool:" + t.Name)} }

// AddTool adds a tool to a draft.
func AddTool[P Tools](d *Draft[P], id ID, t Tool) Ref[Tool] { return add(d, id, t) }

var toolRE = regexp.MustCompile(`^[A-Za-z0-9_+][A-Za-z0-9_.+-]{0,63}$`)

// stopping are programs that must not be started, whatever they are given: somebody else's
// program of that name may not know --version, and do its work.
var stopping = []string{"halt", "init", "kexec", "poweroff", "reboot", "shutdown", "telinit"}

// Check refuses what is no name of a program, or of one that is better not started.
func (t Tool) Check(r *Report) {
	switch {
	case !toolRE.MatchString(t.Name):
		r.At("name").Errorf("name %q must be that of a program: letters, digits, '_', '-', '.' and '+', without a directory, at most 64", t.Name)
	case slices.Contains(stopping, t.Name):
		r.At("name").Errorf("%s is not started, not even for its version: it could stop the device", t.Name)
	}
	t.Version.check(r.At("version"))
	if t.Path != "" {
		checkPath(r.At("path"), t.Path)
	}
	if t.Path != "" && (t.Name == "kernel") {
		r.At("path").Errorf("the kernel that runs has no path")
	}
}
