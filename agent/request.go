package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// Notes of requests, each with the id of a request behind it.
const (
	noteAsk      = "ask/"      // since when it is open
	noteRejected = "rejected/" // what it was about, and who said no
)

// maxRequests bounds the requests that are open at once, and maxRejected those that were rejected and are still wanted.
const (
	maxRequests = 100
	maxRejected = 200
)

// CodeNoRequest is of an answer to what was not asked.
const CodeNoRequest interpret.Code = "no_request"

// requestID is the id of the request for an action of p.
func (p *pass) requestID(a interpret.PlannedAction) string {
	id, err := interpret.RequestID(p.plan.intent.Assignment.Metadata.Name, a)
	if err != nil {
		return "" // then nobody can answer, and it waits
	}
	return id
}

// requests are the actions of p that wait for a person, rejected ones included. removals are those of what is no longer named.
func (p *pass) requests(removals []interpret.PlannedAction) (out []interpret.ApprovalRequest) {
	add := func(a interpret.PlannedAction, observed []byte) {
		if !a.Gated() && a.Code != interpret.CodeRejected {
			return
		}
		r := interpret.ApprovalRequest{ID: p.requestID(a), Action: a}
		if len(observed) > 0 {
			r.Observed = digestOf(string(observed))
		}
		if r.ID != "" {
			out = append(out, r)
		}
	}
	items := p.plan.items()
	for _, it := range items {
		if it.action.Action != "" {
			a := it.action
			a.Restarts = restarted(it, items)
			add(a, it.status.Observed)
		}
	}
	for _, a := range removals {
		add(a, nil)
	}
	return out
}

// ask makes the requests of a pass those of the device. What is no longer wanted, was done, or was rejected is no request any
// more. Only what is new is written down, and only another document is sent.
func (a *Agent) ask(p *pass) error {
	if p.only == nil {
		a.removals = p.removals
	}
	s := a.Runner.Store
	asked, notes, wanted := s.Notes(noteAsk), map[string]string{}, map[string]bool{}
	doc := interpret.ApprovalRequests{
		APIVersion: apiVersion, Kind: interpret.RequestsKind, Device: a.Device, Generation: p.plan.intent.Generation, Assignment: p.plan.intent.Digest,
	}
	for _, r := range p.requests(a.removals) {
		wanted[r.ID] = true
		switch {
		case r.Action.Code == interpret.CodeRejected:
			continue
		case len(doc.Requests) == maxRequests:
			doc.Truncated++
			continue
		}
		var err error
		if r.Since, err = time.Parse(time.RFC3339, asked[noteAsk+r.ID]); err != nil {
			r.Since = now().Truncate(time.Second)
			notes[noteAsk+r.ID] = r.Since.Format(time.RFC3339)
		}
		delete(asked, noteAsk+r.ID)
		doc.Requests = append(doc.Requests, r)
	}
	for name := range asked {
		notes[name] = ""
	}
	for name, text := range s.Notes(noteRejected) {
		if id := strings.TrimPrefix(name, noteRejected); !wanted[id] && p.only == nil && p.over(text) {
			notes[name] = "" // it is done with: the same may be wanted again some day
		}
	}
	if err := s.SetNotes(notes); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked && sameRequests(a.requests, doc) {
		return nil
	}
	doc.Time = now()
	a.requests, a.asked = doc, true
	signal(a.asks)
	return nil
}

// sameRequests compares without when they were written and how the things were found then: those move all the time.
func sameRequests(a, b interpret.ApprovalRequests) bool {
	for _, d := range []*interpret.ApprovalRequests{&a, &b} {
		d.Time, d.Requests = time.Time{}, slices.Clone(d.Requests)
		for i := range d.Requests {
			d.Requests[i].Observed = ""
		}
	}
	return alike(a, b)
}

// sendRequests hands the newest requests to the link.
func (a *Agent) sendRequests(ctx context.Context) error {
	a.mu.Lock()
	doc := a.requests
	a.mu.Unlock()
	return a.Link.Ask(ctx, doc)
}

// unlessRejected says of what waits for a person that one has said no to exactly that.
func (p *pass) unlessRejected(a interpret.PlannedAction, d authority.Answer) authority.Answer {
	a.Decision, a.Code = d.Decision, d.Code
	if !a.Gated() {
		return d
	}
	if text, is := p.Store.Note(noteRejected + p.requestID(a)); is {
		_, by, _ := strings.Cut(text, " ")
		d.Code, d.Reason = interpret.CodeRejected, "rejected by "+by
	}
	return d
}

// over reports whether what a rejection was about is over: the score is true, or there is nothing of it any more.
func (p *pass) over(rejection string) bool {
	of, _, _ := strings.Cut(rejection, " ")
	for _, it := range p.plan.items() {
		if string(it.mark()) == of {
			return it.status.Outcome.Converged()
		}
	}
	manifest, id, _ := strings.Cut(of, "/")
	return len(p.Store.ByScore(manifest, id)) == 0
}

// answers finds the actions of the plan of now that approvals or rejections by request are about, or says what is wrong with one.
func answers(p interpret.Plan, approvals []interpret.Approval) (found []interpret.PlannedAction, code interpret.Code, why string) {
	if len(approvals) == 0 {
		return nil, CodeWrongApproval, "it names nothing"
	}
	for _, ap := range approvals {
		if ap.Request == "" {
			return nil, CodeWrongApproval, fmt.Sprintf("for %s/%s it names neither a plan nor a request", ap.Manifest, ap.Score)
		}
		if code, why := matches(p, ap); code != "" {
			return nil, code, why
		}
		i := slices.IndexFunc(p.Actions, func(a interpret.PlannedAction) bool { return a.Manifest == ap.Manifest && a.Score == ap.Score })
		if id, err := interpret.RequestID(p.Device, p.Actions[i]); err != nil || id != ap.Request {
			return nil, CodeApprovalParameters, fmt.Sprintf("%s/%s is not as it was when request %.12s was made: look at the request of now (continuo requests)", ap.Manifest, ap.Score, ap.Request)
		}
		found = append(found, p.Actions[i])
	}
	return found, "", ""
}

// approvedByRequest says why approvals by request are not to be followed; no code if they are.
func approvedByRequest(now interpret.Plan, approvals []interpret.Approval) (interpret.Code, string) {
	found, code, why := answers(now, approvals)
	if code != "" {
		return code, why
	}
	for _, x := range found {
		switch {
		case x.Code == interpret.CodeRejected:
			return interpret.CodeRejected, fmt.Sprintf("%s/%s: %s; to let it happen all the same, approve it of a plan", x.Manifest, x.Score, x.Reason)
		case !x.Gated():
			return CodeNoRequest, fmt.Sprintf("%s/%s does not wait for an approval: %s", x.Manifest, x.Score, x.Decision)
		}
	}
	return "", ""
}

// reject ends requests for good: the same is not asked for again while it is wanted. To reject again is nothing.
func (a *Agent) reject(ctx context.Context, o order) interpret.Receipt {
	plan, err := a.preview(ctx)
	if err != nil {
		return a.failed(o, err)
	}
	found, code, why := answers(plan, o.op.Approvals)
	s := a.Runner.Store
	rejected := s.Notes(noteRejected)
	for i, x := range found {
		if x.Code != interpret.CodeRejected && !x.Gated() {
			code, why = CodeNoRequest, fmt.Sprintf("%s/%s does not wait for an approval: %s", x.Manifest, x.Score, x.Decision)
		} else if _, known := rejected[noteRejected+o.op.Approvals[i].Request]; !known && len(rejected) >= maxRejected {
			code, why = CodeTooManyWaiting, "this device remembers as many rejections as it can: take what was rejected out of the manifests"
		}
	}
	if code != "" {
		return o.receipt(a, interpret.ResultRefused, code, why)
	}
	r := o.receipt(a, interpret.ResultDone, "", "")
	r.Generation = plan.Generation
	notes := map[string]string{}
	for i, x := range found {
		id := o.op.Approvals[i].Request
		by := fmt.Sprintf("%s at %s", interpret.Brief(cmp.Or(o.op.Actor, "somebody")), now().Format(time.RFC3339))
		if _, known := rejected[noteRejected+id]; !known {
			notes[noteRejected+id] = fmt.Sprintf("%s %s", markOf(x.Manifest, string(x.Score)), by)
		}
		notes[noteAsk+id] = ""
		r.Actions = append(r.Actions, interpret.ReceiptAction{
			Manifest: x.Manifest, Score: x.Score, Kind: x.Kind, Action: x.Action, Outcome: interpret.Pending, Code: interpret.CodeRejected,
			Message: "it will not happen, and is not asked for again", Cause: x.Cause, Resources: append([]score.Resource(nil), x.Resources...),
		})
	}
	if err := s.SetNotes(notes); err != nil {
		return a.failed(o, err)
	}
	return shorten(r)
}
