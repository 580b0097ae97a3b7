package service

import (
	"context"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// obstacle reports why s cannot be made true on a unit that is as st says, whatever is
// done to it.
func obstacle(s score.Service, st topology.ServiceState) error {
	enabled := s.Enabled != nil && *s.Enabled
	own := st.Definition.Type == topology.Regular && (s.UnitFile != "" || st.Definition.Mark != "") // an empty file masks, too, but no administrator did that
	lifts := s.Masked != nil && !*s.Masked
	wanted := s.UnitFile != "" || enabled || s.State == score.Running || s.Run != ""
	path, masks := s.UnitPath(), s.Masked != nil && *s.Masked
	switch {
	case st.Load == topology.Masked && !own && !lifts && wanted:
		return topology.Faultf(topology.CodeMasked, "%s is masked; an administrator did that, and has to undo it: systemctl %sunmask %s", s.Ref(), scope(s), s.Unit)
	case s.UnitFile == "" && st.Load == topology.NotFound && !masks:
		return topology.Faultf(topology.CodeInvalid, "the device has no unit %s: give its unitFile, or install what brings it", s.Ref())
	}
	if s.UnitFile != "" || masks {
		null := st.Definition.Target == "/dev/null" && (masks || lifts)
		switch {
		case st.Definition.Type == topology.Symlink && !null:
			return topology.Faultf(topology.CodeSymlink, "%s is a symbolic link to %s; links are not followed: remove it, or leave unitFile and masked out", path, st.Definition.Target)
		case st.Definition.Type != topology.Regular && st.Definition.Type != topology.Absent && st.Definition.Type != topology.Symlink:
			return topology.Faultf(topology.CodeNotRegular, "%s is a %s, not a regular file", path, st.Definition.Type)
		case masks && st.Definition.Type == topology.Regular && st.Definition.Size > 0 && st.Definition.Mark == "":
			return topology.Faultf(topology.CodeForeign, "%s is in the place of the mask, and somebody else wrote it: remove it, or leave masked out", path)
		}
	}
	if s.UnitFile != "" && st.Definition.SHA256 != topology.SumOf([]byte(s.UnitFile)) {
		return nil // what follows is about the unit as it will be
	}
	return asLoaded(s, st)
}

// asLoaded reports what a unit, as it is defined now, cannot do.
func asLoaded(s score.Service, st topology.ServiceState) error {
	found := map[string]topology.Sum{}
	for _, d := range st.DropIns {
		found[d.Path] = d.SHA256
	}
	settled := true // drop-ins that are still to be written may make it another one
	for name, text := range s.AllDropIns() {
		settled = settled && found[s.DropInPath(name)] == topology.SumOf([]byte(text))
	}
	oneshot := st.Type == "oneshot"
	switch {
	case !settled || st.Load != topology.Loaded:
	case s.State == score.Running && oneshot && !st.Remain:
		return topology.Faultf(topology.CodeInvalid, "%s is a oneshot without RemainAfterExit=yes and does not stay running: leave state out and say run: once, or enable the unit or the timer that starts it", s.Ref())
	case s.Run != "" && s.UnitFile == "" && (!oneshot || st.Remain):
		return topology.Faultf(topology.CodeInvalid, "%s is of the type %s and cannot be run to its end: run goes with Type=oneshot without RemainAfterExit", s.Ref(), st.Type)
	}
	switch {
	case s.Enabled == nil:
	case *s.Enabled && (st.Enabled == "static" || st.Enabled == "transient"):
		return topology.Faultf(topology.CodeInvalid, "cannot enable %s: it is %s, it has no [Install] section of its own; leave enabled out", s.Ref(), st.Enabled)
	case *s.Enabled && st.Enabled == "indirect":
		return topology.Faultf(topology.CodeInvalid, "cannot enable %s: it is indirect, which means that its [Install] section only names others (Also=) or an instance; enable those, and leave enabled out here", s.Ref())
	case !*s.Enabled && st.Enabled == "generated":
		return topology.Faultf(topology.CodeInvalid, "cannot disable %s: a generator enables it; change what it is generated from", s.Ref())
	}
	return nil
}

// scope is the option of systemctl for the manager that has the unit.
func scope(s score.Service) string {
	if s.User != "" {
		return "--user -M " + s.User + "@ "
	}
	return ""
}

// bounded reports what of the limits the kernel cannot do. It is asked before anything is written.
func bounded(ctx context.Context, r topology.ServiceReader, s score.Service) error {
	if s.Limits == nil {
		return nil
	}
	have, err := r.Controllers(ctx, s.Ref())
	if err != nil {
		return err
	}
	for _, need := range []struct {
		asked      bool
		controller string
	}{
		{s.Limits.Memory != 0, topology.ControlMemory}, {s.Limits.CPU != 0, topology.ControlCPU},
		{s.Limits.Tasks != 0, topology.ControlTasks}, {s.Limits.IOWeight != 0, topology.ControlIO},
	} {
		if need.asked {
			if err := topology.CheckController(have, need.controller); err != nil {
				return err
			}
		}
	}
	return nil
}
