package export

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// brings are the directories of units that the system brings, or makes of something else.
var brings = []string{"/usr/local/lib/systemd/", "/usr/lib/systemd/", "/run/systemd/generator/", "/run/systemd/generator.early/", "/run/systemd/generator.late/", "/run/systemd/"}

// otherUnits brings the units that a setting names, where somebody put them on this device.
func (x *reading) otherUnits(ctx context.Context, g *group, s setting, by how) error {
	for word := range strings.FieldsSeq(s.value) {
		unit, clear := expand(strings.Trim(word, `"'`), g.unit(), !g.ofUsers())
		if !clear || strings.ContainsAny(unit, "/%") {
			if by == optional {
				continue
			}
			return x.refuse(Finding{s.in, "", CodeUnclear, fmt.Sprintf("%s names a unit that only the service manager can find", s.name)})
		}
		if err := x.otherUnit(ctx, g, s.in, unit, by); err != nil {
			return err
		}
	}
	return nil
}

// otherUnit brings one. What a unit needs must be somewhere; what only helps it may be missing. Those that nobody
// writes, such as the units of devices and mounts, are the system's.
func (x *reading) otherUnit(ctx context.Context, g *group, from, unit string, by how) error {
	if !slices.Contains([]string{".service", ".socket", ".timer", ".path", ".target"}, path.Ext(unit)) {
		return nil
	}
	dir, sub := score.UnitDir, "system/"
	if g.ofUsers() {
		dir, sub = score.UserUnitDir, "user/"
	}
	names := []string{unit}
	if prefix, instance, is := strings.Cut(unit, "@"); is && !strings.HasPrefix(instance, ".") {
		names = append(names, prefix+"@"+path.Ext(unit))
	}
	if agents(dir+unit) != "" {
		return nil
	}
	for _, name := range names {
		st, err := x.snap.Look(ctx, dir+name)
		if err != nil {
			return x.unread(dir+name, from, err)
		}
		if st.Type != topology.Absent {
			return x.bring(ctx, dir+name, from, needed)
		}
	}
	if made := score.QuadletDir + strings.TrimSuffix(unit, ".service") + ".container"; !g.ofUsers() && path.Ext(unit) == ".service" {
		st, err := x.snap.Look(ctx, made)
		if err != nil {
			return x.unread(made, from, err)
		}
		if st.Type != topology.Absent {
			return x.bring(ctx, made, from, needed)
		}
	}
	if by == optional {
		return nil
	}
	for _, name := range names {
		for _, lib := range brings {
			if strings.Contains(lib, "generator") && g.ofUsers() {
				continue
			}
			p := lib + sub + name
			if strings.Contains(lib, "generator") {
				p = lib + name
			}
			if st, err := x.snap.Look(ctx, p); err == nil && st.Type != topology.Absent {
				return nil
			}
		}
	}
	return x.refuse(Finding{dir + unit, from, CodeMissing, "the device has no such unit"})
}

// activated brings what a timer, a socket or a path starts if it does not say so: the service of its name.
func (x *reading) activated(ctx context.Context, g *group, all []setting) error {
	t := x.behind(g.main)
	ext := path.Ext(g.main)
	if t == nil || t.st.Type != topology.Regular || !slices.Contains([]string{".timer", ".socket", ".path"}, ext) || strings.Contains(g.main, "@") {
		return nil
	}
	for _, s := range all {
		if s.name == "Timer.Unit" || s.name == "Path.Unit" || s.name == "Socket.Service" || s.name == "Socket.Accept" {
			return nil
		}
	}
	return x.otherUnit(ctx, g, g.main, strings.TrimSuffix(g.unit(), ext)+".service", needed)
}

// reads are the options of podman by which a container sees files of the device.
var reads = []string{"-v", "--volume", "--mount", "--env-file", "--secret", "--device-cgroup-rule", "--volumes-from"}

// quadlet reads what a setting of a Quadlet file refers to.
func (x *reading) quadlet(ctx context.Context, g *group, s setting, name string) error {
	other := func(value string, suffixes ...string) error { // a file beside it
		if slices.Contains(suffixes, path.Ext(value)) && !strings.Contains(value, "/") {
			return x.path(ctx, g, s, path.Join(path.Dir(g.main), value), needed, false)
		}
		return nil
	}
	switch name {
	case "Volume":
		source, _, _ := strings.Cut(s.value, ":")
		if !strings.Contains(s.value, ":") {
			return nil // of podman's own
		}
		if err := other(source, ".volume"); err != nil {
			return err
		}
		if path.Ext(source) == ".volume" {
			return nil
		}
		return x.bound(ctx, g, s, source)
	case "Mount":
		kind, source := "", ""
		for part := range strings.SplitSeq(s.value, ",") {
			switch key, value, _ := strings.Cut(part, "="); key {
			case "type":
				kind = value
			case "source", "src":
				source = value
			}
		}
		if kind == "bind" || kind == "glob" {
			return x.bound(ctx, g, s, source)
		}
		return other(source, ".volume", ".image", ".build")
	case "Network":
		value, _, _ := strings.Cut(s.value, ":")
		return other(value, ".network", ".container")
	case "Pod":
		return other(s.value, ".pod")
	case "Image":
		return other(s.value, ".image", ".build")
	case "Yaml", "ConfigMap", "File":
		if name == "File" && strings.Contains(s.value, "://") {
			return nil
		}
		return x.path(ctx, g, s, s.value, needed, false)
	case "PodmanArgs", "GlobalArgs":
		for word := range strings.FieldsSeq(s.value) {
			if option, _, _ := strings.Cut(strings.Trim(word, `"'`), "="); slices.Contains(reads, option) {
				return x.refuse(Finding{s.in, "", CodeUnclear, fmt.Sprintf("%s has %s, which may name files: write it as a setting of its own", s.name, option)})
			}
		}
	}
	return nil
}

// bound reads what a container sees of the device.
func (x *reading) bound(ctx context.Context, g *group, s setting, source string) error {
	if !strings.HasPrefix(source, "/") && !strings.HasPrefix(source, ".") && !strings.HasPrefix(source, "%") {
		return nil // a volume of podman
	}
	p, clear := expand(source, g.unit(), !g.ofUsers())
	if clear && !path.IsAbs(p) {
		p = path.Join(path.Dir(g.main), p)
	}
	if !clear {
		return x.path(ctx, g, s, source, needed, false) // which says so
	}
	p = path.Clean(p)
	g.uses = append(g.uses, p)
	return x.data(ctx, p, s.in)
}
