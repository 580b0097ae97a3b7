package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// noteOperation is the prefix of the notes of ids that were used: written before anything is
// done, so that nothing is ever done twice. The value is the digest of the document, and when
// the id may be forgotten.
const noteOperation = "op/"

// How long ids and what came of them are remembered beyond the end of an operation, and how
// many ids at most.
const (
	rememberOperations = 30 * 24 * time.Hour
	maxOperations      = 500
)

// Codes of operations.
const (
	CodeOperationReused interpret.Code = "operation_reused" // the id was used before, for something else
	CodeInterrupted     interpret.Code = "operation_interrupted"
	CodeUnknownVerb     interpret.Code = "unknown_verb"     // this agent cannot do that
	CodeNothingToDo     interpret.Code = "nothing_to_do"    // there is no intent, or nothing that it is about
	CodeWrongApproval   interpret.Code = "wrong_approval"   // it names an action that the plan does not have
	CodeNoBackup        interpret.Code = "no_backup"        // there is no such backup, or it is damaged
	CodeNoRollback      interpret.Code = "no_rollback"      // a rollback that is declared could not be done
	CodeTooManyWaiting  interpret.Code = "too_many_waiting" // operations that were not done yet
)

// maxQueue bounds the operations that wait for the pass under way.
const maxQueue = 32

// An order is an operation that was accepted.
type order struct {
	op      interpret.Operation
	request string
	started time.Time
}

// Operation is part of Handler.
func (a *Agent) Operation(op interpret.Operation, digest string) error {
	a.accepting.Lock()
	defer a.accepting.Unlock()
	s := a.Runner.Store
	o := order{op, digest, now()}
	if was, used := s.Note(noteOperation + op.ID); used {
		if before, _, _ := strings.Cut(was, " "); before != digest {
			a.send(o.receipt(a, interpret.ResultConflict, CodeOperationReused, "the id of this operation was used before, for something else: ask again with a new id"))
			return nil
		}
		body, known, err := s.Receipt(op.ID)
		var r interpret.Receipt
		if err == nil && known && score.Decode(body, &r) == nil {
			a.send(r) // the answer was lost
		}
		return nil
	}
	a.mu.Lock()
	full := len(a.orders) >= maxQueue
	a.mu.Unlock()
	if full {
		a.send(o.receipt(a, interpret.ResultRefused, CodeTooManyWaiting, "too many operations wait on this device: ask again later"))
		return nil
	}
	if err := s.SetNotes(a.burn(op, digest)); err != nil {
		return fmt.Errorf("cannot keep the operation %s: %w", op.ID, err)
	}
	a.Log.WithFields(logrus.Fields{"operation": op.ID, "verb": op.Verb, "actor": op.Actor, "reason": op.Reason}).Info("operation accepted")
	a.mu.Lock()
	a.orders = append(a.orders, o)
	a.mu.Unlock()
	signal(a.wake)
	return nil
}

// burn is what to note of an operation before anything is done, and of those that can be
// forgotten.
func (a *Agent) burn(op interpret.Operation, digest string) map[string]string {
	notes := map[string]string{}
	type used struct {
		name string
		till time.Time
	}
	var all []used
	for name, v := range a.Runner.Store.Notes(noteOperation) {
		_, text, _ := strings.Cut(v, " ")
		till, _ := time.Parse(time.RFC3339, text)
		all = append(all, used{name, till})
	}
	slices.SortFunc(all, func(x, y used) int { return cmp.Or(x.till.Compare(y.till), cmp.Compare(x.name, y.name)) })
	for i, u := range all {
		if u.till.Before(time.Now()) || i < len(all)-maxOperations+1 {
			notes[u.name] = ""
		}
	}
	till := time.Now()
	if op.Expires.After(till) {
		till = op.Expires
	}
	notes[noteOperation+op.ID] = digest + " " + till.Add(rememberOperations).UTC().Format(time.RFC3339)
	return notes
}

// receipt is what came of o.
func (o order) receipt(a *Agent, result interpret.Result, code interpret.Code, message string) interpret.Receipt {
	return interpret.Receipt{
		APIVersion: apiVersion, Kind: interpret.ReceiptKind, ID: o.op.ID, Device: a.Device, Verb: o.op.Verb, Request: o.request,
		Actor: o.op.Actor, Reason: o.op.Reason, Result: result, Code: code, Message: interpret.Brief(message),
		Started: o.started, Finished: now(),
	}
}

// interrupted answers for operations that were under way when the agent ended. What they had
// begun is finished by the next pass, because the journal says so; the rest is not done.
func (a *Agent) interrupted() {
	s := a.Runner.Store
	for name, v := range s.Notes(noteOperation) {
		id := strings.TrimPrefix(name, noteOperation)
		if _, known, err := s.Receipt(id); known || err != nil {
			continue
		}
		digest, _, _ := strings.Cut(v, " ")
		r := order{interpret.Operation{ID: id}, digest, now()}.receipt(a, interpret.ResultInterrupted, CodeInterrupted,
			"the agent ended before this operation did: what was begun is finished, nothing else is done; plan again to see what is left")
		a.conclude(r)
	}
}

// operate does what was asked for and tells whether anything was: one after the other, between
// passes.
func (a *Agent) operate(ctx context.Context) (some bool) {
	for ctx.Err() == nil {
		a.mu.Lock()
		if len(a.orders) == 0 {
			a.mu.Unlock()
			return some
		}
		o := a.orders[0]
		a.orders = a.orders[1:]
		a.mu.Unlock()
		some = true
		r := a.perform(ctx, o)
		if ctx.Err() != nil {
			return some // it is interrupted, and the next start says so
		}
		a.Log.WithFields(logrus.Fields{"operation": r.ID, "verb": r.Verb, "result": r.Result, "code": r.Code, "actions": len(r.Actions)}).Info("operation over")
		a.conclude(r)
	}
	return some
}

// conclude keeps a receipt and sends it.
func (a *Agent) conclude(r interpret.Receipt) {
	a.unsaved = append(a.unsaved, r)
	a.saveReceipts()
	a.send(r)
}

// saveReceipts keeps receipts, also those that could not be kept before: an operation that has
// none when the agent starts again would be said to be interrupted.
func (a *Agent) saveReceipts() {
	a.unsaved = slices.DeleteFunc(a.unsaved, func(r interpret.Receipt) bool {
		err := a.Runner.saveReceipt(r)
		if err != nil {
			a.notKept(err)
		}
		return err == nil
	})
	if n := len(a.unsaved) - maxOutbox; n > 0 {
		a.unsaved = slices.Delete(a.unsaved, 0, n)
	}
}

// notKept says that the books could not be kept. The next pass tries again, and takes that
// back when it can.
func (a *Agent) notKept(err error) {
	a.unkept = true
	a.problem(CodeStore, err.Error())
}

func (r *Runner) saveReceipt(rc interpret.Receipt) error {
	body, err := score.Encode(rc)
	if err != nil {
		return fmt.Errorf("cannot keep a receipt: %w", err)
	}
	return r.Store.SaveReceipt(store.ReceiptFile{ID: rc.ID, Time: rc.Finished, Body: body})
}
