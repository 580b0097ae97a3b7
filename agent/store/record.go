package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
)

// record is one change of the books, and the unit of journals and snapshots.
type record struct {
	kind     byte
	seq      uint64
	entry    Entry  // begin, put, open
	resource string // end, release
	verb     string // begin, open
	flags    byte   // end, mark, open
	number   uint64 // end: last changed; mark: generation; open: seq of its begin; good: of its copy, 0 when there is none
	triggers string // end
	name     string // mark, note, good
	digest   string // mark
	value    string // note, "" when it is deleted
	previous *Entry // open
}

// Kinds of records. A new kind or a new field needs a new format version, and
// what earlier versions wrote stays readable.
const (
	kindBegin   = 'B'
	kindEnd     = 'E'
	kindPut     = 'P'
	kindRelease = 'R'
	kindMark    = 'M'
	kindNote    = 'N' // since version 2
	kindGood    = 'G' // since version 2
	kindOpen    = 'O' // in snapshots, beside the entry: an action that was open
	kindBatch   = 'X' // records that are durable together or not at all
)

const (
	flagRevert  = 1 << iota // end
	flagRelease             // end
	flagHeld                // mark: its envelope is kept
	flagOwned               // open: it has a previous entry
)

var errRecord = errors.New("unknown record")

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendEntry(b []byte, e *Entry) []byte {
	b = appendText(b, e.Resource)
	b = appendText(b, e.Manifest)
	b = appendText(b, e.Score)
	b = appendText(b, e.Kind)
	b = appendText(b, string(e.Provenance))
	b = binary.AppendUvarint(b, e.Generation)
	b = binary.AppendUvarint(b, e.LastChanged)
	b = binary.AppendUvarint(b, e.Order)
	b = appendText(b, e.SpecDigest)
	b = appendText(b, e.Backup)
	b = appendText(b, e.Triggers)
	b = binary.AppendUvarint(b, e.Applied)
	b = appendText(b, e.Authority)
	b = binary.AppendUvarint(b, uint64(len(e.Spec)))
	return append(b, e.Spec...)
}

// appendPayload appends what follows the head of a frame.
func (r *record) appendPayload(b []byte) []byte {
	b = append(b, r.kind)
	switch r.kind {
	case kindBegin:
		b = appendText(b, r.verb)
		b = appendEntry(b, &r.entry)
	case kindPut:
		b = appendEntry(b, &r.entry)
	case kindEnd:
		b = append(b, r.flags)
		b = binary.AppendUvarint(b, r.number)
		b = appendText(b, r.resource)
		b = appendText(b, r.triggers)
	case kindRelease:
		b = appendText(b, r.resource)
	case kindMark:
		b = append(b, r.flags)
		b = binary.AppendUvarint(b, r.number)
		b = appendText(b, r.name)
		b = appendText(b, r.digest)
	case kindNote:
		b = appendText(b, r.name)
		b = appendText(b, r.value)
	case kindGood:
		b = binary.AppendUvarint(b, r.number)
		b = appendText(b, r.name)
	case kindOpen:
		b = append(b, r.flags)
		b = binary.AppendUvarint(b, r.number)
		b = appendText(b, r.verb)
		b = appendEntry(b, &r.entry)
		if r.previous != nil {
			b = appendEntry(b, r.previous)
		}
	default:
		panic("store: record without kind")
	}
	return b
}

// reader decodes a payload. Specs share its bytes; short texts that repeat are
// shared through intern.
type reader struct {
	b   []byte
	bad bool
	decoder
}

// decoder is what a file says of all its records, and what they share.
type decoder struct {
	version uint32
	intern  map[string]string
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) number() uint64 {
	n, k := binary.Uvarint(r.b)
	if k <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[k:]
	return n
}

func (r *reader) bytes() []byte {
	n := r.number()
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) text() string { return string(r.bytes()) }

func (r *reader) shared() string {
	p := r.bytes()
	if s, ok := r.intern[string(p)]; ok {
		return s
	}
	s := string(p)
	if r.intern != nil {
		r.intern[s] = s
	}
	return s
}

func (r *reader) entry(e *Entry) {
	e.Resource = r.text()
	e.Manifest = r.shared()
	e.Score = r.text()
	e.Kind = r.shared()
	e.Provenance = Provenance(r.shared())
	e.Generation = r.number()
	e.LastChanged = r.number()
	e.Order = r.number()
	e.SpecDigest = r.text()
	e.Backup = r.text()
	e.Triggers = r.text()
	e.Applied = r.number()
	if r.version >= 2 {
		e.Authority = r.shared()
	}
	if p := r.bytes(); len(p) > 0 {
		e.Spec = json.RawMessage(p)
	}
	if e.Resource == "" {
		r.bad = true
	}
}

// record reads the payload of one frame. Its checksum was right, so an error
// means that another version wrote it.
func (d decoder) record(seq uint64, payload []byte) (record, error) {
	r := reader{b: payload, decoder: d}
	rec := record{kind: r.byte(), seq: seq}
	switch rec.kind {
	case kindBegin:
		rec.verb = r.shared()
		r.entry(&rec.entry)
	case kindPut:
		r.entry(&rec.entry)
	case kindEnd:
		rec.flags, rec.number, rec.resource, rec.triggers = r.byte(), r.number(), r.text(), r.text()
	case kindRelease:
		rec.resource = r.text()
	case kindMark:
		rec.flags, rec.number, rec.name, rec.digest = r.byte(), r.number(), r.text(), r.text()
	case kindNote:
		rec.name, rec.value = r.text(), r.text()
		r.bad = r.bad || r.version < 2
	case kindGood:
		rec.number, rec.name = r.number(), r.text()
		r.bad = r.bad || r.version < 2
	case kindOpen:
		rec.flags, rec.number, rec.verb = r.byte(), r.number(), r.shared()
		r.entry(&rec.entry)
		if rec.flags&flagOwned != 0 {
			rec.previous = new(Entry)
			r.entry(rec.previous)
		}
	default:
		return record{}, errRecord
	}
	if r.bad || len(r.b) > 0 {
		return record{}, errRecord
	}
	return rec, nil
}
