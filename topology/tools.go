package topology

import "context"

// A ToolCopy is one program that goes by a name.
type ToolCopy struct {
	// Path where it was found on the search path of the device; left out for what is no file, such as the kernel.
	Path string `json:"path,omitempty"`
	// Target that the path leads to, if it is a link.
	Target string `json:"target,omitempty"`
	// Version that it says it has.
	Version string `json:"version,omitempty"`
	// Works is true if it was started and ended well, in time.
	Works bool `json:"works"`
	// Why it does not work.
	Why string `json:"why,omitempty"`
}

// A ToolCondition says how a tool is, in one word.
type ToolCondition string

// Conditions of tools.
const (
	ToolPresent  ToolCondition = "present"  // it is there and works
	ToolMissing  ToolCondition = "missing"  // there is none of that name
	ToolBroken   ToolCondition = "broken"   // it is there and does not work
	ToolShadowed ToolCondition = "shadowed" // it does not work, and stands before one that does
)

// A ToolState is what was found under the name of a program, in the order of the search
// path: the first copy is the one that is started.
type ToolState struct{ Copies []ToolCopy }

// Condition of the tool.
func (s ToolState) Condition() ToolCondition {
	for i, c := range s.Copies {
		switch {
		case c.Works && i == 0:
			return ToolPresent
		case c.Works:
			return ToolShadowed
		}
	}
	if len(s.Copies) > 0 {
		return ToolBroken
	}
	return ToolMissing
}

// Tools that are asked in other ways than by starting a program of that name.
const (
	ToolAgent          = "agent"   // the program that asks
	ToolKernel         = "kernel"  // the one that runs
	ToolServiceManager = "systemd" // the one that runs
)

// DefaultTools are looked at on every device, which stands on them.
var DefaultTools = []string{ToolAgent, ToolKernel, "podman", ToolServiceManager}

// A ToolReader finds out about programs.
type ToolReader interface {
	// Tool looks for a program by its name, without a directory, on the search path that
	// services of the device have. It starts what it finds with --version, and believes for
	// a while what it said as long as the file stays the same. A name that is none is
	// CodeInvalid; a program that is not there is a state.
	Tool(ctx context.Context, name string) (ToolState, error)
}

// HasTools is implemented by topologies that have programs.
type HasTools interface{ Tools() ToolReader }

// CheckTool refuses what is no name of a program, or is no program to be started for its version.
func CheckTool(name string) error {
	ok := name != "" && len(name) <= 64 && name[0] != '-' && name[0] != '.'
	for _, r := range name {
		ok = ok && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' || r == '+')
	}
	if !ok {
		return Faultf(CodeInvalid, "%q is not the name of a program: letters, digits, _ - . and +, without a directory", name)
	}
	return nil
}
