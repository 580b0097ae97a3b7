// Package service interprets score.Service.
//
// It knows in which order a service manager wants things done: a definition is written
// before the unit is enabled or started; a unit that runs while its definition changes
// is restarted, once, whatever the number of reasons.
package service

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer.
type Needs interface{ topology.HasServices }

// Kind binds the interpreter to t.
func Kind[T Needs](t T) interpret.Binding {
	s := t.Services()
	return interpret.Of[score.Service, Observed, reader, topology.ServiceWriter](interpreter{}, reader{s, interpret.TellerOf(t)}, s)
}

// A reader observes services, and knows what may be told of their files.
type reader struct {
	topology.ServiceReader
	interpret.Teller
}

// Fields of changes.
const (
	fieldFile       = "unitFile"
	fieldMode       = "unitFileMode"
	fieldDropIn     = "dropIns/"    // and the name
	fieldDropInMode = "dropInMode/" // and the name
	fieldLimits     = "limits"
	fieldEnabled    = "enabled"
	fieldMasked     = "masked"
	fieldState      = "state"
	fieldRun        = "run"
	fieldLinger     = "linger"
)

// fileMode is the mode of every unit file: the service manager warns about others.
const fileMode score.Mode = 0o644

// success is the result of a unit that ended as it should.
const success = "success"

type interpreter struct{}

func (interpreter) FieldOf(c topology.Code) string {
	switch c {
	case topology.CodeDefinition:
		return fieldFile
	case topology.CodeNotSupported:
		return fieldLimits
	}
	return "unit"
}

func (interpreter) Observe(ctx context.Context, r reader, s score.Service) (Observed, error) {
	st, err := r.Service(ctx, s.Ref())
	if isGone(err) {
		return observed(s, st), err
	}
	var linger *bool
	if s.Linger != nil {
		on, lerr := r.Lingers(ctx, s.User)
		if lerr != nil {
			return Observed{}, lerr
		}
		if linger = &on; *s.Linger && !on && err != nil && topology.FaultOf(err).Code == topology.CodeUnavailable {
			err = nil // the manager of the user starts when he lingers; his files were seen
		}
	}
	if err != nil {
		return Observed{}, err
	}
	o := observed(s, st)
	o.tell(ctx, r.Teller, s)
	o.Linger = linger
	if (st.Active == "failed" || st.Sub == "auto-restart") && s.Log != score.NoLog && st.Invocation != "" && (st.Ran == nil || st.Ran.Invocation != st.Invocation) {
		o.Log, _ = r.Log(ctx, s.Ref(), st.Invocation) // for people: what it says of the unit does not depend on it
	}
	if err := obstacle(s, st); err != nil {
		return o, err
	}
	return o, bounded(ctx, r, s)
}

func (interpreter) Diff(s score.Service, o Observed) []interpret.Change {
	var out []interpret.Change
	differ := func(field, have, want string, e interpret.Effect, replaces bool) {
		out = append(out, interpret.Change{Field: field, Have: have, Want: want, Effect: e, Replaces: replaces})
	}
	if s.Linger != nil && o.Linger != nil && *s.Linger != *o.Linger {
		differ(fieldLinger, fmt.Sprint(*o.Linger), fmt.Sprint(*s.Linger), interpret.Mutate, false)
	}
	switch masks := s.Masked != nil && *s.Masked; {
	case masks && !o.masked():
		differ(fieldMasked, "false", "true", interpret.Mutate, false)
	case masks:
	case s.Masked != nil && o.Load == topology.Masked && !(s.UnitFile != "" && o.file.Type == topology.Regular), s.UnitFile == "" && o.maskedByUs():
		differ(fieldMasked, "true", "false", interpret.Mutate, false)
	}
	renews := interpret.Mutate
	if o.up() && s.State != score.Stopped {
		renews = interpret.Disrupt
	}
	if s.UnitFile != "" {
		if want := topology.SumOf([]byte(s.UnitFile)); o.file.SHA256 == "" {
			differ(fieldFile, "", digest(s.UnitFile), interpret.Create, false)
		} else if want != o.file.SHA256 {
			differ(fieldFile, o.told[s.UnitPath()], digest(s.UnitFile), renews, true)
		} else if o.Mode != fileMode.String() {
			differ(fieldMode, o.Mode, fileMode.String(), interpret.Mutate, true)
		}
	}
	for _, name := range names(s) {
		field, effect := fieldDropIn+name, renews
		if name == score.LimitsDropIn {
			field, effect = fieldLimits, interpret.Mutate // they hold as soon as they are read
		}
		have, there := o.all[name]
		if text := s.AllDropIns()[name]; have.SHA256 != topology.SumOf([]byte(text)) || !there {
			differ(field, o.told[have.Path], digest(text), effect, there)
		} else if have := score.Mode(have.Mode); have != fileMode {
			differ(fieldDropInMode+name, have.String(), fileMode.String(), interpret.Mutate, true)
		}
	}
	for _, d := range o.stray {
		field, effect := fieldDropIn+d.Name, renews
		if d.Name == score.LimitsDropIn {
			field, effect = fieldLimits, interpret.Mutate
		}
		differ(field, cmp.Or(o.told[d.Path], "unreadable"), "", effect, false)
	}
	switch {
	case s.Enabled == nil:
	case *s.Enabled && !slices.Contains(enabledWords, o.Enabled):
		differ(fieldEnabled, o.Enabled, "enabled", interpret.Mutate, false)
	case !*s.Enabled && !slices.Contains(disabledWords, o.Enabled):
		differ(fieldEnabled, o.Enabled, "disabled", interpret.Mutate, false)
	}
	switch {
	case s.State == score.Running && !o.running():
		differ(fieldState, o.state(), string(score.Running), interpret.Mutate, false)
	case s.State == score.Stopped && o.up():
		differ(fieldState, o.state(), string(score.Stopped), interpret.Disrupt, false)
	}
	if s.Run != "" {
		if want := runDigest(s); o.Ran == nil || o.Ran.Digest != want {
			differ(fieldRun, "", want, interpret.Mutate, false)
		} else if o.Ran.Result != success {
			differ(fieldRun, o.Ran.words(), success, interpret.Mutate, false)
		}
	}
	return append(out, o.outweighed()...)
}

// What the service manager says of a unit that is started, or not started, at every
// boot. A unit that is enabled until the next boot is neither.
var (
	enabledWords  = []string{"enabled", "alias", "generated"}
	disabledWords = []string{"disabled", "static", "indirect", "linked", "transient", "masked", ""}
)

func (r Ran) words() string { return fmt.Sprintf("%s (%d)", r.Result, r.ExitCode) }

// runDigest is of what decides what a run does.
func runDigest(s score.Service) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q", s.UnitFile)
	for _, name := range names(s) {
		if name != score.LimitsDropIn {
			fmt.Fprintf(h, " %q %q", name, s.DropIns[name])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// RemovalEffect is none for a unit that the score did not bring anything to: see Remove.
func (interpreter) RemovalEffect(last score.Service) interpret.Effect {
	if len(last.Written()) == 0 && (last.Masked == nil || !*last.Masked) {
		return interpret.Nothing
	}
	return interpret.Remove
}

// Remove takes back the files that the score brought: a unit with them, drop-ins from a unit of the system, which is
// restarted if it runs, and a mask. A unit that came with the system is else left as it is: whether it should run is for
// its system to say again.
func (interpreter) Remove(ctx context.Context, w topology.ServiceWriter, last score.Service) error {
	ref := last.Ref()
	if last.UnitFile != "" {
		return w.Undefine(ctx, ref)
	}
	st, err := w.Service(ctx, ref)
	if err != nil && !isGone(err) {
		return err
	}
	o := observed(last, st)
	if last.Masked != nil && *last.Masked && o.maskedByUs() {
		if err := w.Unmask(ctx, ref); err != nil {
			return err
		}
	}
	renew := false
	for _, name := range names(last) {
		if d, there := o.all[name]; there && d.Name != "" {
			if err := w.RemoveDropIn(ctx, ref, name); err != nil {
				return err
			}
			renew = renew || name != score.LimitsDropIn
		}
	}
	if renew && o.running() {
		return w.Restart(ctx, ref, true)
	}
	return nil
}

// isGone reports whether the user of a unit is gone: then its files are all that is left.
func isGone(err error) bool {
	return err != nil && topology.FaultOf(err).Code == topology.CodeNoAccount
}

func digest(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// dropIn is the name of the drop-in that a change is about.
func dropIn(c interpret.Change) (name string, mode, ok bool) {
	if c.Field == fieldLimits {
		return score.LimitsDropIn, false, true
	}
	if name, ok := strings.CutPrefix(c.Field, fieldDropInMode); ok {
		return name, true, true
	}
	name, ok = strings.CutPrefix(c.Field, fieldDropIn)
	return name, false, ok
}
