package store

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// fuzzOpen opens a directory with one file of outside bytes among good ones.
// It must not panic, fail, or allocate far beyond what it reads, and what it
// told must be the same after it was written and read again.
func fuzzOpen(f *testing.F, name string) {
	files, _ := lived(f, script())
	f.Add(files[name])
	f.Add(files[name][:len(files[name])/2])
	f.Add(files[name][:headSize])
	f.Add([]byte{})
	f.Add(append(append([]byte{}, files[name][:headSize]...), marker+marker+"\x00\x00\x00\x00\xff\xff\xff\xff"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if b == nil {
			b = []byte{}
		}
		m := memOf(files)
		m.Put(name, b)
		var s *Store
		var rec Recovered
		var err error
		if n := allocated(func() { s, rec, err = Open(m, crashOptions()) }); n > 200_000+100*uint64(len(b)) {
			t.Fatalf("allocated %d bytes for %d", n, len(b))
		}
		if err != nil {
			t.Fatal(err)
		}
		got := view(t, s)
		if err := s.Repair(); rec.Newer != errors.Is(err, ErrNewer) || err != nil && !rec.Newer {
			t.Fatalf("repair: %v", err)
		}
		if rec.Newer {
			return
		}
		again, _ := openMem(t, m.Crash(LoseAll))
		if told := view(t, again); told != got {
			t.Fatalf("told\n%s\nand after repair\n%s", got, told)
		}
	})
}

func FuzzOpenJournal(f *testing.F) { fuzzOpen(f, "journal.0") }
func FuzzOpenLedger(f *testing.F)  { fuzzOpen(f, "ledger.0") }
func FuzzOpenIntent(f *testing.F)  { fuzzOpen(f, "intent/d.0") }
func FuzzOpenGood(f *testing.F)    { fuzzOpen(f, "good/m.0") }

// FuzzReceipt reads a receipt of outside bytes, as they are and under a right
// head: it is not there, damaged, or whole, and never another one's.
func FuzzReceipt(f *testing.F) {
	const name = "receipts/0000000001.20261129T183000Z.op-1"
	m := NewMem()
	s, _, err := Open(m, options())
	must(f, err)
	must(f, s.SaveReceipt(ReceiptFile{"op-1", clock, []byte("body")}))
	whole := m.Files()[name]
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(whole[headSize:])
	f.Add([]byte("\x05op-12body"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		sealed := append(make([]byte, headSize), b...)
		head{role: roleReceipt, seq: 1}.seal(sealed)
		for _, file := range [][]byte{append([]byte{}, b...), sealed} {
			m := memOf(nil)
			m.Put(name, file)
			s, _ := openMem(t, m)
			body, ok, err := s.Receipt("op-1")
			list, lerr := s.Receipts()
			if lerr != nil || len(list) != 1 || list[0].Damaged == ok || ok != (err == nil) || !ok && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
				t.Fatalf("%q %v %v, list %+v %v", body, ok, err, list, lerr)
			}
			if ok && !strings.HasSuffix(string(file), "\x04op-1"+string(body)) {
				t.Fatalf("%q of %q", body, file)
			}
			must(t, s.SaveReceipt(ReceiptFile{"op-1", clock, []byte("new")}))
		}
	})
}

// FuzzReplay replays records with right checksums in any order and number: each
// is a size, a step of the sequence number and a payload.
func FuzzReplay(f *testing.F) {
	var seed []byte
	for _, r := range []record{
		{kind: kindBegin, verb: "a", entry: Entry{Resource: "r", Manifest: "m"}},
		{kind: kindBegin, verb: "a", entry: Entry{Resource: "s", Manifest: "m", Order: 1}},
		{kind: kindEnd, flags: flagRevert, resource: "r"},
		{kind: kindPut, entry: Entry{Resource: "r", Manifest: "n", Order: 1}},
		{kind: kindMark, flags: flagHeld, number: 7, name: "d", digest: "x"},
		{kind: kindRelease, resource: "s"},
		{kind: kindNote, name: "n", value: "v"},
		{kind: kindNote, name: "n"},
		{kind: kindGood, name: "m", number: 3},
		{kind: kindGood, name: "m"},
	} {
		p := r.appendPayload(nil)
		seed = append(append(seed, byte(len(p)), 1), p...)
	}
	f.Add(seed)
	f.Add(seed[:len(seed)/2])
	f.Add(append([]byte{200, 255, kindBatch, 190, 1}, make([]byte, 197)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		journal, seq := make([]byte, headSize), uint64(1)
		head{role: roleJournal, seq: seq}.seal(journal)
		for len(b) > 2 {
			n := min(int(b[0]), len(b)-2)
			seq += uint64(b[1])
			journal = append(journal, rawFrame(seq, b[2:2+n])...)
			b = b[2+n:]
		}
		ledger := make([]byte, headSize)
		head{role: roleLedger, seq: 1}.seal(ledger)
		m := memOf(map[string][]byte{"ledger.1": ledger, "journal.1": journal})
		var s *Store
		var rec Recovered
		if n := allocated(func() { s, rec = openMem(t, m) }); n > 200_000+200*uint64(len(journal)) {
			t.Fatalf("allocated %d bytes for %d", n, len(journal))
		}
		got := view(t, s)
		if rec.Newer {
			return
		}
		must(t, s.snapshot())
		again, _ := openMem(t, m.Crash(LoseAll))
		if told := view(t, again); told != got {
			t.Fatalf("told\n%s\nand after a snapshot\n%s", got, told)
		}
	})
}

// FuzzRecord decodes payloads, past the checksums that stop the others.
func FuzzRecord(f *testing.F) {
	previous := entry("p", "m", 1)
	previous.Authority = "standing:converge"
	for _, r := range []record{
		{kind: kindBegin, verb: "apply", entry: entry("a", "m", 1)},
		{kind: kindPut, entry: entry("a", "m", 1)},
		{kind: kindEnd, flags: flagRevert, number: 7, resource: "file:/etc/a"},
		{kind: kindRelease, resource: "file:/etc/a"},
		{kind: kindMark, flags: flagHeld, number: 7, name: "d", digest: "x"},
		{kind: kindNote, name: "op/1", value: "sha256:x"},
		{kind: kindGood, number: 3, name: "m"},
		{kind: kindOpen, flags: flagOwned, number: 9, verb: "apply", entry: entry("a", "m", 1), previous: &previous},
	} {
		f.Add(r.appendPayload(nil))
	}
	f.Add([]byte("B\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := (decoder{1, map[string]string{}}).record(1, b); err == nil && (r.kind == kindNote || r.kind == kindGood || r.entry.Authority != "") {
			t.Fatalf("format 1 has %+v", r)
		}
		r, err := decoder{version, map[string]string{}}.record(1, b)
		if err != nil {
			return
		}
		again, err := decoder{version, map[string]string{}}.record(1, r.appendPayload(nil))
		if err != nil || string(again.appendPayload(nil)) != string(r.appendPayload(nil)) {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
		m := memOf(nil)
		s, _ := openMem(t, m)
		s.apply(&r)
		_ = view(t, s)
	})
}
