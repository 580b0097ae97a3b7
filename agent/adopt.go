package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// chosen are the items that an operation names: those of one manifest, all if it names none.
func chosen(p *plan, op interpret.Operation) (items []*item, missing string) {
	for _, it := range p.items() {
		if it.manifest.name == op.Manifest && (len(op.Scores) == 0 || slices.Contains(op.Scores, it.score.ID)) {
			items = append(items, it)
		}
	}
	for _, id := range op.Scores {
		if !slices.ContainsFunc(items, func(it *item) bool { return it.score.ID == id }) {
			return nil, fmt.Sprintf("manifest %q has no score %q on this device", op.Manifest, id)
		}
	}
	if len(items) == 0 {
		return nil, fmt.Sprintf("there is no manifest %q on this device", op.Manifest)
	}
	return items, ""
}

// adopt takes over what is there. Its content is kept, and nothing of it is changed; what
// differs is corrected by the next pass, as far as the policy lets it.
func (a *Agent) adopt(ctx context.Context, o order) interpret.Receipt {
	present, control := a.present()
	items, missing := chosen(present, o.op)
	if missing != "" {
		return o.receipt(a, interpret.ResultRefused, CodeNothingToDo, missing)
	}
	for _, it := range items {
		if code, why, refused := a.Runner.Ceiling.RefusesAdoption(it.score); refused {
			return o.receipt(a, interpret.ResultRefused, code, why)
		}
	}
	p := &pass{Runner: a.Runner, plan: present, dry: true, blocked: control.Blocked}
	if _, err := p.run(ctx); err != nil { // looks at what is there
		return a.failed(o, err)
	}
	r := o.receipt(a, interpret.ResultDone, "", "")
	taken := 0
	for _, it := range items {
		x := interpret.ReceiptAction{Manifest: it.manifest.name, Score: it.score.ID, Kind: it.score.Spec.Kind(), Action: interpret.ActionNone,
			Outcome: interpret.Unchanged, Authority: "plan:" + o.op.ID, Resources: it.claims}
		if st, in := p.inTheWayOfAdoption(it); in {
			x.Outcome, x.Code, x.Message, x.Authority = st.Outcome, st.Code, st.Message, ""
			r.Actions = append(r.Actions, x)
			continue
		}
		backup, some, err := p.takeOver(ctx, it, o.op.ID)
		if err != nil {
			return a.failed(o, err)
		}
		if taken++; some {
			x.Backup = backup
			r.Actions = append(r.Actions, x)
		}
	}
	switch {
	case taken == 0:
		r.Result, r.Code, r.Message = interpret.ResultRefused, CodeNothingToDo, "nothing of it can be taken over: see the actions"
	case taken < len(items) && len(o.op.Scores) > 0:
		r.Result, r.Message = interpret.ResultFailed, "not all of it can be taken over: see the actions"
	}
	r.Finished = now()
	return shorten(r)
}

// inTheWayOfAdoption says why a score cannot take over what it claims, after p has looked.
func (p *pass) inTheWayOfAdoption(it *item) (st interpret.ScoreStatus, some bool) {
	switch st = it.status; {
	case st.Outcome == interpret.Conflict && st.Code == authority.CodeForeign && it.action.Action != "": // this is what it is for
	case st.Outcome == interpret.Conflict, st.Outcome == interpret.Failed, st.Outcome == interpret.Refused, st.Outcome == interpret.Unsupported, len(it.claims) == 0:
		return st, true
	}
	if it.action.Action == interpret.ActionCreate {
		return interpret.ScoreStatus{Outcome: interpret.Refused, Code: CodeNothingToDo, Message: "there is nothing to take over: it is not there"}, true
	}
	if e, owned := p.gate(it).primary(); owned && e.Manifest != it.manifest.name {
		return interpret.ScoreStatus{Outcome: interpret.Conflict, Code: interpret.CodeOwnedBy, Message: fmt.Sprintf("it is owned by manifest %q", e.Manifest)}, true
	}
	return st, false
}

// takeOver makes a score own what it claims, after a backup. What it owns already stays as it is.
func (p *pass) takeOver(ctx context.Context, it *item, operation string) (backup string, some bool, err error) {
	g := p.gate(it)
	if _, owned := g.primary(); owned {
		return "", false, nil
	}
	if backup, err = g.backUp(ctx, false); err != nil {
		return "", false, err
	}
	actions := g.actions(store.Entry{}, store.Adopted, backup, "plan:"+operation)
	for i := range actions {
		actions[i].Entry.SpecDigest, actions[i].Entry.Generation = "", 0 // never applied: what differs is new
	}
	if err := p.Store.Record(actions...); err != nil {
		return "", false, err
	}
	return backup, true, p.Store.SetNotes(g.owns())
}

// noteReleased is the prefix of the notes of what was given up and may still carry a mark of
// ours: it is foreign all the same.
const noteReleased = "released/"

// releaseOf is the note of a resource. The path of a file may be longer than the name of a note.
func releaseOf(resource string) string {
	const longest = 256 - len(noteReleased)
	if len(resource) > longest {
		resource = "sha256:" + digestOf(resource)
	}
	return noteReleased + resource
}

// release gives up what scores own. It stays as it is.
func (a *Agent) release(o order) interpret.Receipt {
	var resources []string
	notes := map[string]string{}
	r := o.receipt(a, interpret.ResultDone, "", "")
	for _, e := range a.Runner.Store.ByManifest(o.op.Manifest) {
		if len(o.op.Scores) == 0 || slices.Contains(o.op.Scores, score.ID(e.Score)) {
			resources = append(resources, e.Resource)
			notes[releaseOf(e.Resource)] = "by " + o.op.ID
			r.Actions = append(r.Actions, interpret.ReceiptAction{Manifest: e.Manifest, Score: score.ID(e.Score), Kind: score.Kind(e.Kind),
				Outcome: interpret.Unchanged, Authority: "plan:" + o.op.ID, Resources: []score.Resource{score.Resource(e.Resource)}})
		}
	}
	if len(resources) == 0 {
		return o.receipt(a, interpret.ResultRefused, CodeNothingToDo, fmt.Sprintf("this device owns nothing of manifest %q that was named", o.op.Manifest))
	}
	if err := a.Runner.Store.SetNotes(notes); err != nil {
		return a.failed(o, err)
	}
	if err := a.Runner.Store.Release(resources...); err != nil {
		return a.failed(o, err)
	}
	return shorten(r)
}
