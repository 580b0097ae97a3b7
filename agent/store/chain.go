package store

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The audit of a device is a chain of entries: each has the number after the one before, and the sha256 of its bytes. The
// entries that the fleet has not got yet are a bounded queue. All of it is in notes, so that an entry comes with the next
// write of the books for nothing, and is there after a power cut if what it speaks of is.
const (
	noteChain = "audit/chain" // where the chain ends
	noteEntry = "audit/entry/"
)

// Bounds of the queue, and of what waits to be written.
const (
	maxQueued    = 2000
	maxQueuedMem = 2 << 20
	maxUnwritten = 500
	keepReleased = 128 << 10 // bytes that the fleet has got and that may wait for the next write to be forgotten
)

// A Place is where an entry stands in its chain.
type Place struct {
	Chain    string
	Sequence uint64 // from 1 on
	Previous string // sha256 of the entry before, in hex; the first has none
}

// A Line is an entry that is to be written.
type Line struct {
	// Notes are set together with it. A line whose notes say all that already is not written.
	Notes map[string]string
	// Entry makes its bytes, 1 to 4096 of them. It may be called more than once: a place is its own only when it is durable.
	Entry func(Place) []byte
}

// A Gap is how many entries are missing, and the numbers of the first and the last of those that had one.
type Gap struct{ Count, From, To uint64 }

// A Scribe writes what a chain says of itself.
type Scribe struct {
	// Begin is the first entry. Lost says that there was a chain before it, and that its end is not known any more.
	Begin func(p Place, lost bool) []byte
	Gap   func(p Place, g Gap) []byte
}

// Queued is an entry that the fleet has not got yet.
type Queued struct {
	Number uint64 // for [Store.Acknowledge]
	Entry  []byte
}

// chain is the audit in memory. Its entries are in the notes.
type chain struct {
	chainHead
	scribe *Scribe // nil: nobody keeps an audit
	queue  []queued
	size   int    // bytes of the queue
	got    uint64 // number up to which the fleet has them
	wait   []Line // to be written with the next change
	failed uint64 // entries that could not be written, and are not told of yet
}

type queued struct {
	number uint64
	size   int
}

// chainHead is what the note of the chain says.
type chainHead struct {
	id       string
	sequence uint64 // of the last entry
	previous string // its sha256
	base     uint64 // number in the queue of what came before the first entry
	loss     Gap    // that the last such entry tells
	lossAt   uint64 // its number in the queue
	lost     uint64 // entries in all
}

func (h chainHead) number() uint64 { return h.base + h.sequence }

func (h chainHead) String() string {
	return fmt.Sprintf("%s %d %s %d %d %d %d %d %d", h.id, h.sequence, cmp.Or(h.previous, "-"), h.base, h.loss.Count, h.loss.From, h.loss.To, h.lossAt, h.lost)
}

func readChainHead(text string) (h chainHead, ok bool) {
	f := strings.Fields(text)
	if len(f) != 9 || len(f[0]) > 64 || len(f[2]) != 2*sha256.Size {
		return chainHead{}, false
	}
	h.id, h.previous = f[0], f[2]
	for i, to := range map[int]*uint64{1: &h.sequence, 3: &h.base, 4: &h.loss.Count, 5: &h.loss.From, 6: &h.loss.To, 7: &h.lossAt, 8: &h.lost} {
		n, err := strconv.ParseUint(f[i], 10, 63)
		if err != nil {
			return chainHead{}, false
		}
		*to = n
	}
	return h, h.sequence > 0
}

func entryNote(number uint64) string { return fmt.Sprintf("%s%016d", noteEntry, number) }

// unknownEnd stands in the place of a head that may not be the last: what came after it may have been sent.
const unknownEnd = "?"

// loadChain finds the queue in the notes. Books that are not whole do not know where the chain ends.
func (s *Store) loadChain(lost bool) {
	if _, known := s.notes[noteChain]; known && lost {
		s.notes[noteChain] = unknownEnd // and so it is in the next snapshot
	}
	for _, name := range sortedKeys(s.notes) {
		rest, is := strings.CutPrefix(name, noteEntry)
		if n, err := strconv.ParseUint(rest, 10, 63); is && err == nil && entryNote(n) == name {
			s.chain.queue = append(s.chain.queue, queued{n, len(s.notes[name])})
			s.chain.size += len(s.notes[name])
		}
	}
}

// KeepAudit makes w write the audit from now on. A chain begins if there is none, or if it is not known where it ends.
func (s *Store) KeepAudit(w Scribe) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.chain
	text, some := s.notes[noteChain]
	head, ok := readChainHead(text)
	if n := len(c.queue); n > 0 && (!ok || c.queue[n-1].number > head.base && c.queue[n-1].number != head.number()) {
		ok, some = false, true // it does not end where it says
	}
	c.scribe, c.chainHead = &w, head
	if ok {
		return
	}
	c.chainHead = chainHead{id: rand.Text(), lost: head.lost}
	if n := len(c.queue); n > 0 {
		c.base = c.queue[n-1].number
	}
	c.wait = slices.Insert(c.wait, 0, Line{Entry: func(p Place) []byte { return w.Begin(p, some) }})
}

// Audit adds entries. They are durable with the next change of the books, or with [Store.FlushAudit]. What finds no room
// before that is counted, and told of as lost.
func (s *Store) Audit(lines ...Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.chain
	for _, l := range lines {
		switch {
		case c.scribe == nil || s.says(l.Notes):
		case len(c.wait) >= maxUnwritten:
			c.failed++
		default:
			c.wait = append(c.wait, l)
		}
	}
}

// says reports whether notes are set already, or are about to be.
func (s *Store) says(notes map[string]string) bool {
	for name, v := range notes {
		have := s.notes[name]
		for _, l := range s.chain.wait {
			if next, is := l.Notes[name]; is {
				have = next
			}
		}
		if have != v {
			return false
		}
	}
	return len(notes) > 0
}

// FlushAudit makes durable what was added. It writes nothing if nothing was.
func (s *Store) FlushAudit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.chain
	released := 0
	for _, q := range c.queue {
		if q.number > c.got {
			break
		}
		released += q.size
	}
	if c.scribe == nil || len(c.wait) == 0 && c.failed == 0 && released <= keepReleased {
		return nil
	}
	if err := s.persist(nil); err != nil {
		return fmt.Errorf("cannot keep the audit: %w", err)
	}
	return nil
}

// Queued returns the oldest entries that the fleet has not got yet: the first, and as many more as fit in limit bytes. Only
// what is durable is among them.
func (s *Store) Queued(limit int) (out []Queued) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.chain.queue {
		if q.number <= s.chain.got {
			continue
		}
		if limit -= q.size; limit < 0 && len(out) > 0 {
			break
		}
		out = append(out, Queued{q.number, []byte(s.notes[entryNote(q.number)])})
	}
	return out
}

// Acknowledge says that the fleet has everything up to a number. It is forgotten with the next change of the books: until
// then a start sends it once more.
func (s *Store) Acknowledge(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chain.got = max(s.chain.got, number)
}

// AuditLost is how many entries were lost, ever, and whether the fleet has not been told of all of them yet.
func (s *Store) AuditLost() (count uint64, untold bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.chain
	return c.lost + c.failed, c.failed > 0 || c.lossAt > c.got
}
