package interpret

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// An Action is a change that a gate is asked about.
type Action struct {
	Score   score.Score
	Cause   Cause
	Effect  Effect   // the worst of Changes
	Changes []Change // empty for a removal
	// Found is true if the thing is there, FoundMark whose mark it carries.
	Found     bool
	FoundMark topology.Mark
	// Text is what the thing was and is, when Done is told of it; nil if it is no text.
	Text *Text
}

// A Text is a thing before and after it was changed.
type Text struct {
	Before, After string
	Public        bool // everybody on the device may read it
}

// A Verdict is a gate's answer.
type Verdict struct {
	// Allow lets the action happen. Everything else about it has been written down.
	Allow bool
	// Outcome, Code and Message say why not.
	Outcome Outcome
	Code    Code
	Message string
	// Authority that covers the action.
	Authority string
	// Backup names the copy that was made of what the action overwrites.
	Backup string
	// Task to do: mark and retry are the gate's to know.
	Mark  topology.Mark
	Retry bool
	// Prove returns nil as soon as the fleet is reached, and an error when there is no hope of
	// that any more. It is called after a change that could cut the device off, which is
	// taken back if it fails; without it no such change is made.
	Prove func(ctx context.Context) error
}

// A Gate stands in front of every change, whoever asks for it: Apply and Remove of an
// interpreter can be reached through Play and Table.Remove only, and both ask.
// An error means that the gate could not keep its books; nothing is touched then.
type Gate interface {
	// Admit decides about a and, if it allows it, has written down that it begins.
	Admit(ctx context.Context, a Action) (Verdict, error)
	// Done writes down what came of an action that was admitted.
	Done(ctx context.Context, a Action, st ScoreStatus) error
	// Holds is told that a score was found true, on a thing that carries mark, so that
	// books which were lost can be made again. Nothing is touched.
	Holds(ctx context.Context, s score.Score, mark topology.Mark) error
}

// A Wish is a score with what the books know about it.
type Wish struct {
	Score score.Score
	// Cause that a difference has, if one is found.
	Cause Cause
	// Restart is set if a score that restarts this one has changed since it was applied.
	Restart *Change
	// Because is the cause of Restart, if nothing else differs; CauseDependency if it is left out.
	Because Cause
}

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
	before, public, readable := b.read(ctx, s, a)
	b.attempt(ctx, s, Task{changes, v.Mark, v.Retry, obs}, v.Prove, &st)
	if readable {
		if after, still, ok := b.read(ctx, s, a); ok {
			a.Text = &Text{before, after, public && still}
		}
	}
	return st, gate.Done(ctx, a, st)
}

// read returns the text of what is there, if it is there and is one.
func (b Binding) read(ctx context.Context, s score.Score, a Action) (text string, public, ok bool) {
	if b.text == nil || !a.Found {
		return "", false, false
	}
	return b.text(ctx, s.Spec)
}

// Observe plays s without a gate: it reads and compares, and can change nothing.
func (t *Table) Observe(ctx context.Context, w Wish) ScoreStatus {
	st, _ := t.Play(ctx, w, readOnly{})
	return st
}

// readOnly lets nothing happen.
type readOnly struct{}

func (readOnly) Admit(context.Context, Action) (Verdict, error) {
	return Verdict{Outcome: Drifted}, nil
}
func (readOnly) Done(context.Context, Action, ScoreStatus) error         { return nil }
func (readOnly) Holds(context.Context, score.Score, topology.Mark) error { return nil }

// attempt performs task, and takes back what turns out to cut the device off.
func (b Binding) attempt(ctx context.Context, s score.Score, task Task, prove func(context.Context) error, st *ScoreStatus) {
	b.guarded(ctx, s, task, prove, st, func() { b.perform(ctx, s, task, st) })
}

// guarded does what changes the device, and says in st what came of it, under a checkpoint.
func (b Binding) guarded(ctx context.Context, s score.Score, task Task, prove func(context.Context) error, st *ScoreStatus, do func()) {
	var cp topology.Checkpoint
	if b.checkpoint != nil {
		var err error
		if cp, err = b.checkpoint(ctx, s.Spec, task); err != nil {
			b.fault(st, "cannot make a checkpoint", err)
			return
		}
	}
	if cp != nil && prove == nil {
		b.takeBack(ctx, s, cp, st, Refused, CodeNoProof, "it could cut the device off, and this device has no server to prove that it does not: give confirm.connect, an address that must be reached")
		return
	}
	if cp == nil {
		do()
		return
	}
	crashed := true
	defer func() {
		if crashed { // what was begun must not wait for its window to be over
			b.takeBack(ctx, s, cp, st, Failed, CodePanic, "its interpreter crashed")
		}
	}()
	b.confirmed(ctx, s, cp, prove, st, do)
	crashed = false
}

// confirmed does what changes the device, and keeps it if that is proved to be no harm.
func (b Binding) confirmed(ctx context.Context, s score.Score, cp topology.Checkpoint, prove func(context.Context) error, st *ScoreStatus, do func()) {
	do()
	if st.Outcome != Changed {
		b.takeBack(ctx, s, cp, st, st.Outcome, st.Code, st.Message)
		return
	}
	if err := prove(ctx); err != nil {
		b.takeBack(ctx, s, cp, st, RolledBack, Code(topology.CodeConnectivity), "it was taken back, because afterwards the fleet could not be reached: "+topology.FaultOf(err).Text)
		return
	}
	if err := cp.Commit(ctx); err != nil {
		b.takeBack(ctx, s, cp, st, RolledBack, Code(topology.FaultOf(err).Code), "it was taken back, because it could not be kept: "+topology.FaultOf(err).Text)
	}
}

// takeBack brings back what was there before an attempt, also when the agent is told to stop.
func (b Binding) takeBack(ctx context.Context, s score.Score, cp topology.Checkpoint, st *ScoreStatus, as Outcome, code Code, why string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackPatience)
	defer cancel()
	st.end(as, code, why)
	if err := cp.Rollback(ctx); err != nil {
		st.end(Failed, code, fmt.Sprintf("cannot take it back: %s: %s", topology.FaultOf(err).Text, why))
	}
	if obs, err := b.observe(ctx, s.Spec); err == nil {
		st.observed(obs)
	}
}

// rollbackPatience is how long it may take to bring back what was there before.
const rollbackPatience = time.Minute

func (b Binding) perform(ctx context.Context, s score.Score, task Task, st *ScoreStatus) {
	if err := b.apply(ctx, s.Spec, task); err != nil {
		b.fault(st, "cannot apply", err)
		obs, _ := b.observe(ctx, s.Spec)
		st.observed(obs)
		return
	}
	obs, err := b.observe(ctx, s.Spec)
	st.observed(obs)
	if err != nil {
		b.fault(st, "cannot verify", err)
		return
	}
	if left := slices.DeleteFunc(b.diff(s.Spec, obs), onlyTold); len(left) > 0 {
		st.Changes = left
		st.end(Failed, CodeNotConverged, fmt.Sprintf("applied, but %s is %q and should be %q", left[0].Field, left[0].Have, left[0].Want))
		return
	}
	st.Outcome = Changed
}

// onlyTold reports whether a difference is told and never undone.
func onlyTold(c Change) bool { return c.Effect == Nothing }

// Stocked reports, as a fault, what a score needs from elsewhere and is not here.
func (t *Table) Stocked(ctx context.Context, s score.Score) error {
	st := ScoreStatus{Kind: s.Spec.Kind()}
	b, ok := t.find(s, &st)
	switch {
	case !ok:
		return topology.Faultf(topology.Code(st.Code), "%s", st.Message)
	case b.stocked == nil:
		return nil
	}
	return b.stocked(ctx, s.Spec)
}

// Follows reports whether s follows what may become another elsewhere.
func (t *Table) Follows(s score.Score) bool {
	if _, unread := s.Spec.(score.Opaque); unread || s.Spec == nil {
		return false
	}
	b := t.byKind[s.Spec.Kind()]
	return b.follows != nil && b.follows(s.Spec)
}

// Fetches reports whether s may need something from elsewhere. Of a kind whose specs may name
// large contents, those that name none do not.
func (t *Table) Fetches(s score.Score) bool {
	if u, ok := s.Spec.(score.BlobUser); ok && len(u.BlobRefs()) == 0 {
		return false
	}
	return t.byKind[s.Spec.Kind()].prefetch != nil
}

// Prefetch fetches what s needs from elsewhere, if its kind needs anything. The outcome
// is empty if nothing is missing.
func (t *Table) Prefetch(ctx context.Context, s score.Score) (st ScoreStatus) {
	st = ScoreStatus{ID: s.ID, Kind: s.Spec.Kind()}
	defer st.crashed()
	if _, unread := s.Spec.(score.Opaque); unread {
		return st // Play says so
	}
	if b, ok := t.byKind[st.Kind]; ok && b.prefetch != nil {
		if err := b.prefetch(ctx, s.Spec); err != nil {
			b.fault(&st, "cannot fetch what it needs", err)
		}
	}
	return st
}

// Remove undoes a score that is no longer wanted, if the gate allows it: cause says why it
// is not. The outcome is Changed if it is gone.
func (t *Table) Remove(ctx context.Context, s score.Score, cause Cause, gate Gate) (st ScoreStatus, err error) {
	st = ScoreStatus{ID: s.ID, Kind: s.Spec.Kind(), Cause: cause}
	defer st.crashed()
	b, obs, ok := t.look(ctx, s, &st)
	if !ok && obs != nil && st.Code == Code(topology.CodeSecret) {
		ok = true // what is to go needs no secret
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
	b.undo(ctx, s, a, v.Prove, &st)
	return st, gate.Done(ctx, a, st)
}

// undo removes, and takes that back if it turns out to cut the device off.
func (b Binding) undo(ctx context.Context, s score.Score, a Action, prove func(context.Context) error, st *ScoreStatus) {
	if a.Effect == Nothing {
		st.Outcome = Changed
		return
	}
	b.guarded(ctx, s, Task{Mark: a.FoundMark}, prove, st, func() { b.takeAway(ctx, s, a, st) })
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
	case err != nil && !slices.Contains([]topology.Code{topology.CodeInvalid, topology.CodeForeign, topology.CodeSecret}, topology.FaultOf(err).Code):
		b.fault(st, "cannot verify", err)
	case obs != nil && obs.Exists() && a.FoundMark != "" && obs.OwnedBy() == a.FoundMark:
		st.end(Failed, CodeNotConverged, "removed, but it is still there")
	}
}

// crashed is deferred: one kind that crashes fails its own scores only.
func (st *ScoreStatus) crashed() {
	if p := recover(); p != nil {
		st.end(Failed, CodePanic, fmt.Sprintf("interpreter of %s crashed: %.500s; this is a bug of the agent, at %s", st.Kind, fmt.Sprint(p), origin()))
	}
}

// origin names the function that panicked. A whole stack is nothing for a status, and
// differs every time.
func origin() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") || !more {
			return fmt.Sprintf("%s:%d", f.Function, f.Line)
		}
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

func (st *ScoreStatus) end(o Outcome, c Code, msg string) {
	st.Outcome, st.Code, st.Message = o, c, Brief(msg)
}

// Brief cuts a message to what fits in a status beside others. What a device says, of
// itself or of what it was sent, has no bounds of its own.
func Brief(msg string) string {
	const limit = 1000
	if len(msg) <= limit {
		return strings.ToValidUTF8(msg, "?")
	}
	return strings.ToValidUTF8(msg[:limit], "") + "…"
}

// fault ends st with the outcome that the code of a fault has.
func (b Binding) fault(st *ScoreStatus, what string, err error) {
	f := topology.FaultOf(err)
	o := Failed
	switch f.Code {
	case topology.CodeUnavailable, topology.CodeNotSupported:
		o = Unsupported
	case topology.CodeForeign, topology.CodeMasked:
		o = Conflict
	}
	st.end(o, Code(f.Code), what+": "+f.Text)
	if b.field != nil {
		st.Path = "/" + b.field(f.Code)
	}
}

// observed reports what was seen; o is nil if nothing was.
func (st *ScoreStatus) observed(o Observed) {
	if o == nil {
		return
	}
	st.Conditions = o.Conditions()
	b, err := score.Encode(o)
	if err != nil {
		panic(fmt.Sprintf("interpret: state of %s is not data: %v", st.Kind, err))
	}
	st.Observed = b
}
