package store

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

const intentFolder = "intent"

// Intent is a signed envelope as it was received, under the name of what it
// is for: the device's own document, or one class manifest.
type Intent struct {
	Name       string
	Generation uint64
	Digest     string // of the content; tells two contents of one generation apart
	Envelope   []byte
}

// mark is the highest generation ever accepted under a name. It is kept in the
// ledger, apart from the envelope, so that either survives the loss of the
// other; the higher of the two counts.
type mark struct {
	generation uint64
	digest     string
	held       bool // the envelope is kept
}

func (m mark) record(name string) *record {
	r := &record{kind: kindMark, number: m.generation, name: name, digest: m.digest}
	if m.held {
		r.flags = flagHeld
	}
	return r
}

// intact is an envelope that is whole on disk.
type intact struct {
	generation uint64
	slot       int
}

func intentFile(name string, slot int) string {
	return fmt.Sprintf("%s/%s.%d", intentFolder, url.PathEscape(name), slot)
}

// Accept makes an envelope the last accepted one of its name: the envelope and
// its generation are durable when it returns nil. The one before is kept, for
// when this one gets damaged.
//
// A lower generation than ever accepted is refused with [ErrRegressed], the
// same one with another digest with [ErrEquivocation]. The same one with the
// same digest is not written again, unless the copy on disk is damaged.
func (s *Store) Accept(in Intent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	refuse := func(err error) error {
		return fmt.Errorf("cannot accept generation %d of %s: %w", in.Generation, in.Name, err)
	}
	if in.Name == "" || in.Digest == "" || len(url.PathEscape(in.Name)) > 200 {
		return fmt.Errorf("cannot accept an envelope named %q with digest %q: name or digest is missing or too long", in.Name, in.Digest)
	}
	m, known := s.marks[in.Name]
	held, safe := s.intents[in.Name]
	switch {
	case known && in.Generation < m.generation:
		return refuse(fmt.Errorf("%w: %d was accepted before", ErrRegressed, m.generation))
	case known && in.Generation == m.generation && in.Digest != m.digest:
		return refuse(ErrEquivocation)
	case known && in.Generation == m.generation && m.held && safe && held.generation == in.Generation:
		return nil
	}
	// The books must exist before the first envelope does, or a power cut
	// between the two would look like the loss of the books.
	if err := s.ready(); err != nil {
		return err
	}
	slot := 0
	if held, safe := s.intents[in.Name]; safe {
		slot = 1 - held.slot
	}
	if err := s.fs.Replace(File{intentFile(in.Name, slot), in.encode()}); err != nil {
		return fmt.Errorf("cannot keep the envelope of %s: %w", in.Name, err)
	}
	if next := (mark{in.Generation, in.Digest, true}); !known || next != m {
		if err := s.write(*next.record(in.Name)); err != nil {
			return err
		}
	}
	s.intents[in.Name] = intact{in.Generation, slot}
	return nil
}

// Mark returns the highest generation ever accepted under a name.
func (s *Store) Mark(name string) (generation uint64, digest string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.marks[name]
	return m.generation, m.digest, ok
}

// Accepted lists the names under which anything was ever accepted.
func (s *Store) Accepted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := sortedKeys(s.marks)
	for name := range s.intents { // whose mark was lost
		if _, marked := s.marks[name]; !marked {
			names = append(names, name)
		}
	}
	return names
}

// Intent reads the last accepted envelope of a name from disk. Its generation
// is below that of [Store.Mark] when the last one was damaged and the one
// before is given instead. False means that none is readable, which with a
// mark is a loss, and not an empty intent.
func (s *Store) Intent(name string) (Intent, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, ok := s.intents[name]
	if !ok {
		return Intent{}, false, nil
	}
	p, err := s.read(intentFile(name, held.slot), roleIntent, -1)
	if err != nil {
		return Intent{}, false, fmt.Errorf("cannot read the envelope of %s: %w", name, err)
	}
	in, ok := p.intent()
	if !ok || in.Name != name || in.Generation != held.generation {
		delete(s.intents, name)
		return Intent{}, false, fmt.Errorf("cannot read the envelope of %s: %w", name, ErrDamaged)
	}
	return in, true, nil
}

// Forget drops the envelopes of a name that is not followed any more. The mark
// stays, so that an old generation is still refused should it come back.
func (s *Store) Forget(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.marks[name]
	if !ok || !m.held {
		return nil
	}
	m.held = false
	if err := s.write(*m.record(name)); err != nil {
		return err
	}
	delete(s.intents, name)
	if err := s.fs.Remove(intentFile(name, 0), intentFile(name, 1)); err != nil {
		return fmt.Errorf("cannot remove the envelope of %s: %w", name, err)
	}
	return nil
}

func (in Intent) encode() []byte {
	b := make([]byte, headSize, headSize+len(in.Name)+len(in.Digest)+len(in.Envelope)+20)
	b = appendText(b, in.Name)
	b = appendText(b, in.Digest)
	b = append(b, in.Envelope...)
	head{role: roleIntent, seq: in.Generation}.seal(b)
	return b
}

// intent decodes a part that was read in full.
func (p part) intent() (Intent, bool) {
	if p.cond != sound {
		return Intent{}, false
	}
	r := reader{b: p.body}
	in := Intent{Name: r.text(), Digest: r.text(), Generation: p.head.seq}
	in.Envelope = r.b[:len(r.b):len(r.b)]
	return in, !r.bad && in.Name != "" && in.Digest != ""
}

// copied lists the names in a folder whose files are two copies of each: NAME.0 and NAME.1.
func (s *Store) copied(folder string) (names []string, err error) {
	files, err := s.fs.List(folder)
	if err != nil && !unreadable(err) {
		return nil, err
	}
	for _, file := range files {
		escaped, ok := strings.CutSuffix(file, ".0")
		if !ok {
			escaped, ok = strings.CutSuffix(file, ".1")
		}
		name, err := url.PathUnescape(escaped)
		if ok && err == nil && name != "" && !slices.Contains(names, name) && url.PathEscape(name) == escaped {
			names = append(names, name)
		}
	}
	return names, nil
}

// loadIntents reads the envelopes and holds them against the marks.
func (s *Store) loadIntents(rec *Recovered) error {
	names, err := s.copied(intentFolder)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, name := range names {
		seen[name] = true
		if m, known := s.marks[name]; known && !m.held {
			continue // forgotten; the power went before the files did
		}
		if err := s.loadIntent(rec, name); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(s.marks) {
		if s.marks[name].held && !seen[name] {
			s.found(rec, Finding{intentFolder + "/" + url.PathEscape(name), CodeMissing, true, "the last accepted envelope is missing"})
		}
	}
	return nil
}

func (s *Store) loadIntent(rec *Recovered, name string) error {
	var parts [2]part
	for slot := range 2 {
		var err error
		if parts[slot], err = s.read(intentFile(name, slot), roleIntent, headSize); err != nil {
			return err
		}
	}
	// The newer one first; the other only when that one is damaged.
	slot := 0
	if parts[1].cond == sound && (parts[0].cond != sound || parts[1].head.seq > parts[0].head.seq) {
		slot = 1
	}
	m, known := s.marks[name]
	best, ok := Intent{}, false
	for _, i := range []int{slot, 1 - slot} {
		if parts[i].cond != sound || ok {
			continue
		}
		p, err := s.read(parts[i].name, roleIntent, -1)
		if err != nil {
			return err
		}
		if best, ok = p.intent(); ok && best.Name == name && !(known && best.Generation == m.generation && best.Digest != m.digest) {
			slot = i
			continue
		}
		ok = false
		if p.why == "" {
			p.why = "is not the one that was accepted"
		}
		p.cond, parts[i] = broken, p
	}
	// Whether the last one is lost can be told only where the mark is known.
	last := ok && known && best.Generation >= m.generation
	told := false
	for _, p := range parts {
		if p.cond == broken {
			told = true
			s.found(rec, Finding{p.name, CodeDamaged, !last, "the envelope " + p.why})
		}
		if p.cond == newer {
			told, rec.Newer = true, true
			s.found(rec, Finding{p.name, CodeNewer, true, "written by a newer version; nothing is altered"})
		}
	}
	if !told && known && !last {
		s.found(rec, Finding{parts[slot].name, CodeMissing, true, "the last accepted envelope is missing, the one before is used"})
	}
	if !ok {
		return nil
	}
	if !known || best.Generation > m.generation {
		s.marks[name] = mark{best.Generation, best.Digest, true}
	}
	s.intents[name] = intact{best.Generation, slot}
	rec.Intents = append(rec.Intents, best)
	return nil
}
