package container

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
)

// Bounds of what is said of one container: a status is small.
const (
	maxVariables = 20  // that are named
	maxList      = 512 // bytes
)

// differences tells people how have departs from want. It shows no value of a variable,
// and of a command a few digits of a digest, as both may hold secrets.
func differences(have, want topology.ContainerConfig) []interpret.Change {
	var out []interpret.Change
	differ := func(field, have, want string) {
		if have != want {
			out = append(out, interpret.Change{Field: field, Have: have, Want: want, Effect: interpret.Disrupt})
		}
	}
	differ(fieldImage, have.Image, want.Image)
	differ("command", command(have.Command), command(want.Command))
	variables(have.Env, want.Env, differ)
	differ("ports", without(have.Ports, want.Ports), without(want.Ports, have.Ports))
	differ("volumes", without(have.Volumes, want.Volumes), without(want.Volumes, have.Volumes))
	differ("restart", have.Restart, want.Restart)
	return out
}

func command(args []string) string {
	if len(args) == 0 {
		return "of the image"
	}
	h := sha256.Sum256([]byte(strings.Join(args, "\x00"))) // no argument has a NUL byte
	return "sha256:" + hex.EncodeToString(h[:6]) + "…"
}

func variables(have, want []string, differ func(field, have, want string)) {
	old, now := byName(have), byName(want)
	names := make([]string, 0, len(old)+len(now))
	for _, e := range slices.Concat(have, want) {
		name, _, _ := strings.Cut(e, "=")
		was, set := old[name]
		if value, sets := now[name]; set != sets || was != value {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for i, name := range names {
		if i == maxVariables {
			differ("env", fmt.Sprintf("%d more variables", len(names)-i), "others")
			return
		}
		_, set := old[name]
		_, sets := now[name]
		switch {
		case !set:
			differ("env."+name, "not set", "set")
		case !sets:
			differ("env."+name, "set", "not set")
		default:
			differ("env."+name, "one value", "another value")
		}
	}
}

func byName(env []string) map[string]string {
	out := make(map[string]string, len(env))
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		out[name] = value
	}
	return out
}

// without lists what of a is not in b.
func without(a, b []string) string {
	left := slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
	s := cmp.Or(strings.Join(left, ", "), "none")
	if len(s) > maxList {
		s = strings.ToValidUTF8(s[:maxList], "") + "…"
	}
	return s
}
