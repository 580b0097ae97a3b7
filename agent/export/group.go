package export

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// A group is a unit file, or a Quadlet file, with its drop-ins: they are read together.
type group struct {
	main     string   // path of the file, whether it is there or not
	template string   // path of the file that it is an instance of
	adds     []string // paths of drop-ins, in the order in which they are read
	done     bool     // what it refers to is wanted
	uses     []string // paths that it refers to
}

func (g *group) unit() string  { return path.Base(g.main) }
func (g *group) quadlet() bool { return strings.HasPrefix(g.main, score.QuadletDir) }
func (g *group) ofUsers() bool { return strings.HasPrefix(g.main, score.UserUnitDir) }
func (g *group) dropIns() []string {
	dirs := []string{g.main + ".d"}
	if prefix, instance, is := strings.Cut(g.unit(), "@"); is && !strings.HasPrefix(instance, ".") { // those of the template come first
		dirs = append(dirs, path.Join(path.Dir(g.main), prefix+"@"+path.Ext(g.unit())+".d"))
	}
	return dirs
}

var (
	unitSuffixes    = []string{".service", ".socket", ".timer", ".path", ".mount", ".automount", ".swap", ".target", ".slice"}
	quadletSuffixes = []string{".container", ".volume", ".network", ".kube", ".pod", ".image", ".build"}
)

// mainOf is the path of the unit file or Quadlet file that p is, or adds to; empty: it is another file.
func mainOf(p string) string {
	main := p
	if dir, is := strings.CutSuffix(path.Dir(p), ".d"); is && path.Ext(p) == ".conf" {
		main = dir
	}
	switch {
	case strings.HasPrefix(main, score.QuadletDir) && slices.Contains(quadletSuffixes, path.Ext(main)):
		return main
	case (path.Dir(main)+"/" == score.UnitDir || path.Dir(main)+"/" == score.UserUnitDir) && slices.Contains(unitSuffixes, path.Ext(main)):
		return main
	}
	return ""
}

// group brings the group of a file that was read.
func (x *reading) group(ctx context.Context, t *thing) error {
	if main := mainOf(t.path); main != "" {
		return x.bring(ctx, main, cmp.Or(t.from, t.path), optional)
	}
	return nil
}

// bring reads a unit or Quadlet file and its drop-ins, once.
func (x *reading) bring(ctx context.Context, main, from string, by how) error {
	if x.groups[main] != nil {
		return nil
	}
	g := &group{main: main}
	x.groups[main] = g
	if err := x.want(ctx, main, from, by); err != nil {
		return err
	}
	if prefix, instance, is := strings.Cut(g.unit(), "@"); is && !strings.HasPrefix(instance, ".") && x.things[main] == nil {
		g.template = path.Join(path.Dir(main), prefix+"@"+path.Ext(main))
		if x.groups[g.template] == nil { // what it refers to is for its instance to say
			x.groups[g.template] = &group{main: g.template, done: true}
		}
		if err := x.want(ctx, g.template, main, optional); err != nil {
			return err
		}
	}
	for _, dir := range g.dropIns() {
		st, err := x.snap.Look(ctx, dir)
		if err != nil {
			return x.unread(dir, main, err)
		}
		if st.Type != topology.Directory {
			continue
		}
		names, more, err := x.snap.Entries(ctx, dir, x.limits.Things)
		if err != nil {
			return x.unread(dir, main, err)
		}
		if x.listed += len(names) + more; x.listed > x.limits.Things {
			return x.full(Finding{dir, main, CodeTooMany, fmt.Sprintf("with it there are more than %d files, directories and links", x.limits.Things)})
		}
		for _, name := range names {
			if !strings.HasSuffix(name, ".conf") || name[0] == '.' {
				continue
			}
			p := path.Join(dir, name)
			if err := x.want(ctx, p, main, needed); err != nil {
				return err
			}
			if x.things[p] != nil && !slices.ContainsFunc(g.adds, func(o string) bool { return path.Base(o) == name }) {
				g.adds = append(g.adds, p)
			}
		}
	}
	slices.SortFunc(g.adds, func(a, b string) int { return cmp.Compare(path.Base(a), path.Base(b)) })
	return nil
}

// close reads what groups refer to, until nothing new comes.
func (x *reading) close(ctx context.Context) error {
	for more := true; more; {
		more = false
		for _, main := range slices.Sorted(maps.Keys(x.groups)) {
			g := x.groups[main]
			if g.done {
				continue
			}
			g.done, more = true, true
			if err := x.follow(ctx, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow reads what a group refers to.
func (x *reading) follow(ctx context.Context, g *group) error {
	var all []setting
	for _, p := range append([]string{g.main, g.template}, g.adds...) {
		if t := x.behind(p); t != nil && t.st.Type == topology.Regular {
			all = append(all, settings(p, t.text)...)
		}
	}
	for _, s := range inForce(all) {
		if err := x.refer(ctx, g, s); err != nil {
			return err
		}
	}
	return x.activated(ctx, g, all)
}

// refer reads what one setting refers to.
func (x *reading) refer(ctx context.Context, g *group, s setting) error {
	section, name, _ := strings.Cut(s.name, ".")
	switch {
	case name == "EnvironmentFile":
		value, dash := strings.CutPrefix(s.value, "-")
		return x.path(ctx, g, s, value, howOf(dash), false)
	case strings.HasPrefix(name, "Exec") && name != "ExecSearchPath" && name != "ExecPaths" && section != "Container":
		return x.programs(ctx, g, s)
	case name == "LoadCredential" || name == "LoadCredentialEncrypted":
		_, value, is := strings.Cut(s.value, ":")
		if !is || !strings.HasPrefix(value, "/") { // looked for where credentials are
			return nil
		}
		return x.path(ctx, g, s, value, needed, true)
	case g.quadlet() && slices.Contains([]string{"Container", "Pod", "Kube", "Build", "Volume", "Image", "Network"}, section):
		return x.quadlet(ctx, g, s, name)
	case section == "Unit" && slices.Contains([]string{"Requires", "BindsTo", "Requisite"}, name):
		return x.otherUnits(ctx, g, s, needed)
	case section == "Unit" && slices.Contains([]string{"Wants", "Upholds", "OnFailure", "OnSuccess"}, name):
		return x.otherUnits(ctx, g, s, optional)
	case s.name == "Timer.Unit", s.name == "Path.Unit", s.name == "Socket.Service", s.name == "Service.Sockets":
		return x.otherUnits(ctx, g, s, needed)
	}
	return nil
}

func howOf(dash bool) how {
	if dash {
		return optional
	}
	return needed
}

// path reads the file that a setting names. A credential that is a secret by its path stays where it is.
func (x *reading) path(ctx context.Context, g *group, s setting, value string, by how, credential bool) error {
	p, clear := expand(value, g.unit(), !g.ofUsers())
	p = strings.TrimSuffix(p, "/")
	if clear && g.quadlet() && !path.IsAbs(p) {
		p = path.Join(path.Dir(g.main), p)
	}
	if !clear || !path.IsAbs(p) || strings.ContainsAny(p, "*?[\"'\\") {
		return x.refuse(Finding{s.in, "", CodeUnclear, fmt.Sprintf("%s names a file that only the service manager can find", s.name)})
	}
	p = path.Clean(p)
	if credential && score.ClassOfPath(p) == score.PathSecret {
		st, err := x.snap.Look(ctx, p)
		switch {
		case err != nil:
			return x.unread(p, s.in, err)
		case st.Type == topology.Absent:
			return x.refuse(Finding{p, s.in, CodeMissing, "it is not there"})
		}
		x.leave(Finding{p, s.in, CodeSecret, "it is a credential, and stays on the device"})
		return nil
	}
	g.uses = append(g.uses, p)
	return x.want(ctx, p, s.in, by)
}

// searched is where the service manager looks for a program without a path, besides what the system brings.
var searched = []string{"/usr/local/sbin/", "/usr/local/bin/"}

func (x *reading) programs(ctx context.Context, g *group, s setting) error {
	all, clear := programs(s.value)
	if !clear {
		return x.refuse(Finding{s.in, "", CodeUnclear, s.name + " names a program in a way that only the service manager can read"})
	}
	for _, word := range all {
		program := strings.TrimLeft(word, "@-:+!|")
		prefix := word[:len(word)-len(program)]
		if strings.HasPrefix(program, "/") || strings.Contains(program, "%") {
			if err := x.path(ctx, g, s, program, howOf(strings.Contains(prefix, "-")), false); err != nil {
				return err
			}
			continue
		}
		for _, dir := range searched {
			st, err := x.snap.Look(ctx, dir+program)
			if err != nil {
				return x.unread(dir+program, s.in, err)
			}
			if st.Type != topology.Absent {
				if err := x.path(ctx, g, s, dir+program, needed, false); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}
