package export

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// A wished is a unit that was asked for by its name, so that how it is belongs to what is exported.
type wished struct{ st topology.ServiceState }

// unit reads a unit of the system: its files, if somebody put them on this device, whether it is enabled, and whether it
// runs.
func (x *reading) unit(ctx context.Context, unit string) error {
	refuse := func(code Code, format string, args ...any) error {
		return x.refuse(Finding{unit, "", code, fmt.Sprintf(format, args...)})
	}
	r := score.NewReport()
	score.Service{Unit: unit, State: score.Running}.Check(r)
	for _, p := range r.Problems() {
		if p.Severity == score.Error {
			return refuse(CodeUnsaid, "%s", p.Text)
		}
	}
	if x.units[unit] != nil {
		return nil
	}
	if x.Services == nil {
		return refuse(CodeUnreadable, "this device has no service manager")
	}
	st, err := x.Services.Service(ctx, unit)
	if err != nil {
		return x.unread(unit, "", err)
	}
	main := score.UnitDir + unit
	switch {
	case st.Load == topology.NotFound:
		return refuse(CodeMissing, "the device has no such unit")
	case st.Load == topology.Masked:
		return x.masked(ctx, unit, st)
	}
	x.units[unit] = &wished{st}
	switch from := st.Source; {
	case path.Dir(from)+"/" == score.UnitDir, strings.HasPrefix(from, "/usr/"), strings.HasPrefix(from, "/lib/"), strings.HasPrefix(from, "/etc/"), strings.HasPrefix(from, "/opt/"), strings.HasPrefix(from, "/srv/"):
		return x.bring(ctx, main, "", optional)
	case strings.HasPrefix(from, "/run/systemd/generator") && path.Ext(unit) == ".service":
		quadlet := score.QuadletDir + strings.TrimSuffix(unit, ".service") + ".container"
		switch made, err := x.snap.Look(ctx, quadlet); {
		case err != nil:
			return x.unread(quadlet, unit, err)
		case made.Type != topology.Absent:
			if err := x.bring(ctx, quadlet, "", needed); err != nil {
				return err
			}
			return x.bring(ctx, main, "", optional) // its drop-ins
		}
	}
	return refuse(CodeOutside, "it comes from %q, which is made anew at every boot: export what it is made from", st.Source)
}

// masked is a unit that nobody can start: a link to /dev/null says so.
func (x *reading) masked(ctx context.Context, unit string, st topology.ServiceState) error {
	at, err := x.snap.Look(ctx, score.UnitDir+unit)
	switch {
	case err != nil:
		return x.unread(score.UnitDir+unit, "", err)
	case at.Type != topology.Symlink || at.Target != "/dev/null":
		return x.refuse(Finding{unit, "", CodeOutside, "it is masked until the next boot only, or by somebody else than an administrator"})
	}
	x.units[unit] = &wished{st}
	return nil
}

// container reads a container: as its score says it if a manifest made it and nobody changed it since, and by its Quadlet
// file and the unit that comes of that if not. One that nothing defines cannot be said: what made it is not known.
func (x *reading) container(ctx context.Context, name string) error {
	if o, owned := x.owner(score.Resource("container:" + name)); owned {
		return x.bringOwned(ctx, o, "container:"+name)
	}
	for _, base := range []string{name, strings.TrimPrefix(name, "systemd-")} { // which is what it is called if its file does not say
		file := score.QuadletDir + base + ".container"
		if base == "" || strings.Contains(base, "/") {
			break
		}
		switch st, err := x.snap.Look(ctx, file); {
		case err != nil:
			return x.unread(file, "", err)
		case st.Type != topology.Absent:
			if x.Services == nil {
				return x.bring(ctx, file, "", needed)
			}
			return x.unit(ctx, base+".service")
		}
	}
	return x.refuse(Finding{"container:" + name, "", CodeMissing, "no Quadlet file in " + score.QuadletDir + " defines it, so that nothing says how to make it again"})
}

// bringOwned takes what a manifest made as its score says it, with what it refers to.
func (x *reading) bringOwned(ctx context.Context, o Owner, about string) error {
	s := o.Applied
	for _, b := range x.brought {
		if b.about == o.Manifest+"/"+o.Score {
			return nil
		}
	}
	refuse := func(format string, args ...any) error {
		return x.refuse(Finding{about, "", CodeUnsaid, fmt.Sprintf("score %s of manifest %s made it, ", o.Score, o.Manifest) + fmt.Sprintf(format, args...)})
	}
	if s.Spec == nil || x.AsApplied == nil {
		return refuse("and what it applied is not known")
	}
	s.After, s.Decommission = nil, false
	if c, is := s.Spec.(score.Container); is {
		if len(c.ReloadOn) > 0 && c.ReloadSignal == "" {
			c.ReloadSignal = "HUP" // what reloadOn means
		}
		c.RestartOn, c.ReloadOn = nil, nil
		s.Spec = c
	}
	if len(s.Needs()) > 0 {
		return refuse("and it goes with others of its manifest")
	}
	for _, res := range s.Spec.Claims() { // looked at before, and again at the end
		if p, is := strings.CutPrefix(string(res), "file:"); is {
			st, err := x.snap.Look(ctx, p)
			if err == nil && st.Type == topology.Regular {
				_, err = x.snap.Content(ctx, p, x.limits.File)
			}
			if err != nil {
				return x.unread(p, "", err)
			}
			x.covered[p] = true
		}
	}
	if why, is := x.AsApplied(ctx, o); !is {
		return refuse("and it is not as it was applied: %s", why)
	}
	x.brought = append(x.brought, brought{o.Manifest + "/" + o.Score, about, s})
	for _, p := range score.TouchedBy(s.Spec).Paths {
		if x.covered[p] {
			continue
		}
		if err := x.data(ctx, p, about); err != nil {
			return err
		}
	}
	return nil
}

// brought is what a manifest made.
type brought struct {
	owner, about string
	score        score.Score
}

// data reads a directory, or a file, of the device that a container sees. One that is no configuration holds data: it has
// to be there, and what is in it stays on the device.
func (x *reading) data(ctx context.Context, p, from string) error {
	switch class := score.ClassOfPath(p); class {
	case score.PathUnknown, score.PathRuntime, score.PathCache, score.PathUnsupported:
		st, err := x.snap.Look(ctx, p)
		switch {
		case err != nil && topology.FaultOf(err).Code == topology.CodeSymlink && class != score.PathUnknown: // as /var/run
		case err != nil:
			return x.unread(p, from, err)
		case st.Type == topology.Absent:
			return x.refuse(Finding{p, from, CodeMissing, "it is not there"})
		}
		x.leave(Finding{p, from, CodeClass, "it is data of a container, and stays on the device"})
		return nil
	}
	return x.want(ctx, p, from, needed)
}
