package score

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"
)

// A SecretFile is a file in a container whose content only the device has.
type SecretFile struct {
	// Secret is the name of the secret.
	Secret string `json:"secret" jsonschema:"maxLength=128,pattern=^[A-Za-z0-9_][A-Za-z0-9_.-]*$,example=db-password"`
	// Target is the path of the file in the container.
	Target string `json:"target" jsonschema:"maxLength=4095,pattern=^/,example=/run/secrets/db-password"`
	// Mode is the permission bits as quoted octal text. If it is left out, 0400: for its owner only.
	Mode Mode `json:"mode,omitzero"`
	// UID is the number of the owner, in the container.
	UID uint32 `json:"uid,omitzero" jsonschema:"example=1000"`
	// GID is the number of the group, in the container.
	GID uint32 `json:"gid,omitzero" jsonschema:"example=1000"`
}

// DefaultSecretMode is the mode of a SecretFile that says none.
const DefaultSecretMode Mode = 0o400

// readable reports whether a program that runs as user can read s, as far as numbers tell.
func (s SecretFile) readable(user string) bool {
	name, group, _ := strings.Cut(user, ":")
	uid, err := strconv.ParseUint(name, 10, 32)
	if err != nil || uid == 0 {
		return true // a name of the image, or root
	}
	mode := cmp.Or(s.Mode, DefaultSecretMode)
	gid, err := strconv.ParseUint(group, 10, 32)
	inGroup := err == nil && uint32(gid) == s.GID
	return mode&0o004 != 0 || uint32(uid) == s.UID && mode&0o400 != 0 || inGroup && mode&0o040 != 0
}

// A Tmpfs is a directory in memory.
type Tmpfs struct {
	// Target is the path of the directory in the container.
	Target string `json:"target" jsonschema:"maxLength=4095,pattern=^/,example=/var/cache"`
	// Size that it may grow to. If it is left out, half of the memory of the device.
	Size Bytes `json:"size,omitzero"`
}

// checkMounts looks at what is seen in the container: nothing twice, and nothing of the agent.
func (c Container) checkMounts(r *Report) {
	checkVolumes(r.At("volumes"), c.Volumes)
	taken := map[string]string{}
	take := func(r *Report, target, what string) {
		if by, is := taken[target]; is {
			r.Errorf("%s has the target %s too", by, target)
			return
		}
		taken[target] = what
	}
	for i, v := range c.Volumes {
		if _, is := taken[v.Target]; !is { // told by checkVolumes
			taken[v.Target] = fmt.Sprintf("volume %d", i+1)
		}
	}
	for i, s := range c.Secrets {
		at := r.At("secrets", i)
		SecretRef{s.Secret}.check(at)
		checkTarget(at.At("target"), s.Target)
		if isAgents(s.Target) {
			at.At("target").Errorf("%s belongs to the agent itself", s.Target)
		}
		if s.Mode > 0o777 {
			at.At("mode").Errorf("mode %s has more than permission bits", s.Mode)
		}
		if !s.readable(c.User) {
			at.Warnf("the program runs as %s, and the file is for %d:%d with mode %s: it cannot read it", c.User, s.UID, s.GID, cmp.Or(s.Mode, DefaultSecretMode))
		}
		take(at.At("target"), s.Target, fmt.Sprintf("secret %d", i+1))
	}
	for i, t := range c.Tmpfs {
		at := r.At("tmpfs", i)
		checkTarget(at.At("target"), t.Target)
		if t.Size != 0 && t.Size < 4<<10 {
			at.At("size").Errorf("size %s must be 4Ki at least", t.Size)
		}
		take(at.At("target"), t.Target, fmt.Sprintf("tmpfs %d", i+1))
	}
	for i, d := range c.Devices {
		at := r.At("devices", i)
		d.check(at)
		take(at, d.Container, fmt.Sprintf("device %d", i+1))
	}
}

func checkVolumes(r *Report, volumes []Volume) {
	for i, v := range volumes {
		v.check(r.At(i))
		for j, w := range volumes[:i] {
			if v.Target == w.Target {
				r.At(i).Errorf("volume %d has the target %s too", j+1, v.Target)
			}
		}
	}
}

// checkTarget takes paths that every option of a container runtime can carry.
func checkTarget(r *Report, p string) {
	if !path.IsAbs(p) || p != path.Clean(p) || p == "/" || strings.ContainsAny(p, ":,\"\\") || strings.ContainsFunc(p, unicode.IsControl) || strings.HasSuffix(p, " ") || len(p) > 4095 {
		r.Errorf("target %q must be an absolute, clean path in the container, without ':', ',', '\"' and '\\'", p)
	}
}
