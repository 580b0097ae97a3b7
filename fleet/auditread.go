package fleet

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// AuditOptions say which entries are meant.
type AuditOptions struct {
	Device    Device    // of it, and about it; the zero value means all
	Operation string    // that belong to it; empty means all
	Since     time.Time // that the fleet has got since; the zero value means all that it has kept
}

// A Recorded is one entry of the audit as the fleet has it.
type Recorded struct {
	// Writer of it: a device as SITE.ID, or control. and the public key of who did something.
	Writer string `json:"writer"`
	// StoredAt is when the fleet got it, on the clock of the store.
	StoredAt time.Time `json:"storedAt"`
	// Signed says that the key in Writer has signed it. Entries of devices are not: only the device may write there.
	Signed bool `json:"signed,omitzero"`
	// Entry is what was written, if it can be read.
	Entry *interpret.AuditEntry `json:"entry,omitempty"`
	// Unreadable says why it cannot.
	Unreadable string `json:"unreadable,omitempty"`

	digest string
	by     wire.AuditWriter
}

// Unsigned says that a person is said to have written it, and nobody has signed it: it is by anybody.
func (r Recorded) Unsigned() bool { return r.by.Key != "" && !r.Signed }

// Audit reads what was written down, the oldest first: by devices, of what was decided, refused and asked for; by people
// before they did something. What a device sent twice is given once.
func (f *Fleet) Audit(ctx context.Context, o AuditOptions) ([]Recorded, error) {
	all, _, err := f.audit(ctx, o)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(r Recorded) bool {
		key := r.Writer + r.digest
		again := seen[key]
		seen[key] = true
		return again || !o.wants(r)
	}), nil
}

func (o AuditOptions) wants(r Recorded) bool {
	if r.Entry == nil {
		return o.Operation == "" && (o.Device == Device{} || r.by.Device == o.Device)
	}
	return (o.Operation == "" || r.Entry.Operation == o.Operation) && (o.Device == Device{} || r.by.Device == o.Device || r.by.Key != "" && r.Entry.Device == o.Device.String())
}

// audit reads what is stored, with what is there twice. whole says that nothing of it has become too old.
func (f *Fleet) audit(ctx context.Context, o AuditOptions) (all []Recorded, whole bool, err error) {
	subjects := []string{wire.AllAudit}
	if o.Device != (Device{}) {
		if err := o.Device.Check(); err != nil {
			return nil, false, err
		}
		subjects = []string{wire.AuditSubject(o.Device), wire.AllControlAudit}
	}
	from := nats.DeliverAll()
	if !o.Since.IsZero() {
		from = nats.StartTime(o.Since)
	}
	fail := func(err error) ([]Recorded, bool, error) {
		return nil, false, fmt.Errorf("cannot read the audit: %w", f.explain(err))
	}
	s, err := f.js.Stream(ctx, wire.StreamAudit)
	if err != nil {
		return fail(noStore(err))
	}
	whole = o.Since.IsZero() && s.CachedInfo().State.FirstSeq <= 1
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	messages, hand := channel(ctx)
	n, stop, err := f.follow(ctx, wire.StreamAudit, subjects, hand, from)
	if err != nil {
		return fail(err)
	}
	defer stop()
	left := backlog{}
	for left.expect(wire.StreamAudit, n); len(left) > 0; {
		select {
		case <-ctx.Done():
			return fail(ctx.Err())
		case <-time.After(patience):
			return fail(fmt.Errorf("the server did not send everything within %s", patience))
		case m := <-messages:
			left.took(m)
			all = append(all, readAudit(m)...)
		}
	}
	return all, whole, nil
}

// readAudit reads the entries of a message. Whose it is says the subject.
func readAudit(m message) (out []Recorded) {
	by, err := wire.AuditWriterOf(m.subject)
	if err != nil {
		return []Recorded{{Writer: strings.TrimPrefix(m.subject, "audit."), StoredAt: m.time, Unreadable: "it is of nobody who could write there", digest: digestOf(m.data)}}
	}
	signed := by.Key != "" && wire.AuditSigned(by.Key, m.header, m.data)
	for line := range bytes.SplitSeq(m.data, []byte("\n")) {
		r := Recorded{Writer: by.String(), StoredAt: m.time, Signed: signed, digest: digestOf(line), by: by}
		if r.Entry, err = decodeAudit(line); err != nil {
			r.Unreadable = err.Error()
		} else if by.Key == "" {
			r.Entry.Device = by.Device.String()
		}
		out = append(out, r)
	}
	return out
}

// decodeAudit reads an entry. Fields that a newer program added are ignored.
func decodeAudit(b []byte) (*interpret.AuditEntry, error) {
	if len(b) > wire.MaxAuditEntry {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", len(b), wire.MaxAuditEntry)
	}
	var e interpret.AuditEntry
	if err := json.Unmarshal(b, &e); err != nil {
		return nil, err
	}
	if e.APIVersion != score.APIVersion || e.Kind != interpret.AuditKind {
		return nil, fmt.Errorf("it is a %.40q of %.40q, this program reads %q of %q", e.Kind, e.APIVersion, interpret.AuditKind, score.APIVersion)
	}
	if e.Sequence == 0 || e.Chain == "" {
		return nil, fmt.Errorf("it has no place in a chain")
	}
	return &e, nil
}
