package pi

import (
	"context"

	"github.com/continuo-fleet/continuo/topology"
)

// Define writes the definition of a unit, or a drop-in. It is loaded before the next call that needs it.
func (s *services) Define(ctx context.Context, d topology.Definition) error {
	if err := checkUnit(d.Unit); err != nil {
		return err
	}
	if s.bus.below {
		return errNoMachine
	}
	if s.gone != nil {
		return s.gone
	}
	p := s.dir + d.Unit
	if d.DropIn != "" {
		if err := checkDropIn(d.DropIn); err != nil {
			return err
		}
		p = s.dropInPath(d.Unit, d.DropIn)
	} else {
		now, err := s.files.File(ctx, p)
		if err != nil {
			return err
		}
		if now.Type == topology.Symlink && now.Target == "/dev/null" {
			return masked("define", d.Unit)
		}
	}
	return s.files.WriteFile(ctx, topology.FileWrite{Path: p, Content: d.Text, Mode: 0o644, Owner: "0", Group: "0", Mark: d.Mark, Replaces: d.Replaces})
}

// Undefine stops and disables a unit and removes its definition, and takes away from a unit
// of the system what was added to it.
func (s *services) Undefine(ctx context.Context, unit string) error {
	u, err := s.Service(ctx, unit)
	if err != nil && !noUser(err) {
		return err
	}
	if u.Definition.Type != topology.Absent && u.Active != "inactive" && u.Active != "failed" {
		if err := s.job(ctx, "stop", unit, stop, ""); err != nil {
			return err
		}
	}
	for _, d := range u.DropIns {
		if d.Name != "" {
			if err := s.RemoveDropIn(ctx, unit, d.Name); err != nil {
				return err
			}
		}
	}
	if err := s.forget(ctx, unit); err != nil {
		return err
	}
	if u.Definition.Type == topology.Absent {
		s.reload.debts.Defer(unit) // what its drop-ins changed holds until then
		return nil
	}
	if u.Load == topology.Loaded {
		if err := s.setLinks(ctx, unit, false); err != nil {
			return err
		}
	}
	if err := s.files.RemoveFile(ctx, s.dir+unit); err != nil {
		return err
	}
	if s.gone != nil {
		return nil
	}
	s.letGo(ctx, unit)
	return s.reset(ctx, unit) // a failed unit would stay on the list
}

// Unmask lifts every mask of a unit.
func (s *services) Unmask(ctx context.Context, unit string) error {
	if err := checkUnit(unit); err != nil {
		return err
	}
	now, err := s.files.File(ctx, s.dir+unit)
	if err != nil {
		return err
	}
	if now.Type == topology.Regular && now.Size == 0 {
		return s.files.RemoveFile(ctx, s.dir+unit)
	}
	if s.gone != nil && now.Type == topology.Absent {
		return nil
	}
	var links []string
	err = s.bus.do(ctx, func(ctx context.Context, l *link) error {
		for _, runtime := range []bool{false, true} {
			gone, err := l.systemd.UnmaskUnitFilesContext(ctx, []string{unit}, runtime)
			if err != nil {
				return err
			}
			for _, c := range gone {
				links = append(links, c.Filename)
			}
		}
		return nil
	})
	s.reload.need(unit)
	s.reload.relinked(ctx, unit)
	if err != nil {
		return busFault("unmask", unit, err)
	}
	return s.flushAll(links)
}

// flushAll makes durable what systemd linked or unlinked. What the manager of a user does in
// the home of his is his.
func (s *services) flushAll(links []string) error {
	if s.user != "" {
		return nil
	}
	for _, p := range links {
		if err := s.files.flush(p); err != nil {
			return err
		}
	}
	return nil
}

// SetEnabled enables or disables a unit for every boot to come.
func (s *services) SetEnabled(ctx context.Context, unit string, on bool) error {
	verb := "disable"
	if on {
		verb = "enable"
	}
	if err := checkUnit(unit); err != nil {
		return err
	}
	// A unit that is new is loaded by the question, and the links are made by what is on disk: no reload comes before them.
	u, err := s.ask(ctx, unit)
	if err == nil && u.usable(verb, unit) != nil {
		u, err = s.observe(ctx, unit)
	}
	if err != nil {
		return err
	}
	if err := u.usable(verb, unit); err != nil {
		return err
	}
	if on && (u.Enabled == "static" || u.Enabled == "generated" || u.Enabled == "transient") {
		return topology.Faultf(topology.CodeInvalid, "cannot enable %s: it is %s, it has no [Install] section of its own", unit, u.Enabled)
	}
	if !on && u.Enabled == "generated" {
		return topology.Faultf(topology.CodeInvalid, "cannot disable %s: a generator enables it; change what it is generated from", unit)
	}
	return s.setLinks(ctx, unit, on)
}

// setLinks makes or removes the links below /etc, durably, which systemd does not, and
// removes those below /run, which would satisfy a look but not a boot.
func (s *services) setLinks(ctx context.Context, unit string, on bool) error {
	verb, units := "disable", []string{unit}
	if on {
		verb = "enable"
	}
	var links []string
	changed := false
	err := s.bus.do(ctx, func(ctx context.Context, l *link) error {
		gone, err := l.systemd.DisableUnitFilesContext(ctx, units, true)
		changed = changed || len(gone) > 0
		if err != nil {
			return err
		}
		if on {
			_, made, err := l.systemd.EnableUnitFilesContext(ctx, units, false, false)
			for _, c := range made {
				links = append(links, c.Filename)
			}
			return err
		}
		gone, err = l.systemd.DisableUnitFilesContext(ctx, units, false)
		for _, c := range gone {
			links = append(links, c.Filename)
		}
		return err
	})
	if err != nil || changed || len(links) > 0 {
		s.reload.relinked(ctx, unit)
	}
	if err != nil {
		return busFault(verb, unit, err)
	}
	return s.flushAll(links)
}
