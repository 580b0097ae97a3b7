package agent

import (
	"context"
	"crypto/rand"
	mrand "math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// maxActions bounds the actions that a receipt shows.
const maxActions = 100

// receiptActions are what a pass did, as receipts tell it.
func (p *pass) receiptActions() (out []interpret.ReceiptAction, failed bool) {
	for _, it := range p.played {
		st := it.status
		switch {
		case st.Outcome == interpret.Changed:
		case it.effort != tried, p.consent == nil && st.Since.Before(p.begun): // that it failed once more is no news
			continue
		}
		a := interpret.ReceiptAction{
			Manifest: it.manifest.name, Score: it.score.ID, Kind: st.Kind, Action: it.action.Action, Outcome: st.Outcome, Code: st.Code,
			Message: st.Message, Cause: st.Cause, Authority: st.Authority, Resources: it.claims, Changes: st.Changes, Backup: st.Backup,
		}
		if t := it.text; t != nil {
			a.Before, a.After, a.Diff = t.before, t.after, t.diff
		}
		failed = failed || !st.Outcome.Converged()
		out = append(out, a)
	}
	return append(out, p.gone...), failed
}

// passReceipt is the record of a pass that changed something, or tried to.
func (a *Agent) passReceipt(p *pass, st interpret.DeviceStatus) (interpret.Receipt, bool) {
	actions, failed := p.receiptActions()
	if len(actions) == 0 {
		return interpret.Receipt{}, false
	}
	r := interpret.Receipt{
		APIVersion: apiVersion, Kind: interpret.ReceiptKind, ID: "pass-" + rand.Text(), Device: a.Device, Verb: interpret.VerbPass,
		Result: interpret.ResultDone, Generation: st.Generation, Actions: actions, Started: st.Started, Finished: st.Finished,
	}
	if failed {
		r.Result = interpret.ResultFailed
	}
	return shorten(r), true
}

func shorten(r interpret.Receipt) interpret.Receipt {
	if len(r.Actions) > maxActions {
		r.Truncated = len(r.Actions) - maxActions
		r.Actions = slices.Clone(r.Actions[:maxActions])
	}
	return r
}

// maxOutbox bounds the receipts that wait to be sent; the oldest of passes go first. All of
// them are on the device.
const maxOutbox = 100

// send puts a receipt on its way.
func (a *Agent) send(r interpret.Receipt) {
	if a.Link == nil {
		return
	}
	a.mu.Lock()
	a.receipts = append(a.receipts, shorten(r))
	if len(a.receipts) > maxOutbox {
		i := max(slices.IndexFunc(a.receipts, func(r interpret.Receipt) bool { return r.Verb == interpret.VerbPass }), 0)
		a.receipts = slices.Delete(a.receipts, i, i+1)
	}
	a.mu.Unlock()
	signal(a.mail)
}

// deliverReceipts hands receipts to the link, in order, each until it is stored.
func (a *Agent) deliverReceipts(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.mail:
		}
		wait := time.Second
		for {
			a.mu.Lock()
			if len(a.receipts) == 0 {
				a.mu.Unlock()
				break
			}
			r := a.receipts[0]
			a.mu.Unlock()
			if err := a.Link.Send(ctx, r); err != nil {
				if ctx.Err() != nil {
					return
				}
				a.Log.WithError(err).Debug("cannot send a receipt yet")
				select {
				case <-ctx.Done():
					return
				case <-time.After(wait/2 + mrand.N(wait)):
				}
				wait = min(2*wait, time.Minute)
				continue
			}
			a.mu.Lock()
			a.sent = append(a.sent, r.ID)
			if i := slices.IndexFunc(a.receipts, func(q interpret.Receipt) bool { return q.ID == r.ID && q.Result == r.Result }); i >= 0 {
				a.receipts = slices.Delete(a.receipts, i, i+1)
			}
			a.mu.Unlock()
			wait = time.Second
		}
	}
}

// noteSent writes down what was sent. It is done with the next pass: until then, a start sends
// it once more.
func (a *Agent) noteSent() {
	a.mu.Lock()
	ids := a.sent
	a.sent = nil
	a.mu.Unlock()
	for i, id := range ids {
		if err := a.Runner.noteBurnt(id, func(b *burnt) { b.sent = true }); err != nil {
			a.notKept(err)
			a.mu.Lock()
			a.sent = append(ids[i:], a.sent...)
			a.mu.Unlock()
			return
		}
	}
}

// sendAgain sends the answers that nobody has yet: the agent ended, or the device was away. Who
// has one already sees that it is the same.
func (a *Agent) sendAgain() {
	for name, text := range a.Runner.Store.Notes(noteOperation) {
		if was := readBurnt(text); was.sent || !was.over {
			continue
		}
		var r interpret.Receipt
		body, ok, err := a.Runner.Store.Receipt(strings.TrimPrefix(name, noteOperation))
		if err == nil && ok && score.Decode(body, &r) == nil {
			a.send(r)
		}
	}
}
