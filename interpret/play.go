package interpret

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Play makes one score true and says what came of it: Outcome, Code, Message,
// Changes, Observed, Conditions, Cause, Authority and Backup of the status. The error
// is the gate's; everything that went wrong with the world is in the status.
func (t *Table) Play(ctx context.Context, w Wish, gate Gate) (st ScoreStatus, err error) {
	s := w.Score
	st = ScoreStatus{ID: s.ID, Kind: s.Spec.Kind()}
	defer st.crashed()
	b, obs, ok := t.look(ctx, s, &st)
	if !ok {
		return st, nil
	}
	changes := b.diff(s.Spec, obs)
	if w.Restart != nil && len(changes) == 0 {
		w.Cause = cmp.Or(w.Because, CauseDependency)
	}
	if w.Restart != nil {
		changes = append(changes, *w.Restart)
	}
	if len(changes) == 0 {
		st.Outcome = Unchanged
		return st, gate.Holds(ctx, s, obs.OwnedBy())
	}
	st.Changes, st.Cause = changes, w.Cause
	changes = slices.DeleteFunc(slices.Clone(changes), onlyTold)
	if len(changes) == 0 {
		code := CodeObserved
		if st.Changes[0].Field == FieldSupervision {
			code = CodeSupervision
		}
		st.end(Drifted, code, fmt.Sprintf("%s is %q and should be %q; that is for a person to change", st.Changes[0].Field, st.Changes[0].Have, st.Changes[0].Want))
		return st, gate.Holds(ctx, s, obs.OwnedBy())
	}
	if b.looks {
		st.end(Drifted, CodeObserved, fmt.Sprintf("%s is %q and should be %q; this kind of score is looked at and never made true", changes[0].Field, changes[0].Have, changes[0].Want))
		return st, nil
	}
	a := Action{Score: s, Cause: w.Cause, Effect: Worst(changes), Changes: changes, Found: obs.Exists(), FoundMark: obs.OwnedBy()}
	v, err := gate.Admit(ctx, a)
	if err != nil || !v.Allow {
		st.end(v.Outcome, v.Code, v.Message)
		return st, err
	}
	st.Authority, st.Backup = v.Authority, v.Backup
	before, readable := b.read(ctx, s, a)
	b.attempt(ctx, s, Task{changes, v.Mark, v.Retry, obs}, v, &st)
	if readable {
		if after, ok := b.read(ctx, s, a); ok {
			a.Text = &Text{before, after}
		}
	}
	return st, gate.Done(ctx, a, st)
}

// read returns the text of what is there, if it is there and is one.
func (b Binding) read(ctx context.Context, s score.Score, a Action) (t Content, ok bool) {
	if b.text == nil || !a.Found {
		return t, false
	}
	return b.text(ctx, s.Spec)
}

// Observe plays s without a gate: it reads and compares, and can change nothing.
func (t *Table) Observe(ctx context.Context, w Wish) ScoreStatus {
	st, _ := t.Play(ctx, w, readOnly{})
	return st
}

// Remove undoes a score that is no longer wanted, if the gate allows it: cause says why it
// is not. The outcome is Changed if it is gone.
func (t *Table) Remove(ctx context.Context, s score.Score, cause Cause, gate Gate) (st ScoreStatus, err error) {
	st = ScoreStatus{ID: s.ID, Kind: s.Spec.Kind(), Cause: cause}
	defer st.crashed()
	b, obs, ok := t.look(ctx, s, &st)
	if !ok && obs != nil && slices.Contains(needless, topology.Code(st.Code)) {
		ok = true
		st.end("", "", "")
		st.Path = ""
	}
	if !ok {
		return st, nil
	}
	a := Action{Score: s, Cause: cause, Effect: Remove, Found: obs.Exists(), FoundMark: obs.OwnedBy()}
	if b.removal != nil {
		a.Effect = b.removal(s.Spec)
	}
	v, err := gate.Admit(ctx, a)
	if err != nil || !v.Allow {
		st.end(v.Outcome, v.Code, v.Message)
		return st, err
	}
	st.Authority, st.Backup = v.Authority, v.Backup
	b.undo(ctx, s, a, v, &st)
	return st, gate.Done(ctx, a, st)
}

// needless are what a thing needs while it is there, and not to go: its secret, and its user.
var needless = []topology.Code{topology.CodeSecret, topology.CodeNoAccount}

// undo removes, and takes that back if it turns out to cut the device off.
func (b Binding) undo(ctx context.Context, s score.Score, a Action, v Verdict, st *ScoreStatus) {
	if a.Effect == Nothing {
		st.Outcome = Changed
		return
	}
	b.guarded(ctx, s, Task{Mark: a.FoundMark}, v, st, func() { b.takeAway(ctx, s, a, st) })
}

// takeAway removes, and looks whether that helped.
func (b Binding) takeAway(ctx context.Context, s score.Score, a Action, st *ScoreStatus) {
	st.Outcome = Changed
	if err := b.remove(ctx, s.Spec); err != nil {
		b.fault(st, "cannot remove", err)
		return
	}
	obs, err := b.observe(ctx, s.Spec)
	st.observed(obs)
	switch {
	case err != nil && !slices.Contains(append([]topology.Code{topology.CodeInvalid, topology.CodeForeign}, needless...), topology.FaultOf(err).Code):
		b.fault(st, "cannot verify", err)
	case obs != nil && obs.Exists() && a.FoundMark != "" && obs.OwnedBy() == a.FoundMark:
		st.end(Failed, CodeNotConverged, "removed, but it is still there")
	}
}

// look finds the interpreter of s and what is there now, or says in st why it cannot.
func (t *Table) look(ctx context.Context, s score.Score, st *ScoreStatus) (Binding, Observed, bool) {
	b, ok := t.find(s, st)
	if !ok {
		return b, nil, false
	}
	obs, err := b.observe(ctx, s.Spec)
	st.observed(obs)
	if err != nil {
		b.fault(st, "cannot observe", err)
	}
	return b, obs, err == nil
}

func (t *Table) find(s score.Score, st *ScoreStatus) (Binding, bool) {
	if o, ok := s.Spec.(score.Opaque); ok && o.Why != "" {
		st.end(Unsupported, CodeUnreadable, fmt.Sprintf("this agent cannot read the spec: %s: %s", o.Path, o.Why))
		st.Path = Brief(o.Path)
		return Binding{}, false
	}
	b, ok := t.byKind[st.Kind]
	if !ok {
		code, msg := CodeUnknownKind, fmt.Sprintf("this agent knows no kind %q", st.Kind)
		if info, known := score.Lookup(st.Kind); known {
			code, msg = CodeMissingCapability, fmt.Sprintf("this device has no capability for kind %q, which needs %v", st.Kind, info.Needs)
		}
		st.end(Unsupported, code, msg)
	}
	return b, ok
}
