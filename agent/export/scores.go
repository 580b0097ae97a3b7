package export

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// A said is a score that says one thing, or the files of one unit.
type said struct {
	about string // its path, or the name of the unit or the container
	score score.Score
	uses  []string // paths that it needs
}

// scores say everything that was read, in the order of what they are about.
func (x *reading) scores(ctx context.Context) ([]score.Score, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var all []said
	for _, b := range x.brought {
		all = append(all, said{about: b.about, score: b.score})
	}
	for _, main := range x.mains() {
		if s, is := x.service(main); is {
			all = append(all, s)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(x.things)) {
		if x.covered[p] {
			continue
		}
		if spec := x.spec(x.things[p]); spec != nil {
			all = append(all, said{about: p, score: score.Score{Spec: spec}, uses: x.above(p)})
		}
	}
	slices.SortStableFunc(all, func(a, b said) int { return cmp.Compare(a.about, b.about) })
	return x.number(all), nil
}

// mains are the unit files that services are made of, those of units that were named among them.
func (x *reading) mains() []string {
	mains := map[string]bool{}
	for main, g := range x.groups {
		if !g.quadlet() && !g.ofUsers() && !strings.Contains(main, "@.") {
			mains[main] = true
		}
	}
	for unit := range x.units {
		mains[score.UnitDir+unit] = true
	}
	return slices.Sorted(maps.Keys(mains))
}

var dropInName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,199}$`)

// service says a unit: how it is if it was named, and its files as far as a service has them as they are. The others are
// files, and come before it.
func (x *reading) service(main string) (said, bool) {
	unit := path.Base(main)
	w, g := x.units[unit], x.groups[main]
	s := score.Service{Unit: unit}
	out := said{about: unit}
	if g != nil {
		out.uses = append(out.uses, g.uses...)
		x.files(&s, g)
		for _, p := range append([]string{main, g.template}, g.adds...) {
			if x.things[p] != nil && !x.covered[p] {
				out.uses = append(out.uses, p)
			}
		}
	}
	if w == nil && s.UnitFile == "" && len(s.DropIns) == 0 && s.Limits == nil {
		return out, false
	}
	if w != nil {
		state(&s, w.st)
		if quadlet := score.QuadletDir + strings.TrimSuffix(unit, ".service") + ".container"; x.things[quadlet] != nil {
			out.uses = append(out.uses, quadlet)
		}
	}
	out.score.Spec = s
	return out, true
}

// files fills in the files of a unit that the kind service writes exactly as they are.
func (x *reading) files(s *score.Service, g *group) {
	plain := func(p string) bool {
		t := x.things[p]
		return t != nil && t.st.Type == topology.Regular && t.st.Mode == 0o644 && t.st.UID == 0 && t.st.GID == 0
	}
	if o, owned := x.owner(score.Resource("unit:" + s.Unit)); owned {
		if made, is := o.Applied.Spec.(score.Service); is && x.holds(made, plain) {
			s.UnitFile, s.DropIns, s.Limits, s.Log = made.UnitFile, made.DropIns, made.Limits, made.Log
			for p := range made.Written() {
				x.covered[p] = true
			}
			return
		}
	}
	try := *s
	if plain(g.main) && x.things[g.main].text != "" {
		try.UnitFile = x.things[g.main].text
		if checks(try) {
			s.UnitFile, x.covered[g.main] = try.UnitFile, true
		}
	}
	for _, p := range g.adds {
		name := strings.TrimSuffix(path.Base(p), ".conf")
		text, ours := strings.CutPrefix(x.things[p].text, score.DropInHeader)
		if path.Dir(p) != g.main+".d" || !ours || !plain(p) || !dropInName.MatchString(name) || x.covered[p] {
			continue
		}
		try := *s
		if try.DropIns = maps.Clone(s.DropIns); try.DropIns == nil {
			try.DropIns = map[string]string{}
		}
		try.DropIns[name] = text
		if !checks(try) {
			_ = x.refuse(Finding{Path: p, Code: CodeUnsaid, Why: "a manifest wrote it, and somebody changed it so that no score says it"})
			continue
		}
		s.DropIns, x.covered[p] = try.DropIns, true
	}
}

// holds reports whether all files that a score brings are there as it wrote them.
func (x *reading) holds(made score.Service, plain func(string) bool) bool {
	written := made.Written()
	for p, text := range written {
		if !plain(p) || x.things[p].text != text {
			return false
		}
	}
	return len(written) > 0
}

// checks reports whether a spec is one that a device takes.
func checks(s score.Spec) bool {
	r := score.NewReport()
	s.Check(r)
	return !slices.ContainsFunc(r.Problems(), func(p score.Problem) bool { return p.Severity == score.Error })
}

// state says how a unit is, as far as it can be kept so: what a timer starts, or ends by itself, is neither running nor
// stopped, and what has failed is not wished for.
func state(s *score.Service, st topology.ServiceState) {
	if st.Load == topology.Masked {
		s.Masked = new(true)
		return
	}
	switch st.Enabled {
	case "enabled", "alias":
		s.Enabled = new(true)
	case "disabled":
		s.Enabled = new(false)
	}
	switch {
	case len(st.TriggeredBy) > 0, st.Type == "oneshot" && !st.Remain:
	case st.Active == "active" || st.Active == "reloading":
		s.State = score.Running
	case st.Active == "inactive":
		s.State = score.Stopped
	}
	for _, wish := range []func(){func() { s.State = "" }, func() { s.Enabled = nil }} { // what only a service manager finds possible
		if s.UnitFile == "" || checks(*s) {
			return
		}
		wish()
	}
}

// spec says a file, a directory or a link; nil for a directory whose rights are for no score to change.
func (x *reading) spec(t *thing) score.Spec {
	owner, group := account(t.st.Owner, t.st.UID), account(t.st.Group, t.st.GID)
	switch t.st.Type {
	case topology.Regular:
		return score.File{Path: t.path, Content: t.text, Mode: score.Mode(t.st.Mode), Owner: owner, Group: group}
	case topology.Symlink:
		return score.Symlink{Path: t.path, Target: t.st.Target}
	}
	d := score.Directory{Path: t.path, Mode: score.Mode(t.st.Mode), Owner: owner, Group: group}
	if !checks(d) {
		x.leave(Finding{t.path, t.from, CodeOwn, "its rights are for no score to change"})
		return nil
	}
	return d
}

var accountName = regexp.MustCompile(`^([a-z_][a-z0-9_-]{0,31}|[0-9]{1,10})$`)

func account(name string, id uint32) string {
	if accountName.MatchString(name) {
		return name
	}
	return strconv.FormatUint(uint64(id), 10)
}

// above is the directory that a path is in, if it is exported as well.
func (x *reading) above(p string) []string {
	if t := x.things[path.Dir(p)]; t != nil && t.st.Type == topology.Directory {
		return []string{t.path}
	}
	return nil
}

var notInID = regexp.MustCompile(`[^a-z0-9._]+`)

// number gives scores their ids, and their order: a thing comes after its directory, and a service after its files.
func (x *reading) number(all []said) (scores []score.Score) {
	ids, taken := map[string]score.ID{}, map[score.ID]bool{}
	for _, s := range all {
		base := strings.Trim(notInID.ReplaceAllString(strings.ToLower(strings.TrimPrefix(s.about, "container:")), "-"), "-._")
		if base = cmp.Or(base, "x"); len(base) > 100 {
			base = strings.Trim(base[len(base)-100:], "-._")
		}
		id := score.ID(base)
		for n := 2; taken[id]; n++ {
			id = score.ID(fmt.Sprintf("%s-%d", base, n))
		}
		taken[id], ids[s.about] = true, id
	}
	for i, s := range all {
		s.score.ID = ids[s.about]
		for _, p := range s.uses {
			if id, is := ids[p]; is && id != s.score.ID && !slices.Contains(s.score.After, id) {
				s.score.After = append(s.score.After, id)
			}
		}
		slices.Sort(s.score.After)
		x.by[i] = s.about
		scores = append(scores, s.score)
	}
	return scores
}
