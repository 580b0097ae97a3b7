package store

import (
	"encoding/binary"
	"fmt"
	"net/url"
)

const goodFolder = "good"

// Good is the last version of a manifest that became ready.
type Good struct {
	Generation uint64 // that it came with
	Digest     string // of the content; tells versions apart
	Body       []byte // the manifest
}

// goodCopy is the copy of a good version to read.
type goodCopy struct {
	seq    uint64 // number of the last write
	slot   int
	digest string // "" when it turned out to be damaged
}

func goodFile(manifest string, slot int) string {
	return fmt.Sprintf("%s/%s.%d", goodFolder, url.PathEscape(manifest), slot)
}

// KeepGood makes v the good version of a manifest. It is durable when it
// returns nil, and the one before is kept, for when this one gets damaged. The
// same digest is not written again, whatever generation it comes with.
func (s *Store) KeepGood(manifest string, v Good) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if manifest == "" || v.Digest == "" || len(url.PathEscape(manifest)) > 200 {
		return fmt.Errorf("cannot keep a good version of manifest %q with digest %q: name or digest is missing or too long", manifest, v.Digest)
	}
	// What was lost behind an older copy of the same content is written again.
	is := func(held goodCopy) bool { return held.digest == v.Digest && held.seq >= s.kept[manifest] }
	if is(s.goods[manifest]) && !s.unsettled {
		return nil
	}
	if err := s.ready(); err != nil {
		return err
	}
	held, have := s.goods[manifest] // looked at again: a removed directory is noticed by now
	if is(held) {
		return nil
	}
	next := goodCopy{max(held.seq, s.kept[manifest]) + 1, 0, v.Digest}
	if have {
		next.slot = 1 - held.slot
	}
	if err := s.fs.Replace(File{goodFile(manifest, next.slot), v.encode(manifest, next.seq)}); err != nil {
		return fmt.Errorf("cannot keep the good version of manifest %s: %w", manifest, err)
	}
	if err := s.write(record{kind: kindGood, name: manifest, number: next.seq}); err != nil {
		return err
	}
	s.goods[manifest] = next
	return nil
}

// Good reads the good version of a manifest from disk. It is the one before the
// last when the last one is damaged; its digest tells. False means that none was
// kept, or none is left.
func (s *Store) Good(manifest string) (Good, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, ok := s.goods[manifest]
	if !ok {
		return Good{}, false, nil
	}
	gone := true
	for _, slot := range []int{held.slot, 1 - held.slot} {
		p, err := s.read(goodFile(manifest, slot), roleGood, -1)
		if err != nil {
			return Good{}, false, fmt.Errorf("cannot read the good version of manifest %s: %w", manifest, err)
		}
		if g, ok := p.good(manifest); ok {
			s.goods[manifest] = goodCopy{held.seq, slot, g.Digest}
			return g, true, nil
		}
		gone = gone && p.cond == absent
	}
	held.digest = "" // to be written again
	s.goods[manifest] = held
	if gone {
		return Good{}, false, nil
	}
	return Good{}, false, fmt.Errorf("cannot read the good version of manifest %s: %w", manifest, ErrDamaged)
}

// Goods returns the manifests that have a good version, sorted.
func (s *Store) Goods() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sortedKeys(s.goods)
}

// DropGood forgets the good version of a manifest that is not there any more.
func (s *Store) DropGood(manifest string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, have := s.goods[manifest]
	if !have && s.kept[manifest] == 0 && !s.unsettled {
		return nil
	}
	if s.kept[manifest] > 0 {
		if err := s.write(record{kind: kindGood, name: manifest}); err != nil {
			return err
		}
	} else if err := s.ready(); err != nil {
		return err
	}
	// The one before goes first and for good, or it would be the last one after a
	// power cut.
	for _, slot := range []int{1 - held.slot, held.slot} {
		if err := s.remove(goodFile(manifest, slot)); err != nil {
			return fmt.Errorf("cannot remove the good version of manifest %s: %w", manifest, err)
		}
	}
	delete(s.goods, manifest)
	return nil
}

func (v Good) encode(manifest string, seq uint64) []byte {
	b := make([]byte, headSize, headSize+len(manifest)+len(v.Digest)+len(v.Body)+30)
	b = appendText(b, manifest)
	b = appendText(b, v.Digest)
	b = binary.AppendUvarint(b, v.Generation)
	b = append(b, v.Body...)
	head{role: roleGood, seq: seq}.seal(b)
	return b
}

// good decodes a part that was read in full.
func (p part) good(manifest string) (Good, bool) {
	if p.cond != sound {
		return Good{}, false
	}
	r := reader{b: p.body}
	name := r.text()
	v := Good{Digest: r.text(), Generation: r.number()}
	v.Body = r.b[:len(r.b):len(r.b)]
	return v, !r.bad && name == manifest && v.Digest != ""
}

// loadGoods finds out which copies are whole.
func (s *Store) loadGoods(rec *Recovered) error {
	names, err := s.copied(goodFolder)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, name := range names {
		seen[name] = true
		if err := s.loadGood(rec, name); err != nil {
			return err
		}
	}
	for _, manifest := range sortedKeys(s.kept) {
		if !seen[manifest] {
			s.found(rec, Finding{goodFolder + "/" + url.PathEscape(manifest), CodeMissing, true, "the good version is missing"})
		}
	}
	return nil
}

func (s *Store) loadGood(rec *Recovered, manifest string) error {
	var bad []part
	for slot := range 2 {
		p, err := s.read(goodFile(manifest, slot), roleGood, -1)
		if err != nil {
			return err
		}
		if v, ok := p.good(manifest); ok {
			if held, have := s.goods[manifest]; !have || p.head.seq > held.seq {
				s.goods[manifest] = goodCopy{p.head.seq, slot, v.Digest}
			}
		} else if p.cond != absent {
			bad = append(bad, p)
		}
	}
	// Whether the last one is lost can be told only where the ledger knows it.
	held, kept := s.goods[manifest], s.kept[manifest]
	last := kept > 0 && held.seq >= kept
	for _, p := range bad {
		if p.cond == newer {
			rec.Newer = true
			s.found(rec, Finding{p.name, CodeNewer, true, "written by a newer version; nothing is altered"})
			continue
		}
		if p.why == "" {
			p.why = "is not one of this manifest"
		}
		s.found(rec, Finding{p.name, CodeDamaged, !last, "the good version " + p.why})
	}
	if len(bad) == 0 && held.seq < kept {
		s.found(rec, Finding{goodFile(manifest, 1-held.slot), CodeMissing, true, "the good version is missing, the one before is used"})
	}
	return nil
}
