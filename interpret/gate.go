package interpret

import (
	"context"

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
type Text struct{ Before, After Content }

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
	// Opens writes down, durably, that a change is about to be made that could cut the device
	// off. It is called when that can be taken back, and before anything is touched; may be nil.
	Opens func() error
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

// readOnly lets nothing happen.
type readOnly struct{}

func (readOnly) Admit(context.Context, Action) (Verdict, error) {
	return Verdict{Outcome: Drifted}, nil
}
func (readOnly) Done(context.Context, Action, ScoreStatus) error         { return nil }
func (readOnly) Holds(context.Context, score.Score, topology.Mark) error { return nil }
