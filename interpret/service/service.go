// Package service interprets score.Service.
//
// It knows in which order a service manager wants things done: a definition is written
// before the unit is enabled or started; a unit that runs while its definition changes
// is restarted, once, whatever the number of reasons.
package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer.
type Needs interface{ topology.HasServices }

// Kind binds the interpreter to t.
func Kind[T Needs](t T) interpret.Binding {
	s := t.Services()
	return interpret.Of[score.Service, Observed, topology.ServiceReader, topology.ServiceWriter](interpreter{}, s, s)
}

// Fields of changes.
const (
	fieldFile    = "unitFile"
	fieldMode    = "unitFileMode"
	fieldEnabled = "enabled"
	fieldState   = "state"
)

// fileMode is the mode of every unit file: the service manager warns about others.
const fileMode score.Mode = 0o644

type interpreter struct{}

func (interpreter) FieldOf(c topology.Code) string {
	if c == topology.CodeDefinition {
		return fieldFile
	}
	return "unit"
}

func (interpreter) Observe(ctx context.Context, r topology.ServiceReader, s score.Service) (Observed, error) {
	st, err := r.Service(ctx, s.Unit)
	if err != nil {
		return Observed{}, err
	}
	o := observed(s, st)
	if err := obstacle(s, st); err != nil {
		return o, err
	}
	return o, nil
}

// obstacle reports why s cannot be made true on a unit that is as st says, whatever is
// done to it.
func obstacle(s score.Service, st topology.ServiceState) error {
	enabled := s.Enabled != nil && *s.Enabled
	own := s.UnitFile != "" && st.Definition.Type == topology.Regular // an empty file masks, too, but no administrator did that
	switch {
	case st.Load == topology.Masked && !own && (s.UnitFile != "" || enabled || s.State == score.Running):
		return topology.Faultf(topology.CodeMasked, "%s is masked; an administrator did that, and has to undo it: systemctl unmask %s", s.Unit, s.Unit)
	case s.UnitFile == "" && st.Load == topology.NotFound:
		return topology.Faultf(topology.CodeInvalid, "the device has no unit %s: give its unitFile, or install what brings it", s.Unit)
	case s.UnitFile != "" && st.Definition.Type == topology.Symlink:
		return topology.Faultf(topology.CodeSymlink, "%s%s is a symbolic link to %s; links are not followed: remove it, or leave unitFile out", score.UnitDir, s.Unit, st.Definition.Target)
	case s.UnitFile != "" && st.Definition.Type != topology.Regular && st.Definition.Type != topology.Absent:
		return topology.Faultf(topology.CodeNotRegular, "%s%s is a %s, not a regular file", score.UnitDir, s.Unit, st.Definition.Type)
	case s.State == score.Running && st.Type == "oneshot" && !st.Remain && (s.UnitFile == "" || st.Definition.SHA256 == digest(s.UnitFile)):
		return topology.Faultf(topology.CodeInvalid, "%s is a oneshot without RemainAfterExit=yes and does not stay running: leave state out and enable the unit, or the timer that starts it", s.Unit)
	}
	return nil
}

func (interpreter) Diff(s score.Service, o Observed) []interpret.Change {
	var out []interpret.Change
	differ := func(field, have, want string, e interpret.Effect) {
		out = append(out, interpret.Change{Field: field, Have: have, Want: want, Effect: e, Replaces: field == fieldFile && have != "" || field == fieldMode})
	}
	if s.UnitFile != "" {
		e := interpret.Mutate
		if o.up() && s.State != score.Stopped {
			e = interpret.Disrupt
		}
		if want := digest(s.UnitFile); o.SHA256 == "" {
			differ(fieldFile, "", want, interpret.Create)
		} else if want != o.SHA256 {
			differ(fieldFile, o.SHA256, want, e)
		} else if o.Mode != fileMode.String() {
			differ(fieldMode, o.Mode, fileMode.String(), interpret.Mutate)
		}
	}
	switch {
	case s.Enabled == nil:
	case *s.Enabled && !slices.Contains(enabledWords, o.Enabled):
		differ(fieldEnabled, o.Enabled, "enabled", interpret.Mutate)
	case !*s.Enabled && !slices.Contains(disabledWords, o.Enabled):
		differ(fieldEnabled, o.Enabled, "disabled", interpret.Mutate)
	}
	switch {
	case s.State == score.Running && !o.running():
		differ(fieldState, o.state(), string(score.Running), interpret.Mutate)
	case s.State == score.Stopped && o.up():
		differ(fieldState, o.state(), string(score.Stopped), interpret.Disrupt)
	}
	return out
}

// What the service manager says of a unit that is started, or not started, at every
// boot. A unit that is enabled until the next boot is neither.
var (
	enabledWords  = []string{"enabled", "alias", "generated"}
	disabledWords = []string{"disabled", "static", "indirect", "linked", "masked", ""}
)

func (interpreter) Apply(ctx context.Context, w topology.ServiceWriter, s score.Service, t interpret.Task) error {
	if s.State == score.Stopped && t.Has(fieldState) { // by the definition that it was started from
		if err := w.Stop(ctx, s.Unit); err != nil {
			return err
		}
	}
	if t.Has(fieldFile) || t.Has(fieldMode) {
		if err := w.Define(ctx, s.Unit, []byte(s.UnitFile), t.Mark); err != nil {
			return err
		}
	}
	if t.Has(fieldEnabled) {
		if err := w.SetEnabled(ctx, s.Unit, *s.Enabled); err != nil {
			return err
		}
	}
	if s.State == score.Stopped {
		return nil
	}
	st, err := w.Service(ctx, s.Unit)
	if err != nil {
		return err
	}
	now := observed(s, st)
	renew := t.Has(fieldFile) || t.Has(interpret.FieldRestart)
	switch {
	case renew && now.up():
		return w.Restart(ctx, s.Unit, !t.Retry)
	case s.State == score.Running && !now.running():
		return w.Start(ctx, s.Unit, !t.Retry)
	}
	return nil
}

// RemovalEffect is none for a unit that the score did not bring: see Remove.
func (interpreter) RemovalEffect(last score.Service) interpret.Effect {
	if last.UnitFile == "" {
		return interpret.Nothing
	}
	return interpret.Remove
}

// Remove takes back the unit file that the score brought. A unit that came with the
// system stays as it is: whether it should run is for its system to say again.
func (interpreter) Remove(ctx context.Context, w topology.ServiceWriter, last score.Service) error {
	if last.UnitFile == "" {
		return nil
	}
	return w.Undefine(ctx, last.Unit)
}

func digest(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}
