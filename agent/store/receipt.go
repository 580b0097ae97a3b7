package store

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

const (
	receiptFolder = "receipts"
	maxReceipt    = 1 << 20
	keepReceipts  = 200
	ageReceipts   = 30 * 24 * time.Hour
)

// ReceiptFile is the record of one thing that was done, for as long as it is kept.
type ReceiptFile struct {
	ID   string // 1 to 64 of A-Z a-z 0-9 -
	Time time.Time
	Body []byte // up to 1 MiB
}

// ReceiptInfo is one receipt that is kept.
type ReceiptInfo struct {
	ID      string
	Time    time.Time // to the second
	Size    int       // of the body; 0 when it is damaged
	Damaged bool
}

var (
	receiptID   = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	receiptName = regexp.MustCompile(`^(\d{10,18})\.(\d{8}T\d{6}Z)\.([A-Za-z0-9-]{1,64})$`)
)

// receiptRef is what the name of a receipt's file says. Numbers give the order,
// because the clock of a device may be wrong.
type receiptRef struct {
	name string
	seq  uint64
	time time.Time
	id   string
}

// SaveReceipt keeps a receipt, in the place of an earlier one of the same ID. It
// is durable when it returns nil; the same one again is not written. Of all
// receipts the newest 200 are kept, and none for more than 30 days but the newest;
// older ones are removed after the new one is safe.
func (s *Store) SaveReceipt(r ReceiptFile) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !receiptID.MatchString(r.ID) || len(r.Body) > maxReceipt {
		return fmt.Errorf("cannot keep receipt %.80q of %d bytes: an id has 1 to 64 letters, digits and dashes, and a receipt at most %d bytes", r.ID, len(r.Body), maxReceipt)
	}
	if err := s.ready(); err != nil {
		return err
	}
	all, err := s.receiptFiles()
	if err != nil {
		return err
	}
	kept, dropped := s.retained(all)
	next := receiptRef{seq: 1, time: r.Time.UTC(), id: r.ID}
	for _, k := range slices.Concat(kept, dropped) {
		next.seq = max(next.seq, k.seq+1)
		if k.id == r.ID && slices.Contains(kept, k) {
			if have, err := s.readReceipt(k); err == nil && bytes.Equal(have, r.Body) {
				return s.removeReceipts(dropped)
			}
		}
	}
	if y := next.time.Year(); r.Time.IsZero() || y < 1 || y > 9999 {
		next.time = s.now().UTC()
	}
	next.name = fmt.Sprintf("%010d.%s.%s", next.seq, next.time.Format(backupTime), next.id)
	b := make([]byte, headSize, headSize+len(r.ID)+len(r.Body)+10)
	b = append(appendText(b, r.ID), r.Body...)
	head{role: roleReceipt, seq: next.seq}.seal(b)
	if err := s.fs.Replace(File{receiptFolder + "/" + next.name, b}); err != nil {
		s.unsettled = true // it may be in view, and must not be found and trusted
		return fmt.Errorf("cannot keep receipt %s: %w", r.ID, err)
	}
	_, dropped = s.retained(append(all, next))
	return s.removeReceipts(dropped)
}

func (s *Store) removeReceipts(refs []receiptRef) error {
	if len(refs) == 0 {
		return nil
	}
	names := make([]string, len(refs))
	for i, r := range refs {
		names[i] = receiptFolder + "/" + r.name
	}
	if err := s.remove(names...); err != nil {
		return fmt.Errorf("cannot remove old receipts: %w", err)
	}
	return nil
}

// Receipt returns the receipt of an ID. One that is damaged is an error that is
// [ErrDamaged].
func (s *Store) Receipt(id string) ([]byte, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, _, err := s.receipts()
	if err != nil {
		return nil, false, err
	}
	for _, k := range kept {
		if k.id == id {
			body, err := s.readReceipt(k)
			return body, err == nil, err
		}
	}
	return nil, false, nil
}

// Receipts lists what is kept, the newest last. It reads all of them, to tell
// which are damaged.
func (s *Store) Receipts() ([]ReceiptInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, _, err := s.receipts()
	if err != nil {
		return nil, err
	}
	out := make([]ReceiptInfo, len(kept))
	for i, k := range kept {
		body, err := s.readReceipt(k)
		out[i] = ReceiptInfo{k.id, k.time, len(body), err != nil}
	}
	return out, nil
}

// receipts lists the folder, oldest first: what is kept, and what is not any more
// and may be there still.
func (s *Store) receipts() (kept, dropped []receiptRef, err error) {
	all, err := s.receiptFiles()
	kept, dropped = s.retained(all)
	return kept, dropped, err
}

func (s *Store) receiptFiles() ([]receiptRef, error) {
	files, err := s.fs.List(receiptFolder)
	if err != nil {
		return nil, fmt.Errorf("cannot list receipts: %w", err)
	}
	all := make([]receiptRef, 0, len(files)+1)
	for _, file := range files {
		m := receiptName.FindStringSubmatch(file)
		if m == nil {
			continue
		}
		seq, err := strconv.ParseUint(m[1], 10, 64)
		at, terr := time.Parse(backupTime, m[2])
		if err == nil && terr == nil {
			all = append(all, receiptRef{file, seq, at, m[3]})
		}
	}
	return all, nil
}

// retained splits what is in the folder, and puts it in order.
func (s *Store) retained(all []receiptRef) (kept, dropped []receiptRef) {
	slices.SortFunc(all, func(a, b receiptRef) int { return cmp.Or(cmp.Compare(b.seq, a.seq), cmp.Compare(b.name, a.name)) })
	seen := map[string]bool{}
	oldest := s.now().Add(-ageReceipts)
	for i, r := range all {
		if seen[r.id] || i > 0 && (len(kept) >= s.keepReceipts || r.time.Before(oldest)) {
			dropped = append(dropped, r)
			continue
		}
		seen[r.id] = true
		kept = append(kept, r)
	}
	slices.Reverse(kept)
	slices.Reverse(dropped)
	return kept, dropped
}

func (s *Store) readReceipt(ref receiptRef) ([]byte, error) {
	p, err := s.read(receiptFolder+"/"+ref.name, roleReceipt, -1)
	if err != nil {
		return nil, fmt.Errorf("cannot read receipt %s: %w", ref.id, err)
	}
	if p.cond == newer {
		return nil, fmt.Errorf("cannot read receipt %s: %w", ref.id, ErrNewer)
	}
	r := reader{b: p.body}
	if p.cond != sound || r.text() != ref.id || r.bad || p.head.seq != ref.seq {
		return nil, fmt.Errorf("cannot read receipt %s: it is %w", ref.id, ErrDamaged)
	}
	return r.b, nil
}
