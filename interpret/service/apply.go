package service

import (
	"cmp"
	"context"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

func (interpreter) Apply(ctx context.Context, w topology.ServiceWriter, s score.Service, t interpret.Task) error {
	ref := s.Ref()
	if t.Has(fieldLinger) && *s.Linger { // first: the manager of the user starts with it
		if err := w.SetLinger(ctx, s.User, true); err != nil {
			return err
		}
	}
	if s.State == score.Stopped && t.Has(fieldState) { // by the definition that it was started from
		if err := w.Stop(ctx, ref); err != nil {
			return err
		}
	}
	if err := define(ctx, w, s, t); err != nil {
		return err
	}
	if t.Has(fieldEnabled) {
		if err := w.SetEnabled(ctx, ref, *s.Enabled); err != nil {
			return err
		}
	}
	if err := run(ctx, w, s, t); err != nil {
		return err
	}
	if t.Has(fieldLinger) && !*s.Linger {
		return w.SetLinger(ctx, s.User, false)
	}
	return nil
}

// define puts the files in place. Each replaces only what was found, as that was asked about.
func define(ctx context.Context, w topology.ServiceWriter, s score.Service, t interpret.Task) error {
	ref := s.Ref()
	found, _ := t.Found.(Observed)
	for _, c := range t.Changes {
		var err error
		d := topology.Definition{Unit: ref, Mark: t.Mark, Replaces: topology.Sum(topology.Absent)}
		switch name, _, is := dropIn(c); {
		case c.Field == fieldMasked && c.Want == "true":
			d.Replaces = "" // Observe refuses what is foreign
			err = w.Define(ctx, d)
		case c.Field == fieldMasked:
			err = w.Unmask(ctx, ref)
		case c.Field == fieldFile:
			d.Text, d.Replaces = []byte(s.UnitFile), cmp.Or(found.file.SHA256, d.Replaces)
			err = w.Define(ctx, d)
		case c.Field == fieldMode:
			d.Text, d.Replaces = []byte(s.UnitFile), topology.SumOf([]byte(s.UnitFile))
			err = w.Define(ctx, d)
		case is && c.Want == "":
			err = w.RemoveDropIn(ctx, ref, name)
		case is:
			text := s.AllDropIns()[name]
			d.DropIn, d.Text, d.Replaces = name, []byte(text), cmp.Or(found.all[name].SHA256, d.Replaces)
			err = w.Define(ctx, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run starts what is to run, or again, or has it read its configuration again: one of these.
func run(ctx context.Context, w topology.ServiceWriter, s score.Service, t interpret.Task) error {
	ref := s.Ref()
	if s.State == score.Stopped || s.Masked != nil && *s.Masked {
		return nil
	}
	if s.Run != "" {
		return runOnce(ctx, w, s, t)
	}
	st, err := w.Service(ctx, ref)
	if err != nil {
		return err
	}
	now := observed(s, st)
	switch {
	case renews(t) && now.up():
		return w.Restart(ctx, ref, !t.Retry)
	case s.State == score.Running && !now.running():
		return w.Start(ctx, ref, !t.Retry)
	case t.Has(interpret.FieldReload) && now.running() && !st.CanReload:
		return topology.Faultf(topology.CodeInvalid, "cannot reload %s: it has no ExecReload= and is not of Type=notify-reload; use restartOn", ref)
	case t.Has(interpret.FieldReload) && now.running():
		return w.Reload(ctx, ref)
	}
	return nil
}

// renews reports whether what runs is not what the files say any more, or should start again for another reason.
func renews(t interpret.Task) bool {
	for _, c := range t.Changes {
		name, mode, is := dropIn(c)
		if c.Field == fieldFile || c.Field == interpret.FieldRestart || is && !mode && name != score.LimitsDropIn {
			return true
		}
	}
	return false
}

// runOnce runs a oneshot to its end. One that failed is left alone until something is new.
func runOnce(ctx context.Context, w topology.ServiceWriter, s score.Service, t interpret.Task) error {
	if !t.Has(fieldRun) && !t.Has(interpret.FieldRestart) {
		return nil
	}
	digest := runDigest(s)
	st, err := w.Service(ctx, s.Ref())
	if err != nil {
		return err
	}
	if r := st.Ran; t.Retry && r != nil && r.Digest == digest && r.Result != success && !t.Has(interpret.FieldRestart) {
		return topology.Faultf(topology.CodeExited, "%s was run and failed: result %s, exit code %d; it is run again when something about it is new", s.Ref(), r.Result, r.ExitCode)
	}
	return w.RunOnce(ctx, s.Ref(), digest)
}
