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
// done, so that nothing is ever done twice.
const noteOperation = "op/"

// A burnt is what is noted of an id.
type burnt struct {
	request string    // digest of the document
	till    time.Time // when the id may be forgotten
	over    bool      // its receipt was kept, and may be gone by now
	sent    bool      // and whoever asked has it
}

func (b burnt) String() string {
	text := b.request + " " + b.till.UTC().Format(time.RFC3339)
	switch {
	case b.sent:
		text += " over sent"
	case b.over:
		text += " over"
	}
	return text
}

func readBurnt(text string) (b burnt) {
	request, rest, _ := strings.Cut(text, " ")
	till, end, _ := strings.Cut(rest, " ")
	b.request, b.over, b.sent = request, end != "", strings.HasSuffix(end, "sent")
	b.till, _ = time.Parse(time.RFC3339, till)
	return b
}

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
	CodeExpired         interpret.Code = "expired"          // it was to be done earlier
	CodeWrongApproval   interpret.Code = "wrong_approval"   // it names an action that the plan does not have
	CodeNoBackup        interpret.Code = "no_backup"        // there is no such backup, or it is damaged
	CodeNoRollback      interpret.Code = "no_rollback"      // a rollback that is declared could not be done
	CodeTooManyWaiting  interpret.Code = "too_many_waiting" // operations that were not done yet
	CodeSuperseded      interpret.Code = "superseded"       // something newer came in the middle of it

	// of approvals of an action that the plan has, and that is another one there
	CodeApprovalAction     interpret.Code = "approval_action"
	CodeApprovalResource   interpret.Code = "approval_resource"
	CodeApprovalParameters interpret.Code = "approval_parameters"
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
	if text, used := s.Note(noteOperation + op.ID); used {
		a.again(o, readBurnt(text))
		return nil
	}
	a.mu.Lock()
	full := len(a.orders) >= maxQueue
	a.mu.Unlock()
	notes, room := a.burn(op, digest)
	if !room {
		r := o.receipt(a, interpret.ResultRefused, CodeTooManyWaiting, "this device remembers as many operations as it can until they expire: ask again later, with a new id")
		a.refusedOperation(r)
		a.send(r)
		return nil
	}
	if err := s.SetNotes(notes); err != nil {
		return fmt.Errorf("cannot keep the operation %s: %w", op.ID, err)
	}
	if full { // its id is used all the same: it is refused for good
		r := o.receipt(a, interpret.ResultRefused, CodeTooManyWaiting, "too many operations wait on this device: ask again later, with a new id")
		a.Runner.auditOperation(interpret.AuditOperation, r)
		if err := cmp.Or(a.Runner.saveReceipt(r), a.Runner.over(op.ID)); err != nil {
			return err
		}
		a.send(r)
		return nil
	}
	a.Log.WithFields(said(logrus.Fields{"operation": op.ID, "verb": op.Verb, "actor": op.Actor, "reason": op.Reason})).Info("operation accepted")
	a.mu.Lock()
	a.orders = append(a.orders, o)
	a.mu.Unlock()
	signal(a.wake)
	return nil
}

// again answers for an operation whose id was used before.
func (a *Agent) again(o order, was burnt) {
	if was.request != o.request {
		r := o.receipt(a, interpret.ResultConflict, CodeOperationReused, "the id of this operation was used before, for something else: ask again with a new id")
		a.refusedOperation(r)
		a.send(r)
		return
	}
	body, known, err := a.Runner.Store.Receipt(o.op.ID)
	var r interpret.Receipt
	switch {
	case err == nil && known && score.Decode(body, &r) == nil:
		a.send(r) // the answer was lost
	case was.over:
		a.send(o.receipt(a, interpret.ResultRefused, CodeOperationReused, "this operation was over before, and what came of it is not kept any more: ask again with a new id"))
	}
}

// burn is what to note of an operation before anything is done, and of those that can be
// forgotten: what has expired is not done again anyway. There may be no room for one more.
func (a *Agent) burn(op interpret.Operation, digest string) (notes map[string]string, room bool) {
	type used struct {
		name string
		till time.Time
	}
	var all []used
	for name, text := range a.Runner.Store.Notes(noteOperation) {
		all = append(all, used{name, readBurnt(text).till})
	}
	slices.SortFunc(all, func(x, y used) int { return cmp.Or(x.till.Compare(y.till), cmp.Compare(x.name, y.name)) })
	notes = map[string]string{}
	for _, u := range all {
		switch {
		case u.till.Before(time.Now()), len(all)-len(notes) >= maxOperations && u.till.Add(-rememberOperations).Before(time.Now()):
			notes[u.name] = ""
		}
	}
	if len(all)-len(notes) >= maxOperations {
		return nil, false
	}
	till := time.Now()
	if op.Expires.After(till) {
		till = op.Expires
	}
	notes[noteOperation+op.ID] = burnt{request: digest, till: till.Add(rememberOperations)}.String()
	return notes, true
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
	for name, text := range s.Notes(noteOperation) {
		id, was := strings.TrimPrefix(name, noteOperation), readBurnt(text)
		body, known, err := s.Receipt(id)
		if was.over || err != nil {
			continue
		}
		var kept interpret.Receipt
		if known && score.Decode(body, &kept) == nil { // its end was kept, and nothing after that
			a.Runner.auditOperation(interpret.AuditOperation, kept)
			if err := a.Runner.over(id); err != nil {
				a.notKept(err)
			}
		}
		if known {
			continue
		}
		r := order{interpret.Operation{ID: id}, was.request, now()}.receipt(a, interpret.ResultInterrupted, CodeInterrupted,
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
		log := a.Log.WithFields(said(logrus.Fields{"operation": r.ID, "verb": r.Verb, "result": r.Result, "code": r.Code, "actions": len(r.Actions)}))
		if r.Result == interpret.ResultDone {
			log.Info("operation over")
		} else { // what only waits for a person is done, and no failure
			log.Error("operation over: " + r.Message)
		}
		a.conclude(r)
	}
	return some
}

// conclude keeps a receipt and sends it.
func (a *Agent) conclude(r interpret.Receipt) {
	a.unsaved = append(a.unsaved, r)
	a.Runner.auditOperation(interpret.AuditOperation, r)
	a.saveReceipts()
	a.send(r)
}

// saveReceipts keeps receipts, also those that could not be kept before: an operation that has
// none when the agent starts again would be said to be interrupted.
func (a *Agent) saveReceipts() {
	a.unsaved = slices.DeleteFunc(a.unsaved, func(r interpret.Receipt) bool {
		err := a.Runner.saveReceipt(r)
		if err == nil {
			err = a.Runner.over(r.ID)
		}
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

// over notes that the receipt of an operation was kept: not so many receipts are kept as ids.
func (r *Runner) over(id string) error {
	return r.noteBurnt(id, func(b *burnt) { b.over = true })
}

func (r *Runner) noteBurnt(id string, change func(*burnt)) error {
	text, used := r.Store.Note(noteOperation + id)
	if !used {
		return nil // a pass
	}
	b := readBurnt(text)
	change(&b)
	return r.Store.SetNotes(map[string]string{noteOperation + id: b.String()})
}

func (r *Runner) saveReceipt(rc interpret.Receipt) error {
	body, err := score.Encode(rc)
	if err != nil {
		return fmt.Errorf("cannot keep a receipt: %w", err)
	}
	return r.Store.SaveReceipt(store.ReceiptFile{ID: rc.ID, Time: rc.Finished, Body: body})
}
