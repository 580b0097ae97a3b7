package store

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func receiptIDs(t *testing.T, s *Store) string {
	t.Helper()
	list, err := s.Receipts()
	must(t, err)
	var ids []string
	for _, r := range list {
		ids = append(ids, r.ID)
		if r.Damaged {
			ids = append(ids, "(damaged)")
		}
	}
	return strings.Join(ids, " ")
}

func TestReceipts(t *testing.T) { // G40
	onBoth(t, func(t *testing.T, fs FS) {
		s, _ := mustOpen(t, fs)
		must(t, s.SaveReceipt(ReceiptFile{"b", clock, []byte("one")}))
		must(t, s.SaveReceipt(ReceiptFile{"a", clock.Add(-time.Hour), []byte("two")})) // the clock was put back
		must(t, s.SaveReceipt(ReceiptFile{ID: "C-3", Body: nil}))
		s = reopen(t, s)
		if got := receiptIDs(t, s); got != "b a C-3" {
			t.Errorf("receipts %s", got)
		}
		must(t, s.SaveReceipt(ReceiptFile{"b", clock, []byte("three")}))
		s = reopen(t, s)
		if got := receiptIDs(t, s); got != "a C-3 b" {
			t.Errorf("after b came again: %s", got)
		}
		if body, ok, err := s.Receipt("b"); string(body) != "three" || !ok || err != nil {
			t.Errorf("b is %q %v %v", body, ok, err)
		}
		list, err := s.Receipts()
		must(t, err)
		if r := list[0]; !r.Time.Equal(clock.Add(-time.Hour)) || r.Size != 3 || !list[1].Time.Equal(clock) {
			t.Errorf("list %+v", list)
		}
		files, err := fs.List(receiptFolder)
		if err != nil || len(files) != 3 {
			t.Errorf("files %v %v", files, err)
		}
		for _, id := range []string{"", "nothing", "../ledger.0", "a b"} {
			if body, ok, err := s.Receipt(id); ok || body != nil || err != nil {
				t.Errorf("receipt %q: %q %v %v", id, body, ok, err)
			}
		}
	})
}

func TestReceiptThatIsRefused(t *testing.T) {
	m := NewMem()
	s, _ := mustOpen(t, m)
	for _, r := range []ReceiptFile{
		{ID: ""}, {ID: "../x"}, {ID: "a/b"}, {ID: "a.b"}, {ID: "ü"}, {ID: "a\n"}, {ID: strings.Repeat("a", 65)},
		{ID: "large", Body: make([]byte, 1<<20+1)},
	} {
		if err := s.SaveReceipt(r); err == nil || !strings.HasPrefix(err.Error(), "cannot keep receipt ") {
			t.Errorf("%q: %v", r.ID, err)
		}
	}
	if m.Stats().Steps > 0 {
		t.Error("a refusal wrote")
	}
}

// The newest 200 are kept, for 30 days, and the newest for ever; times that no
// name can hold are those of the device.
func TestRetentionOfReceipts(t *testing.T) {
	m := NewMem()
	now := clock
	s, _, err := Open(m, Options{Now: func() time.Time { return now }})
	must(t, err)
	for i := range 205 {
		must(t, s.SaveReceipt(ReceiptFile{fmt.Sprint("r", i), now, nil}))
	}
	files, err := m.List(receiptFolder)
	must(t, err)
	list, err := s.Receipts()
	must(t, err)
	if len(files) != 200 || len(list) != 200 || list[0].ID != "r5" || list[199].ID != "r204" {
		t.Errorf("%d files, %d receipts, the first %+v", len(files), len(list), list[0])
	}
	now = now.AddDate(0, 0, 31)
	if got := receiptIDs(t, s); got != "r204" {
		t.Errorf("after 31 days: %s", got)
	}
	must(t, s.SaveReceipt(ReceiptFile{"next", time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC), nil}))
	files, err = m.List(receiptFolder)
	must(t, err)
	if len(files) != 1 || files[0] != "0000000206.20261230T183000Z.next" {
		t.Errorf("files %v", files)
	}
	must(t, s.Close())
}

// Old ones go only after the new one is safe, and a cut between them shows as if
// they had gone.
func TestPruningReceiptsLosesNone(t *testing.T) {
	for stop := 0; ; stop++ {
		m := NewMem()
		s, _ := openMem(t, m) // keeps 3
		for _, id := range []string{"a", "b", "c"} {
			must(t, s.SaveReceipt(ReceiptFile{id, clock, []byte(id)}))
		}
		from := m.Stats().Steps
		m.Fault = func(st Step) error {
			if st.Op != "read" && st.N > from+stop {
				return ErrStopped
			}
			return nil
		}
		done := s.SaveReceipt(ReceiptFile{"d", clock, []byte("d")}) == nil
		for loss := range losses {
			after, _ := openMem(t, m.Crash(loss))
			if got := receiptIDs(t, after); got != "b c d" && (done || got != "a b c") {
				t.Fatalf("step %d, loss %d: %s", stop, loss, got)
			}
		}
		if done {
			return
		}
	}
}

// Whatever a file of a receipt holds, Open does not care, the others are as they
// were, and this one is what it was or damaged.
func TestEveryDamageOfAReceipt(t *testing.T) { // cases 123
	m := NewMem()
	s, _ := openMem(t, m)
	must(t, s.SaveReceipt(ReceiptFile{"one", clock, []byte("the first body")}))
	must(t, s.SaveReceipt(ReceiptFile{"two", clock, []byte("the second body")}))
	must(t, s.Close())
	files := m.Files()
	const name = "receipts/0000000001.20261129T183000Z.one"
	kinds := damages(name, files[name])
	kinds["newer"] = newerFormat(files[name])
	kinds["another one"] = files["receipts/0000000002.20261129T183000Z.two"]
	kinds["another one under this number"] = bytes.Clone(kinds["another one"])
	head{role: roleReceipt, seq: 1}.seal(kinds["another one under this number"])
	kinds["this one under another number"] = bytes.Clone(files[name])
	head{role: roleReceipt, seq: 2}.seal(kinds["this one under another number"])
	for kind, damaged := range kinds {
		m := memOf(files)
		m.Put(name, damaged)
		s, rec := openMem(t, m)
		if len(rec.Findings) > 0 {
			t.Errorf("%s: findings %v", kind, rec.Findings)
		}
		want := "one (damaged) two"
		if damaged == nil {
			want = "two"
		}
		if got := receiptIDs(t, s); got != want {
			t.Errorf("%s: %s", kind, got)
		}
		body, ok, err := s.Receipt("one")
		if ok || body != nil || (err == nil) != (damaged == nil) || kind == "newer" && !errors.Is(err, ErrNewer) {
			t.Errorf("%s: %q %v %v", kind, body, ok, err)
		}
		if body, ok, err := s.Receipt("two"); string(body) != "the second body" || !ok || err != nil {
			t.Errorf("%s: the other one: %q %v %v", kind, body, ok, err)
		}
		must(t, s.SaveReceipt(ReceiptFile{"one", clock, []byte("again")}))
		if body, ok, err := s.Receipt("one"); string(body) != "again" || !ok || err != nil {
			t.Errorf("%s: again: %q %v %v", kind, body, ok, err)
		}
	}
}

// Files that are not receipts are neither listed nor removed.
func TestForeignFilesAmongReceipts(t *testing.T) {
	m := NewMem()
	s, _ := openMem(t, m)
	foreign := []string{"receipts/notes.txt", "receipts/0000000001.20269929T183000Z.a", "receipts/99999999999999999999.20261129T183000Z.a", "receipts/1.20261129T183000Z.a"}
	for _, name := range foreign {
		m.Put(name, []byte("x"))
	}
	for i := range 6 {
		must(t, s.SaveReceipt(ReceiptFile{fmt.Sprint("r", i), clock, nil}))
	}
	if got := receiptIDs(t, s); got != "r3 r4 r5" {
		t.Errorf("receipts %s", got)
	}
	for _, name := range foreign {
		if m.Files()[name] == nil {
			t.Errorf("%s was removed", name)
		}
	}
}
