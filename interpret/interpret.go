// Package interpret makes one score true on a topology.
//
// An Interpreter knows one kind of score; the sub-packages hold one each. A Table is a
// set of interpreters bound to one topology, and Play runs one score through it:
// observe, compare, ask the gate, apply, observe again. What came of it is a
// ScoreStatus. The package knows nothing of the order of scores, of the books of a
// device, of policy, or of the network: those are package agent's.
package interpret

import (
	"context"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// An Interpreter makes specs of type S true. O is what it can observe and is reported
// as the actual state: a plain struct with json tags. R and W are the read and the
// write half of the capability it needs; only Apply and Remove see the write half.
//
// Failures of the world are returned as *topology.Fault.
type Interpreter[S score.Spec, O Observed, R, W any] interface {
	// Observe reads the present state. A thing that does not exist is a state. What was
	// seen before a fault may be returned with it, and is reported.
	Observe(ctx context.Context, r R, s S) (O, error)

	// Diff compares, and is pure: it changes neither of its arguments.
	Diff(s S, o O) []Change

	// Apply makes s true. It is called only with changes that Diff found and the gate
	// let pass, and Diff is asked again after it: an Apply that does not remove every
	// change has failed, whatever it returned.
	Apply(ctx context.Context, w W, s S, t Task) error

	// Remove undoes the last spec that this device applied under a score that is no
	// longer wanted. Removing what is gone is no error.
	Remove(ctx context.Context, w W, last S) error
}

// Observed is the actual state of one score.
type Observed interface {
	// Exists reports whether the thing is there at all.
	Exists() bool
	// OwnedBy returns the mark found on the thing.
	OwnedBy() topology.Mark
	// Conditions reports how far the thing is, given that it is as wanted or not.
	Conditions() Conditions
}

// A Task is what Apply has to do.
type Task struct {
	Changes []Change
	Mark    topology.Mark // to put on what is made or changed
	// Retry is true if nothing about the wish is new: same spec, same triggers. A
	// service that hit its start limit is then left alone.
	Retry bool
	// Found is what was observed when the gate let the changes pass.
	Found Observed
}

// Has reports whether field is among the changes.
func (t Task) Has(field string) bool {
	for _, c := range t.Changes {
		if c.Field == field {
			return true
		}
	}
	return false
}

// A Change is one way in which a device departs from a score. It never holds secrets
// or contents, only digests of them, as a Teller tells them.
type Change struct {
	// Field that differs, as the kind names it.
	Field string `json:"field"`
	// Have is what was found.
	Have string `json:"have"`
	// Want is what the score asks for.
	Want string `json:"want"`
	// Effect of making it so.
	Effect Effect `json:"effect"`
	// Replaces is true if making it so overwrites what is kept nowhere else if somebody else made it: the content and the rights of a file.
	Replaces bool `json:"replaces,omitempty"`
}

// FieldRestart is the field of the change that the engine adds when a score that is
// to restart this one has changed.
const FieldRestart = "restartOn"

// FieldReload is the field of the change that the engine adds when a score that makes this
// one read its configuration again has changed.
const FieldReload = "reloadOn"

// FieldSupervision is the field of a change that tells what somebody else has put beside a thing, and what outweighs it.
const FieldSupervision = "supervision"

// An Effect is what a change does to a device. A kind declares it for each change; an
// effect it does not declare counts as Destroy.
type Effect string

// Effects, from the least to the worst.
const (
	Nothing Effect = "none"    // of a removal: what the score described stays, and nobody owns it any more; of a difference: it is told, and never undone
	Create  Effect = "create"  // something that was not there
	Mutate  Effect = "mutate"  // in place, no data lost
	Disrupt Effect = "disrupt" // restart or recreate, no data lost
	Remove  Effect = "remove"  // something that a manifest can make again
	Destroy Effect = "destroy" // data that cannot be made again
)

var rank = map[Effect]int{Nothing: -1, Create: 1, Mutate: 2, Disrupt: 3, Remove: 4, Destroy: 5}

// Worst returns the worst effect of changes.
func Worst(changes []Change) Effect {
	worst := Create
	for _, c := range changes {
		e := c.Effect
		if rank[e] == 0 {
			e = Destroy
		}
		if rank[e] > rank[worst] {
			worst = e
		}
	}
	return worst
}

// A Prefetcher is optionally implemented by interpreters that need something from
// elsewhere, such as an image. Prefetch is called before a new score is applied, may take
// hours beside passes over what was applied before, and touches nothing that runs.
type Prefetcher[S score.Spec, W any] interface {
	Prefetch(ctx context.Context, w W, s S) error
}

// A Remover is optionally implemented by interpreters whose Remove has, for some specs,
// another effect than Remove: Nothing if all that the spec described stays as it is, Destroy
// if data goes with it.
type Remover[S score.Spec] interface {
	RemovalEffect(last S) Effect
}

// A Texter is optionally implemented by interpreters of things that are text. Text returns
// what is there now, for the diff in a receipt. What cannot be read, or is large, is no text.
type Texter[S score.Spec, R any] interface {
	Text(ctx context.Context, r R, s S) (t Content, ok bool)
}

// A Content is a text as it is there.
type Content struct {
	Text   string
	Public bool   // everybody on the device may read it
	Digest Digest // what may be told of it
}

// A Follower is optionally implemented by a Prefetcher whose specs may follow what becomes
// another elsewhere without a word, such as a tag. For those that do, Prefetch is called now
// and then as well while nothing about them is new, and what it found shows in Observe.
type Follower[S score.Spec] interface {
	Follows(s S) bool
}

// A Stocker is optionally implemented by a Prefetcher. Stocked reports, as a fault, what
// Prefetch would have to fetch.
type Stocker[S score.Spec, R any] interface {
	Stocked(ctx context.Context, r R, s S) error
}

// A Checkpointer is optionally implemented by interpreters of what could cut the device off
// from its fleet. Checkpoint is called before Apply, and what it returns is committed when
// the gate has proved that the fleet is still reached, and rolled back otherwise. It is nil
// if none of the changes could cut the device off.
type Checkpointer[S score.Spec, W any] interface {
	Checkpoint(ctx context.Context, w W, s S, t Task) (topology.Checkpoint, error)
}

// An Observer knows one kind of score that is looked at and never made true: Observe and
// Diff are those of an Interpreter. What differs is reported as Drifted.
type Observer[S score.Spec, O Observed, R any] interface {
	Observe(ctx context.Context, r R, s S) (O, error)
	Diff(s S, o O) []Change
}

// A Locator is optionally implemented by interpreters that know which field of a spec a
// fault is about.
type Locator interface {
	// FieldOf returns the name of the field.
	FieldOf(topology.Code) string
}
