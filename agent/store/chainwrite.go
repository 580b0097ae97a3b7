package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
)

// chained puts what waits, and what is released, in front of groups of records, as one of its own. next is the chain when
// they are durable.
func (s *Store) chained(groups [][]record) (all [][]record, next chain) {
	next = s.chain
	if next.scribe == nil {
		return groups, next
	}
	w := chainWriter{chain: &next, notes: map[string]string{}}
	for len(next.queue) > 0 && next.queue[0].number <= next.got {
		w.drop()
	}
	w.tell()
	for _, l := range next.wait {
		if !w.add(l.Entry) {
			next.failed++
			w.tell()
			continue
		}
		maps.Copy(w.notes, l.Notes)
	}
	next.wait = nil
	if len(w.notes) == 0 {
		return groups, next
	}
	w.notes[noteChain] = next.String()
	return append([][]record{s.noteRecords(w.notes, 0)}, groups...), next
}

// A chainWriter makes the next chain, and the notes that say it.
type chainWriter struct {
	*chain
	notes map[string]string
}

// drop takes the oldest out of the queue.
func (w *chainWriter) drop() queued {
	q := w.queue[0]
	w.queue, w.size = w.queue[1:], w.size-q.size
	w.notes[entryNote(q.number)] = ""
	return q
}

// add puts an entry at the end, if it can be made.
func (w *chainWriter) add(entry func(Place) []byte) bool {
	if len(w.queue) >= maxQueued || w.size >= maxQueuedMem {
		w.makeRoom()
	}
	return w.put(entry)
}

func (w *chainWriter) put(entry func(Place) []byte) bool {
	b := entry(Place{w.id, w.sequence + 1, w.previous})
	if len(b) == 0 || len(b) > maxNoteValue {
		return false
	}
	sum := sha256.Sum256(b)
	w.sequence, w.previous = w.sequence+1, hex.EncodeToString(sum[:])
	w.queue, w.size = append(w.queue, queued{w.number(), len(b)}), w.size+len(b)
	w.notes[entryNote(w.number())] = string(b)
	return true
}

// makeRoom gives up the oldest quarter of the queue, and says so: one entry for each that is lost would be no help.
func (w *chainWriter) makeRoom() {
	var l Gap
	for range max(len(w.queue)/4, 1) {
		q := w.drop()
		l.Count++
		if q.number > w.base { // else it is of the chain before
			l.To = q.number - w.base
			l.From = cmp.Or(l.From, l.To)
		}
	}
	w.losing(l)
}

// tell says that entries could not be written.
func (w *chainWriter) tell() {
	if n := w.failed; n > 0 && w.sequence > 0 { // a chain begins with its beginning
		w.failed = 0
		w.losing(Gap{Count: n})
	}
}

// losing writes what was lost. What an entry told that nobody has got is told again, as that entry may get lost, too.
func (w *chainWriter) losing(l Gap) {
	w.lost += l.Count
	if w.lossAt > w.got {
		l.Count += w.loss.Count
		if w.loss.To > 0 {
			l.From, l.To = w.loss.From, max(l.To, w.loss.To)
		}
	}
	if w.put(func(p Place) []byte { return w.scribe.Gap(p, l) }) {
		w.loss, w.lossAt = l, w.number()
	}
}
