package interpret

import (
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// AuditKind is the kind of an AuditEntry document.
const AuditKind = "AuditEntry"

// An AuditEntry is one line of the record of what was decided and asked for, by a device or by a person. Entries are a
// chain: each has the number after the one before, and the digest of its bytes, so that one that is missing or was
// changed shows. It says what was allowed and why; a Receipt says what came of it.
type AuditEntry struct {
	// Version of the document: continuo/v1.
	APIVersion string `json:"apiVersion"`
	// Kind of document: AuditEntry.
	Kind string `json:"kind"`
	// Chain that it is a part of: a new one begins when a writer has lost its books.
	Chain string `json:"chain"`
	// Sequence counts the entries of the chain, from 1 on.
	Sequence uint64 `json:"sequence"`
	// Previous is the sha256 of the bytes of the entry before; the first has none.
	Previous string `json:"previous,omitempty"`
	// Device that it is about.
	Device string `json:"device,omitempty"`
	// BootID changes when the device boots.
	BootID string `json:"bootId,omitempty"`
	// Time of it, on the clock of who wrote it.
	Time time.Time `json:"time"`
	// TimeTrusted tells that this clock was set by something that can be trusted.
	TimeTrusted bool `json:"timeTrusted,omitzero"`
	// What it is about.
	What AuditWhat `json:"what"`
	// Operation that it belongs to.
	Operation string `json:"operation,omitempty"`
	// Request is the sha256 of the operation's document.
	Request string `json:"request,omitempty"`
	// Verb that was asked for: that of an operation, or what a person does, such as publish.
	Verb string `json:"verb,omitempty"`
	// Actor who asked.
	Actor string `json:"actor,omitempty"`
	// Reason why.
	Reason string `json:"reason,omitempty"`
	// Plan that was confirmed.
	Plan string `json:"plan,omitempty"`
	// Result of an operation.
	Result Result `json:"result,omitempty"`
	// Generation of the document or manifest that it is about.
	Generation uint64 `json:"generation,omitzero"`
	// Digest is the sha256 of the document that it is about, as it was signed.
	Digest string `json:"digest,omitempty"`
	// Manifest that it is about.
	Manifest string `json:"manifest,omitempty"`
	// Score that it is about.
	Score score.ID `json:"score,omitempty"`
	// SpecDigest is the sha256 of the spec.
	SpecDigest string `json:"specDigest,omitempty"`
	// Resources that it is about.
	Resources []score.Resource `json:"resources,omitempty"`
	// More is how many resources are left out.
	More int `json:"more,omitzero"`
	// Action that was asked about.
	Action ActionVerb `json:"action,omitempty"`
	// Cause of the action.
	Cause Cause `json:"cause,omitempty"`
	// Effect of the action.
	Effect Effect `json:"effect,omitempty"`
	// Decision about it.
	Decision Decision `json:"decision,omitempty"`
	// Authority that covers it.
	Authority string `json:"authority,omitempty"`
	// Code is the machine-readable reason.
	Code Code `json:"code,omitempty"`
	// Message says the same for people.
	Message string `json:"message,omitempty"`
	// Lost is how many entries are missing, because there was no room or they could not be written.
	Lost uint64 `json:"lost,omitzero"`
	// LostFrom is the number of the first of those that had one.
	LostFrom uint64 `json:"lostFrom,omitzero"`
	// LostTo is the number of the last of them.
	LostTo uint64 `json:"lostTo,omitzero"`
}

// An AuditWhat says what an entry of the audit is about.
type AuditWhat string

// What entries are about.
const (
	AuditBegin     AuditWhat = "begin"     // a chain begins; the code says why
	AuditDecision  AuditWhat = "decision"  // what may happen to a score, when it is another answer than before
	AuditRefusal   AuditWhat = "refusal"   // a document or a score was not accepted
	AuditOperation AuditWhat = "operation" // what came of an operation that was asked for
	AuditLocal     AuditWhat = "local"     // the same, of a person at the device
	AuditVerb      AuditWhat = "verb"      // somebody is about to do this, from elsewhere
	AuditEnrolment AuditWhat = "enrolment" // a device was let in, or lost that
	AuditLoss      AuditWhat = "loss"      // entries are missing
)

// Bounds of the texts of an entry, so that all of it fits.
const (
	auditText      = 300
	auditResources = 10
	auditResource  = 120
)

// Bounded cuts what is long, so that an entry always has its place.
func (e AuditEntry) Bounded() AuditEntry {
	e.Message, e.Reason = clip(e.Message, auditText), clip(e.Reason, auditText)
	for _, s := range []*string{&e.Actor, &e.Authority, &e.Manifest, &e.BootID, (*string)(&e.Score), (*string)(&e.Code)} {
		*s = clip(*s, auditResource)
	}
	n := min(len(e.Resources), auditResources)
	e.More += len(e.Resources) - n
	out := make([]score.Resource, n)
	for i, r := range e.Resources[:n] {
		out[i] = score.Resource(clip(string(r), auditResource))
	}
	if e.Resources = nil; n > 0 {
		e.Resources = out
	}
	return e
}
