package container

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
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
	set := func(field string, have, want []string) { differ(field, without(have, want), without(want, have)) }
	differ(fieldImage, have.Image, want.Image)
	differ("entrypoint", command(have.Entrypoint), command(want.Entrypoint))
	differ("command", command(have.Command), command(want.Command))
	variables(have.Env, want.Env, differ)
	set("ports", have.Ports, want.Ports)
	set("volumes", have.Volumes, want.Volumes)
	differ("restart", have.Restart, want.Restart)
	for _, f := range []struct{ field, have, want string }{
		{"user", have.User, want.User}, {"workingDir", have.WorkingDir, want.WorkingDir}, {"hostname", have.Hostname, want.Hostname},
		{"network", have.Network, want.Network}, {"stopSignal", have.StopSignal, want.StopSignal},
		{"reloadSignal", have.ReloadSignal, want.ReloadSignal}, {"stopTimeout", span(have.StopTimeout), span(want.StopTimeout)},
		{"limits.memory", bytes(have.Memory), bytes(want.Memory)}, {"limits.cpu", percent(have.CPU), percent(want.CPU)},
		{"limits.pids", number(have.PIDs), number(want.PIDs)}, {"log.driver", have.LogDriver, want.LogDriver},
		{"log.maxSize", bytes(have.LogSize), bytes(want.LogSize)},
	} {
		differ(f.field, cmp.Or(f.have, "default"), cmp.Or(f.want, "default"))
	}
	differ("readOnly", strconv.FormatBool(have.ReadOnly), strconv.FormatBool(want.ReadOnly))
	set("devices", have.Devices, want.Devices)
	set("capabilities.add", have.CapAdd, want.CapAdd)
	set("capabilities.drop", have.CapDrop, want.CapDrop)
	set("labels", have.Labels, want.Labels)
	set("tmpfs", mounts(have.Tmpfs), mounts(want.Tmpfs))
	set("secrets", hidden(have.Secrets), hidden(want.Secrets))
	differ("healthCheck", health(have.HealthCheck), health(want.HealthCheck))
	set("init", steps(have.Init), steps(want.Init))
	return out
}

// part is a few digits of the digest of what is not shown.
func part(v any) string {
	h := sha256.Sum256(fmt.Append(nil, v))
	return "sha256:" + hex.EncodeToString(h[:6]) + "…"
}

func bytes(n uint64) string {
	if n == 0 {
		return ""
	}
	return score.Bytes(n).String()
}

func percent(n uint32) string {
	if n == 0 {
		return ""
	}
	return score.Percent(n).String()
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func mounts(in []topology.ContainerTmpfs) (out []string) {
	for _, t := range in {
		s := t.Target
		if t.Size > 0 {
			s += " of " + bytes(t.Size)
		}
		out = append(out, s)
	}
	return out
}

// hidden names secrets with a few digits of the fingerprint of their values.
func hidden(in []topology.ContainerSecret) (out []string) {
	for _, s := range in {
		at := s.Target
		if s.Env != "" {
			at = "$" + s.Env
		} else {
			at += fmt.Sprintf(" %04o %d:%d", s.Mode, s.UID, s.GID)
		}
		out = append(out, fmt.Sprintf("%s (%.8s) at %s", s.Name, s.Fingerprint, at))
	}
	return out
}

func health(h *topology.ContainerHealthCheck) string {
	switch {
	case h == nil:
		return "left to the image"
	case len(h.Command) == 0:
		return "of the image"
	}
	return fmt.Sprintf("%s every %s", part(fmt.Sprintf("%q %v %v %d", h.Command, h.Timeout, h.StartPeriod, h.Retries)), cmp.Or(span(h.Interval), "30s"))
}

func steps(in []topology.InitContainer) (out []string) {
	for n, i := range in {
		out = append(out, fmt.Sprintf("%d %s %s %s", n+1, i.Name, i.Image,
			part(fmt.Sprintf("%q %q %q %q %q %v %v", i.Entrypoint, i.Command, i.User, i.Env, i.Volumes, hidden(i.Secrets), i.Timeout))))
	}
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
