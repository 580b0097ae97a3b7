package fleet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/continuo-fleet/continuo/interpret"
)

// A Breach is something in the audit that does not hold.
type Breach struct {
	Writer  string     `json:"writer"`
	Chain   string     `json:"chain,omitempty"`
	Kind    BreachKind `json:"kind"`
	From    uint64     `json:"from,omitzero"` // number of the first entry that it is about
	To      uint64     `json:"to,omitzero"`   // and of the last
	Message string     `json:"message"`
}

// A BreachKind says what does not hold.
type BreachKind string

// Kinds of breaches.
const (
	BreachMissing    BreachKind = "missing"    // entries are not there, and nobody says why
	BreachLost       BreachKind = "lost"       // entries are not there, and who wrote them says so
	BreachBegunAnew  BreachKind = "begun_anew" // there was a chain before this one: its end may be missing
	BreachRewritten  BreachKind = "rewritten"  // an entry is not the one that the next one follows
	BreachForked     BreachKind = "forked"     // two entries have one number
	BreachReordered  BreachKind = "reordered"  // an entry came after a later one
	BreachUnsigned   BreachKind = "unsigned"   // nobody has signed what a person is said to have done
	BreachUnreadable BreachKind = "unreadable" // it is no entry, or one of a newer program
)

// VerifyAudit looks whether all that was written down is there as it was written. Of the options the operation does not
// count: a chain holds as a whole.
//
// It cannot show what a device did not send yet, nor that its last entries were never stored; and whoever can write in the
// place of a device is found out by the next entry of the device itself.
func (f *Fleet) VerifyAudit(ctx context.Context, o AuditOptions) (entries int, breaches []Breach, err error) {
	all, whole, err := f.audit(ctx, o)
	if err != nil {
		return 0, nil, err
	}
	n, found := verifyAudit(all, whole)
	return n, found, nil
}

// A chainOf is what is there of one chain.
type chainOf struct {
	writer, id string
	control    bool
	order      int
	entries    map[uint64]Recorded
	last       uint64
	told       []interpret.AuditEntry // of what was lost
}

// verifyAudit looks at everything in the order in which it was stored.
func verifyAudit(all []Recorded, whole bool) (n int, out []Breach) {
	chains := map[string]*chainOf{}
	seen := map[string]bool{} // digests, by writer
	for _, r := range all {
		e := r.Entry
		again := seen[r.Writer+r.digest]
		seen[r.Writer+r.digest] = true
		switch {
		case e == nil:
			out = append(out, Breach{Writer: r.Writer, Kind: BreachUnreadable, Message: r.Unreadable})
			continue
		case r.Unsigned():
			out = append(out, Breach{r.Writer, e.Chain, BreachUnsigned, e.Sequence, e.Sequence, fmt.Sprintf("somebody wrote that %s was done, and did not have this key", cmp.Or(e.Verb, string(e.What)))})
			continue
		case again:
			continue // sent twice, because an answer was lost
		}
		n++
		c := chains[r.Writer+" "+e.Chain]
		if c == nil {
			c = &chainOf{writer: r.Writer, id: e.Chain, control: r.by.Key != "", order: len(chains), entries: map[uint64]Recorded{}}
			chains[r.Writer+" "+e.Chain] = c
			if c.control && e.Sequence == 1 && e.Previous != "" && !seen[r.Writer+e.Previous] && whole {
				out = append(out, c.breach(BreachMissing, 0, 0, "an entry that this key wrote before is not there"))
			}
		}
		out = append(out, c.take(r)...)
	}
	first := map[string]bool{}
	for _, c := range slices.SortedFunc(maps.Values(chains), func(a, b *chainOf) int { return cmp.Compare(a.order, b.order) }) {
		if first[c.writer] && !c.control {
			why := "the device says not why"
			if e := c.entries[1].Entry; e != nil && e.What == interpret.AuditBegin {
				why = cmp.Or(e.Message, string(e.Code))
			}
			out = append(out, c.breach(BreachBegunAnew, 1, 1, "another chain of this device was there before: "+why))
		}
		first[c.writer] = true
		out = append(out, c.check(whole)...)
	}
	return n, out
}

func (c *chainOf) breach(k BreachKind, from, to uint64, message string) Breach {
	return Breach{c.writer, c.id, k, from, to, message}
}

// take adds an entry that was not there yet.
func (c *chainOf) take(r Recorded) (out []Breach) {
	n := r.Entry.Sequence
	if _, there := c.entries[n]; there {
		return append(out, c.breach(BreachForked, n, n, "two entries have this number, and are not the same"))
	}
	if n < c.last {
		out = append(out, c.breach(BreachReordered, n, n, fmt.Sprintf("it came after number %d", c.last)))
	}
	c.entries[n], c.last = r, max(c.last, n)
	if r.Entry.What == interpret.AuditLoss {
		c.told = append(c.told, *r.Entry)
	}
	return out
}

// check looks at a chain as a whole.
func (c *chainOf) check(whole bool) (out []Breach) {
	numbers := slices.Sorted(maps.Keys(c.entries))
	next := uint64(1)
	if !whole {
		next = numbers[0]
	}
	for _, n := range numbers {
		if n > next {
			out = append(out, c.hole(next, n-1)...)
		}
		e, before := c.entries[n].Entry, c.entries[n-1]
		if before.Entry != nil && e.Previous != before.digest || n == 1 && e.Previous != "" && !c.control {
			out = append(out, c.breach(BreachRewritten, n-1, n, "the later one does not follow the earlier one: one of them is not the one that was written"))
		}
		next = n + 1
	}
	for _, e := range c.told {
		if e.LostTo == 0 {
			out = append(out, c.breach(BreachLost, 0, 0, fmt.Sprintf("%d entries could not be written before number %d", e.Lost, e.Sequence)))
		}
	}
	return out
}

// hole says of entries that are not there whether somebody told of them.
func (c *chainOf) hole(from, to uint64) (out []Breach) {
	for from <= to {
		end, kind, message := to, BreachMissing, "nobody says why they are not there"
		for _, e := range c.told {
			switch {
			case e.LostFrom <= from && from <= e.LostTo:
				if kind == BreachMissing {
					end = from
				}
				kind, message = BreachLost, "the device says that it lost them: it was away for too long"
				end = max(end, min(to, e.LostTo))
			case kind == BreachMissing && e.LostFrom > from && e.LostFrom <= end:
				end = e.LostFrom - 1
			}
		}
		out = append(out, c.breach(kind, from, end, message))
		from = end + 1
	}
	return out
}
