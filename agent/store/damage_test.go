package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// damages of one file. Nil means deleted.
func damages(name string, b []byte) map[string][]byte {
	flip := func(i int, bit byte) []byte {
		c := bytes.Clone(b)
		c[i] ^= bit
		return c
	}
	d := map[string][]byte{
		"deleted":          nil,
		"empty":            {},
		"one byte":         b[:1],
		"half":             b[:len(b)/2],
		"all but one byte": b[:len(b)-1],
		"zeros":            make([]byte, len(b)),
		"zeros at the end": append(bytes.Clone(b[:len(b)-5]), make([]byte, 5)...),
		"something else":   []byte(strings.Repeat("not a state file\n", 10)),
		"head only":        b[:min(len(b), headSize)],
		"head twice":       append(bytes.Clone(b[:headSize]), b...),
	}
	for i := range headSize {
		d[fmt.Sprint("head bit ", i)] = flip(i, 1<<(i%8))
	}
	for i := headSize; i < len(b); i += 3 { // each bit in turn, and every field
		d[fmt.Sprint("body bit ", i)] = flip(i, 1<<(i%8))
	}
	for name, c := range d {
		if c != nil && bytes.Equal(c, b) {
			delete(d, name)
		}
	}
	return d
}

// lived is a directory after some life, and what its store knew.
func lived(t testing.TB, ops []operation) (map[string][]byte, string) {
	t.Helper()
	m := NewMem()
	s, _ := openMem(t, m)
	for _, op := range ops {
		must(t, op.do(s))
	}
	must(t, s.Close())
	return m.Files(), view(t, s)
}

func memOf(files map[string][]byte) *Mem {
	m := NewMem()
	for name, b := range files {
		m.Put(name, b)
	}
	return m
}

// Every file is damaged in every way, in a directory at several ages. Open
// succeeds; it either knows everything or says that knowledge may be lost; the
// mark never falls; and after Repair everything it told is safe.
func TestEveryDamageOfOneFile(t *testing.T) { // cases 123, S23
	ops := script()
	n, quiet := 0, 0
	for _, age := range []int{2, 8, 27, len(ops)} {
		files, knew := lived(t, ops[:age])
		for name, content := range files {
			if strings.HasPrefix(name, backupFolder) || strings.HasPrefix(name, receiptFolder) {
				continue
			}
			for kind, damaged := range damages(name, content) {
				n++
				m := memOf(files)
				m.Put(name, damaged)
				s, rec, err := Open(m, crashOptions())
				if err != nil {
					t.Fatalf("%s %s: %v", name, kind, err)
				}
				at := fmt.Sprintf("age %d, %s: %s", age, name, kind)
				got := view(t, s)
				switch {
				case got != knew && !rec.Lost() && !cutAtRecord(name, content, damaged):
					t.Errorf("%s: knows less and says %v\n%s\nknew\n%s", at, rec.Findings, got, knew)
				case rec.Newer:
					t.Errorf("%s: taken for a newer version", at)
				case rec.Fresh:
					t.Errorf("%s: taken for a first start", at)
				}
				if !rec.Lost() {
					quiet++
				}
				if age > 5 {
					if err := s.Accept(Intent{"d", 1, "digest1", nil}); !errors.Is(err, ErrRegressed) {
						t.Errorf("%s: replay of generation 1: %v", at, err)
					}
				}
				if st := m.Stats(); st.Writes > 0 {
					t.Errorf("%s: opening wrote %+v", at, st)
				}
				must(t, s.Repair())
				inMap(t, m.Files())
				again, rec := openMem(t, m.Crash(LoseAll))
				if told := view(t, again); told != got {
					t.Errorf("%s: told\n%s\nand after repair\n%s", at, got, told)
				}
				for _, f := range rec.Findings {
					if !strings.HasPrefix(f.File, intentFolder) && !strings.HasPrefix(f.File, goodFolder) {
						t.Errorf("%s: after repair %v", at, f)
					}
				}
				must(t, again.Accept(Intent{"d", 100, "digest100", []byte("new")}))
				must(t, again.Accept(Intent{"d", 101, "digest101", []byte("new")}))
				if t.Failed() {
					t.FailNow()
				}
			}
		}
	}
	t.Logf("%d damages, %d of them without any loss", n, quiet)
	if n < 3000 || quiet < 1500 {
		t.Errorf("%d damages, %d without loss", n, quiet)
	}
}

// cutAtRecord: a journal cut exactly between two records cannot be told from
// one that was never longer.
func cutAtRecord(name string, was, is []byte) bool {
	if !strings.HasPrefix(name, "journal") || len(is) < headSize || !bytes.HasPrefix(was, is) {
		return false
	}
	holes, torn := frames(is[headSize:], func(uint64, []byte) {})
	return holes == 0 && !torn
}

// Two files are damaged at once: it still knows everything or says that it may
// not, whatever the two are. Only a ledger and its journal deleted together
// leave the directory as it really was before they were made.
func TestEveryDamageOfTwoFiles(t *testing.T) {
	ops := script()
	coarse := []string{"deleted", "empty", "half", "all but one byte", "zeros", "head bit 17", "body bit 61"}
	n := 0
	for _, age := range []int{3, 9, 27, len(ops)} {
		files, knew := lived(t, ops[:age])
		names := slices.DeleteFunc(sortedKeys(files), func(name string) bool {
			return strings.HasPrefix(name, backupFolder) || strings.HasPrefix(name, receiptFolder)
		})
		for i, one := range names {
			for _, two := range names[:i] {
				first, second := damages(one, files[one]), damages(two, files[two])
				for _, a := range coarse {
					for _, b := range coarse {
						n++
						m := memOf(files)
						m.Put(one, first[a])
						m.Put(two, second[b])
						s, rec := openMem(t, m)
						got, at := view(t, s), fmt.Sprintf("age %d, %s: %s, %s: %s", age, one, a, two, b)
						back := a == "deleted" && b == "deleted" && strings.HasPrefix(one, "ledger") && two == journalFile(int(one[7]-'0'))
						if got != knew && !rec.Lost() && !back {
							t.Fatalf("%s: knows less and says %v\n%s\nknew\n%s", at, rec.Findings, got, knew)
						}
						must(t, s.Repair())
						again, _ := openMem(t, m.Crash(LoseAll))
						if told := view(t, again); told != got {
							t.Fatalf("%s: told\n%s\nand after repair\n%s", at, got, told)
						}
					}
				}
			}
		}
	}
	if n < 1000 {
		t.Errorf("only %d pairs", n)
	}
}

// A record whose sync failed is whole in the old journal. It was refused, so
// it must not come back when the old journal is needed.
func TestRefusedRecordStaysRefused(t *testing.T) {
	m := NewMem()
	s, _ := mustOpen(t, m)
	must(t, s.Record(apply(entry("a", "m", 1))))
	m.Fault = func(st Step) error {
		if st.Op == "sync" {
			return syscall.EIO
		}
		return nil
	}
	if err := s.Record(apply(entry("b", "m", 1))); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	m.Fault = nil
	must(t, s.Record(apply(entry("c", "m", 1))))
	must(t, s.Close())
	m.Put(ledgerFile(s.slot), []byte{})
	s, rec := mustOpen(t, m)
	if e := s.Entries(); len(e) != 2 || e[0].Score != "a" || e[1].Score != "c" || rec.Lost() {
		t.Errorf("entries %v, findings %v", e, rec.Findings)
	}
}

// Whatever single file of a ledger is lost, the rest makes up for it.
func TestPreviousLedgerIsEnough(t *testing.T) {
	files, knew := lived(t, script())
	whole, _ := openMem(t, memOf(files))
	for slot := range 2 {
		m := memOf(files)
		m.Put(ledgerFile(slot), []byte{})
		s, rec := openMem(t, m)
		if got := view(t, s); got != knew || rec.Lost() {
			t.Errorf("ledger.%d is empty: %v\n%s\nknew\n%s", slot, rec.Findings, got, knew)
		}
		if slot != whole.slot {
			continue
		}
		must(t, s.Close())
		old := journalFile(1 - slot) // it is needed now, and its end is missing
		m.Put(old, files[old][:len(files[old])-1])
		_, rec = openMem(t, m)
		if f := rec.Findings[0]; f.File != old || f.Code != CodeGap || !f.Lost {
			t.Errorf("%s is cut: %v", old, rec.Findings)
		}
	}
}

// Behind a damaged record the next ones are read, and both ledgers damaged is
// not "nothing owned".
func TestWhatCanBeReadIsRead(t *testing.T) {
	m := NewMem()
	s, _ := mustOpen(t, m)
	for _, name := range []string{"a", "b", "c"} {
		must(t, s.Record(apply(entry(name, "m", 1))))
	}
	must(t, s.Close())
	files := m.Files()
	journal := bytes.Clone(files["journal.1"])
	journal[bytes.Index(journal, []byte("/etc/b"))] ^= 4
	m = memOf(files)
	m.Put("journal.1", journal)
	s, rec := mustOpen(t, m)
	if _, ok := s.Owner("file:/etc/c"); !ok || len(s.Entries()) != 2 || !rec.Lost() || rec.Findings[0].Code != CodeGap {
		t.Errorf("damaged middle: %v %v", s.Entries(), rec.Findings)
	}
	must(t, s.Repair())
	must(t, s.Close())
	if !bytes.Equal(m.Files()["journal.1.damaged"], journal) {
		t.Error("the damaged journal was not kept")
	}

	for name, b := range m.Files() {
		if strings.HasPrefix(name, "ledger") && !strings.HasSuffix(name, "damaged") {
			b[len(b)-1] ^= 1 // in the last record
			m.Put(name, b)
		}
	}
	s, rec = mustOpen(t, m)
	if _, ok := s.Owner("file:/etc/a"); !ok || !rec.Lost() || rec.Fresh {
		t.Errorf("both ledgers damaged: %v %v", s.Entries(), rec.Findings)
	}
}

// With the ledger gone, the envelope still says how far the device was, and
// with the envelope gone, the ledger does.
func TestMarkSurvivesEitherLoss(t *testing.T) { // H36, cases 123, 132
	files, _ := lived(t, []operation{accept("d", 6), accept("d", 7)})
	without := func(prefix string) *Mem {
		m := memOf(files)
		for name := range files {
			if strings.HasPrefix(name, prefix) {
				m.Put(name, nil)
			}
		}
		return m
	}
	for _, prefix := range []string{"ledger", "journal", "intent"} {
		s, rec := mustOpen(t, without(prefix))
		if !rec.Lost() && prefix != "ledger" || rec.Fresh {
			t.Errorf("without %s: %v", prefix, rec)
		}
		if g, _, ok := s.Mark("d"); !ok || g != 7 {
			t.Errorf("without %s the mark is %d", prefix, g)
		}
		if _, ok, _ := s.Intent("d"); ok == (prefix == "intent") {
			t.Errorf("without %s: envelope %v", prefix, ok)
		}
		if err := s.Accept(Intent{"d", 6, "digest6", nil}); !errors.Is(err, ErrRegressed) {
			t.Errorf("without %s: %v", prefix, err)
		}
		must(t, s.Accept(Intent{"d", 7, "digest7", []byte("again")}))
		if in, ok, _ := s.Intent("d"); !ok || in.Generation != 7 {
			t.Errorf("without %s: %+v", prefix, in)
		}
	}
	// The last envelope is damaged: the one before is given, with its own number.
	m := memOf(files)
	m.Put("intent/d.1", files["intent/d.1"][:50])
	s, rec := mustOpen(t, m)
	if in, ok, err := s.Intent("d"); err != nil || !ok || in.Generation != 6 || len(rec.Intents) != 1 || rec.Intents[0].Generation != 6 || !rec.Lost() {
		t.Errorf("previous copy: %+v %v %v", in, err, rec)
	}
	must(t, s.Accept(Intent{"d", 7, "digest7", []byte("again")})) // over the damaged one
	if _, rec := mustOpen(t, m.Crash(LoseAll)); len(rec.Findings) > 0 || rec.Intents[0].Generation != 7 {
		t.Errorf("after it came again: %v", rec)
	}
}

// A newer version's directory is not altered by anything.
func TestNewerVersion(t *testing.T) { // cases 130
	files, _ := lived(t, script())
	unknown := append(bytes.Clone(files["journal.0"]), rawFrame(99, []byte("Zsomething new"))...)
	cases := map[string]map[string][]byte{
		"all":            {"ledger.0": newerFormat(files["ledger.0"]), "ledger.1": newerFormat(files["ledger.1"]), "journal.0": newerFormat(files["journal.0"]), "journal.1": newerFormat(files["journal.1"])},
		"newest ledger":  {"ledger.0": newerFormat(files["ledger.0"])},
		"other ledger":   {"ledger.1": newerFormat(files["ledger.1"])},
		"one journal":    {"journal.1": newerFormat(files["journal.1"])},
		"one envelope":   {"intent/d.0": newerFormat(files["intent/d.0"])},
		"good version":   {"good/m.0": newerFormat(files["good/m.0"])},
		"unknown record": {"journal.0": unknown},
		"unknown in both": {
			"journal.0": unknown, "journal.1": append(bytes.Clone(files["journal.1"]), rawFrame(99, []byte("Zsomething new"))...),
		},
	}
	for name, changed := range cases {
		m := memOf(files)
		for file, b := range changed {
			m.Put(file, b)
		}
		before := m.Files()
		s, rec := openMem(t, m)
		if !rec.Newer || !rec.Lost() {
			if name != "unknown record" || s.slot == 0 {
				t.Errorf("%s: %+v", name, rec.Findings)
			}
			continue
		}
		_, backupErr := s.SaveBackup(Backup{Path: "/etc/x"}, nil)
		for what, err := range map[string]error{
			"begin": s.Begin(apply(entry("z", "m", 1))), "record": s.Record(apply(entry("z", "m", 1))),
			"accept": s.Accept(Intent{"d", 1000, "x", nil}), "repair": s.Repair(), "backup": backupErr,
			"notes": s.SetNotes(map[string]string{"op/9": "x"}), "receipt": s.SaveReceipt(ReceiptFile{ID: "op-9"}),
			"good": s.KeepGood("new", Good{1, "x", nil}), "drop good": s.DropGood("m"),
		} {
			if !errors.Is(err, ErrNewer) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		must(t, s.Close())
		if !maps.EqualFunc(before, m.Files(), bytes.Equal) || m.Stats().Steps > 0 {
			t.Errorf("%s: the directory was altered", name)
		}
	}
}

// newerFormat is a file as a newer version could have written it.
func newerFormat(b []byte) []byte {
	c := bytes.Clone(b)
	binary.LittleEndian.PutUint32(c[8:], version+1)
	binary.LittleEndian.PutUint32(c[36:], crc32.Checksum(c[:36], castagnoli))
	return c
}

// rawFrame is a frame with a right checksum around any payload.
func rawFrame(seq uint64, payload []byte) []byte {
	b := append([]byte(marker), make([]byte, 8)...)
	b = binary.LittleEndian.AppendUint64(b, seq)
	b = append(b, payload...)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	return b
}
