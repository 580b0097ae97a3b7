package score

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A Volume shows a directory of the device, or a named volume, in a container. It is
// written as podman does: "/srv/web:/data", "/srv/web:/data:ro", "cache:/var/cache".
type Volume struct {
	Source   string // absolute path, or the name of a volume
	Target   string // absolute path in the container
	ReadOnly bool
}

// VolumePattern is the shape of a volume's text.
const VolumePattern = `^[^:]+:/[^:]*(:(ro|rw))?$`

var (
	volumeRE     = regexp.MustCompile(VolumePattern)
	procRE       = regexp.MustCompile(`^/proc/([0-9]+|self|thread-self)(/|$)`) // shows the root of a process, and with it everything
	volumeNameRE = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)
)

func (v Volume) String() string {
	s := v.Source + ":" + v.Target
	if v.ReadOnly {
		s += ":ro"
	}
	return s
}

// MarshalText writes the canonical text.
func (v Volume) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the text.
func (v *Volume) UnmarshalText(b []byte) error {
	if !volumeRE.Match(b) {
		return fmt.Errorf("cannot read volume %q: want \"/srv/web:/data\", \"/srv/web:/data:ro\" or \"cache:/var/cache\"", b)
	}
	parts := strings.Split(string(b), ":")
	*v = Volume{parts[0], parts[1], len(parts) == 3 && parts[2] == "ro"}
	return nil
}

// Shows says what of the agent's own a container would see or could put others in the place of; empty: nothing. A device
// asks it again about where a source leads.
func (v Volume) Shows() string {
	switch {
	case !strings.HasPrefix(v.Source, "/"):
	case isAgents(v.Source), procRE.MatchString(v.Source), slices.Contains([]string{"/", "/etc", "/run", "/run/credentials", "/var", "/var/lib"}, v.Source):
		return fmt.Sprintf("source %s would show the agent's own files to the container", v.Source)
	case !v.ReadOnly && holdsAgents(v.Source):
		return fmt.Sprintf("source %s is on the way to the agent's own files, and the container could put others in their place: mount it read-only (:ro), or a directory below it", v.Source)
	}
	return ""
}

func (v Volume) check(r *Report) {
	if strings.HasPrefix(v.Source, "/") {
		if v.Source != path.Clean(v.Source) {
			r.Errorf("source %q must be a clean path", v.Source)
		}
		if why := v.Shows(); why != "" {
			r.Errorf("%s", why)
		}
	} else if !volumeNameRE.MatchString(v.Source) {
		r.Errorf("source %q is no absolute path and no volume name", v.Source)
	} else if strings.HasSuffix(v.Source, ".volume") {
		r.Errorf("source %q ends in .volume, which podman's generator takes for one of its own files", v.Source)
	}
	if !path.IsAbs(v.Target) || v.Target != path.Clean(v.Target) || v.Target == "/" {
		r.Errorf("target %q must be an absolute, clean path in the container", v.Target)
	}
	if strings.ContainsFunc(v.Source+v.Target, unicode.IsControl) {
		r.Errorf("volume %q has a line break or another control character", v)
	}
	if strings.HasSuffix(v.Target, " ") && !v.ReadOnly {
		r.Errorf("volume %q ends with a space, which would get lost", v)
	}
	if strings.HasSuffix(v.Source, `\`) || strings.HasSuffix(v.Target, `\`) {
		r.Errorf("volume %q has a path that ends with a backslash, which the definition of a container cannot hold", v)
	}
}
