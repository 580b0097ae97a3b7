package agent

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// The audit says what was allowed and refused, and who asked; what came of it is in receipts. It decides nothing: where
// it cannot be kept, the gate answers as it would, and what is missing is counted and told of.

// Names of the notes that keep one thing from being said twice.
const (
	noteVerdict  = "verdict/"       // of a score: the last decision about it
	noteRefused  = "refused/"       // of a score: why it was not even asked about
	noteRefusals = "audit/refusals" // the last refusals of documents and operations
)

// maxRefusals is how many refusals are remembered: more of them, one after the other, are said again.
const maxRefusals = 32

// Codes of the beginning of a chain, and of what is missing in it.
const (
	CodeFirst     interpret.Code = "first"      // this device had no audit before
	CodeBooksLost interpret.Code = "books_lost" // it had, and its end is not known any more
	CodeAuditLost interpret.Code = "audit_lost"
)

// atTheDevice is who asks for what is done by hand.
const atTheDevice = "a person at the device"

// KeepAudit makes the runner write down what is decided about a device, from now on.
func (r *Runner) KeepAudit(device string) {
	r.device, r.audited = device, true
	r.Store.KeepAudit(store.Scribe{
		Begin: func(p store.Place, lost bool) []byte {
			e := interpret.AuditEntry{What: interpret.AuditBegin, Code: CodeFirst}
			if lost {
				e.Code, e.Message = CodeBooksLost, "the books of this device were lost or damaged: what was not sent before is missing"
			}
			return entryAt(p, r.entry(e))
		},
		Gap: func(p store.Place, g store.Gap) []byte {
			return entryAt(p, r.entry(interpret.AuditEntry{What: interpret.AuditLoss, Code: CodeAuditLost, Lost: g.Count, LostFrom: g.From, LostTo: g.To}))
		},
	})
}

// entry completes an entry, but for its place.
func (r *Runner) entry(e interpret.AuditEntry) interpret.AuditEntry {
	e.APIVersion, e.Kind, e.Device, e.BootID = apiVersion, interpret.AuditKind, r.device, r.Boot
	if e.Time.IsZero() {
		e.Time, e.TimeTrusted = now(), r.Synchronized != nil && r.Synchronized()
	}
	return e.Bounded()
}

// maxEntry is the most bytes of an entry.
const maxEntry = 4 << 10

// entryAt gives the bytes of an entry in its place. Texts that become long when they are written go first.
func entryAt(p store.Place, e interpret.AuditEntry) []byte {
	e.Chain, e.Sequence, e.Previous = p.Chain, p.Sequence, p.Previous
	for _, shorter := range []func(){
		func() {}, func() { e.More, e.Resources = e.More+len(e.Resources), nil }, func() { e.Message, e.Reason = "", "" }, func() { e.Actor, e.Authority = "", "" },
	} {
		shorter()
		if b, err := score.Encode(e); err == nil && len(b) <= maxEntry {
			return b
		}
	}
	return nil
}

// audit adds an entry. It is durable with the next change of the books. Notes come with it; one that they say already is
// not added.
func (r *Runner) audit(e interpret.AuditEntry, notes map[string]string) {
	e = r.entry(e)
	r.Store.Audit(store.Line{Notes: notes, Entry: func(p store.Place) []byte { return entryAt(p, e) }})
}

// short is enough of a digest to tell things apart.
func short(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// noteOf is the name of a note about a score.
func noteOf(prefix, manifest string, id score.ID) string {
	name := prefix + manifest + "/" + string(id)
	if len(name) > 200 {
		name = prefix + short(manifest, string(id))
	}
	return name
}

// decided writes down a decision about a score, if it is another one than before.
func (p *pass) decided(a interpret.PlannedAction) {
	if p.dry {
		return
	}
	e := interpret.AuditEntry{
		What: interpret.AuditDecision, Manifest: a.Manifest, Score: a.Score, Generation: a.Generation, SpecDigest: a.SpecDigest, Resources: a.Resources,
		Action: a.Action, Cause: a.Cause, Effect: a.Effect, Decision: a.Decision, Authority: a.Authority, Code: a.Code, Message: a.Reason,
	}
	if p.consent != nil && (p.consent.all || p.consent.covers(a)) {
		e.Operation = p.consent.name
	}
	p.audit(e, map[string]string{
		noteOf(noteVerdict, a.Manifest, a.Score): short(a.SpecDigest, string(a.Action), string(a.Cause), string(a.Effect), string(a.Decision), a.Authority, string(a.Code)),
		noteOf(noteRefused, a.Manifest, a.Score): "",
	})
}

// refused writes down that a score may not be played at all, if it is another reason than before.
func (p *pass) refused(it *item, st interpret.ScoreStatus) {
	if p.dry || st.Outcome != interpret.Refused && st.Outcome != interpret.Conflict {
		return
	}
	p.audit(interpret.AuditEntry{
		What: interpret.AuditRefusal, Manifest: it.manifest.name, Score: it.score.ID, Generation: it.manifest.generation, SpecDigest: it.digest, Resources: it.claims,
		Code: st.Code, Message: st.Message,
	}, map[string]string{
		noteOf(noteRefused, it.manifest.name, it.score.ID): short(it.digest, string(st.Code)),
		noteOf(noteVerdict, it.manifest.name, it.score.ID): "",
	})
}

// forgetVerdicts takes the notes away of scores that are neither wanted nor owned.
func (r *Runner) forgetVerdicts(pl *plan) error {
	gone := map[string]string{}
	for _, prefix := range []string{noteVerdict, noteRefused} {
		for name := range r.Store.Notes(prefix) {
			gone[name] = ""
		}
	}
	if len(gone) == 0 {
		return nil
	}
	for _, it := range pl.items() {
		delete(gone, noteOf(noteVerdict, it.manifest.name, it.score.ID))
		delete(gone, noteOf(noteRefused, it.manifest.name, it.score.ID))
	}
	for _, e := range r.Store.Entries() {
		delete(gone, noteOf(noteVerdict, e.Manifest, score.ID(e.Score)))
		delete(gone, noteOf(noteRefused, e.Manifest, score.ID(e.Score)))
	}
	return r.Store.SetNotes(gone)
}

// auditOperation writes down what came of an operation.
func (r *Runner) auditOperation(what interpret.AuditWhat, rc interpret.Receipt) {
	if rc.Verb == interpret.VerbPass {
		return
	}
	e := interpret.AuditEntry{What: what, Operation: rc.ID, Request: rc.Request, Verb: string(rc.Verb), Actor: rc.Actor, Reason: rc.Reason,
		Result: rc.Result, Generation: rc.Generation, Code: rc.Code, Message: rc.Message}
	if rc.Plan != nil {
		e.Plan = rc.Plan.ID
	}
	for _, a := range rc.Actions {
		e.Resources = append(e.Resources, a.Resources...)
	}
	e.More = rc.Truncated
	r.audit(e, nil)
}

// auditRefusal writes down that a document or an operation was not accepted: once, however often it comes.
func (r *Runner) auditRefusal(e interpret.AuditEntry) {
	e.What = interpret.AuditRefusal
	key := short(string(e.Code), e.Message, e.Operation, e.Request)
	r.refusals.Lock()
	defer r.refusals.Unlock()
	text, _ := r.Store.Note(noteRefusals)
	known := strings.Fields(cmp.Or(r.refusalsNext, text))
	if slices.Contains(known, key) {
		return
	}
	known = append(known, key)
	r.refusalsNext = strings.Join(known[max(len(known)-maxRefusals, 0):], " ")
	r.audit(e, map[string]string{noteRefusals: r.refusalsNext})
}

// forgetRefusals ends what was said of refusals: the same ones would be others now.
func (r *Runner) forgetRefusals() error {
	r.refusals.Lock()
	defer r.refusals.Unlock()
	r.refusalsNext = ""
	if err := r.Store.SetNotes(map[string]string{noteRefusals: ""}); err != nil {
		return fmt.Errorf("cannot forget what was refused before: %w", err)
	}
	return nil
}

// By says that somebody at the device has asked a command for something.
func By(verb string, args ...string) interpret.AuditEntry {
	return interpret.AuditEntry{What: interpret.AuditLocal, Verb: verb, Actor: atTheDevice, Message: strings.Join(args, " "), Time: now()}
}

// LeaveAudit leaves an entry for the agent that has, or will have, the books in dir. What it changes or shows is not its
// matter: an audit that cannot be kept stops nothing that does no harm.
func LeaveAudit(dir string, e interpret.AuditEntry) error {
	e.APIVersion, e.Kind = apiVersion, interpret.AuditKind
	b := entryAt(store.Place{}, e.Bounded())
	if b == nil {
		return fmt.Errorf("cannot write down that %s was asked for", e.Verb)
	}
	return store.LeaveAsked(dir, b)
}

// takeAsked puts what commands have left into the audit.
func (r *Runner) takeAsked() error {
	left, forget, err := r.Store.Asked()
	if err != nil || len(left) == 0 || !r.audited {
		return err
	}
	for _, b := range left {
		var e interpret.AuditEntry
		if score.Decode(b, &e) != nil || e.What != interpret.AuditLocal {
			e = interpret.AuditEntry{What: interpret.AuditLocal, Message: "somebody left a word for the audit that cannot be read"}
		}
		e.Actor = atTheDevice
		r.audit(e, nil)
	}
	if err := r.Store.FlushAudit(); err != nil {
		return err
	}
	return forget()
}
