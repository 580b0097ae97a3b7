package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Entries of these tests say their place and a text.
func placed(p Place, text string) []byte {
	return fmt.Appendf(nil, "%s %d %s %s", p.Chain, p.Sequence, p.Previous, text)
}

func line(text string) Line { return Line{Entry: func(p Place) []byte { return placed(p, text) }} }

// once is a line that is written once.
func once(text string) Line {
	l := line(text)
	l.Notes = map[string]string{"said/" + text: "1"}
	return l
}

func scribe() Scribe {
	return Scribe{
		Begin: func(p Place, lost bool) []byte { return placed(p, fmt.Sprint("begin ", lost)) },
		Gap:   func(p Place, g Gap) []byte { return placed(p, fmt.Sprint("gap ", g.Count, " ", g.From, " ", g.To)) },
	}
}

func keeping(t testing.TB, fs FS) *Store {
	t.Helper()
	s, _, err := Open(fs, options())
	must(t, err)
	s.KeepAudit(scribe())
	return s
}

// A reader is a fleet that got entries: once, or again.
type gotten struct {
	t    testing.TB
	have map[string]string // by chain and number
	last map[string]uint64 // by chain
}

func newReader(t testing.TB) *gotten {
	return &gotten{t, map[string]string{}, map[string]uint64{}}
}

// take wants every entry to follow the one before, unless that is missing, and none to have two contents.
func (r *gotten) take(all []Queued) (texts []string) {
	r.t.Helper()
	for _, q := range all {
		chain, rest, _ := strings.Cut(string(q.Entry), " ")
		number, rest, _ := strings.Cut(rest, " ")
		previous, text, _ := strings.Cut(rest, " ")
		n, err := strconv.ParseUint(number, 10, 64)
		must(r.t, err)
		key := chain + " " + number
		if was, known := r.have[key]; known && was != string(q.Entry) {
			r.t.Errorf("forked: %q and %q", was, q.Entry)
		}
		r.have[key], r.last[chain] = string(q.Entry), max(r.last[chain], n)
		if before, known := r.have[fmt.Sprint(chain, " ", n-1)]; known || n == 1 {
			if want := digest(before); n > 1 && previous != want || n == 1 && previous != "" {
				r.t.Errorf("entry %q does not follow %q", q.Entry, before)
			}
		}
		texts = append(texts, text)
	}
	return texts
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// An entry comes with the next write of the books, and costs none of its own. What the fleet has got goes with one, too.
func TestEntriesCostNoSync(t *testing.T) { // H65
	m := NewMem()
	s := keeping(t, m)
	must(t, s.Record(apply(entry("first", "m", 1))))
	if got := newReader(t).take(s.Queued(1 << 20)); len(got) != 1 || got[0] != "begin false" {
		t.Fatalf("a chain begins with %q", got)
	}
	got := cost(t, m, func() error {
		s.Audit(line("a"), line("b"))
		return s.Begin(apply(entry("x", "m", 1)))
	})
	if got.Syncs != 1 || got.Writes != 1 {
		t.Errorf("two entries and a begin: %+v", got)
	}
	all := s.Queued(1 << 20)
	r := newReader(t)
	if got := r.take(all); fmt.Sprint(got) != "[begin false a b]" {
		t.Fatalf("queue %q", got)
	}
	got = cost(t, m, func() error { s.Acknowledge(all[1].Number); return s.FlushAudit() })
	if got.Bytes != 0 || got.Syncs != 0 {
		t.Errorf("an answer of the fleet costs %+v", got)
	}
	if got := r.take(s.Queued(1 << 20)); fmt.Sprint(got) != "[b]" {
		t.Errorf("after an answer the queue is %q", got)
	}
	must(t, s.End(Result{Resource: "file:/etc/x", LastChanged: 1}))
	if n := len(s.Notes(noteEntry)); n != 1 {
		t.Errorf("%d entries are kept", n)
	}
	s = keeping(t, m.Crash(LoseAll))
	if got := r.take(s.Queued(1 << 20)); fmt.Sprint(got) != "[b]" {
		t.Errorf("after a restart the queue is %q", got)
	}
	s.Audit(line("c"))
	must(t, s.FlushAudit())
	if got := r.take(s.Queued(1 << 20)); fmt.Sprint(got) != "[b c]" || len(r.last) != 1 {
		t.Errorf("after a restart the chain goes on with %q", got)
	}
	if got := s.Queued(1); len(got) != 1 {
		t.Errorf("%d entries where not even one fits", len(got))
	}
}

// What was said is not said again, neither before it is written nor after a restart.
func TestSaidOnce(t *testing.T) {
	m := NewMem()
	s := keeping(t, m)
	s.Audit(once("a"), once("a"))
	must(t, s.FlushAudit())
	s.Audit(once("a"))
	must(t, s.FlushAudit())
	s = keeping(t, m.Crash(LoseAll))
	s.Audit(once("a"), once("b"))
	must(t, s.FlushAudit())
	if got := newReader(t).take(s.Queued(1 << 20)); fmt.Sprint(got) != "[begin false a b]" {
		t.Errorf("got %q", got)
	}
}

// The power goes after every step, and takes what was not safe. What was acknowledged is there; what anybody can have been
// sent never gets another content; and the chain goes on.
func TestChainAtEveryPowerCut(t *testing.T) {
	cuts := 0
	for stop := 0; ; stop++ {
		m := NewMem()
		m.Fault = func(st Step) error {
			if st.N > stop && st.Op != "read" {
				return ErrStopped
			}
			return nil
		}
		s, _ := openMem(t, m)
		s.KeepAudit(scribe())
		sent, acked, over := newReader(t), []string{}, true
		for i := range 40 {
			text := fmt.Sprint("e", i)
			s.Audit(once(text))
			do := s.FlushAudit
			if i%3 == 0 {
				do = func() error { return s.Begin(apply(entry(fmt.Sprint("x", i), "m", 1))) }
			}
			if do() != nil {
				over = false
				break
			}
			acked = append(acked, text)
			all := s.Queued(1 << 20)
			sent.take(all)
			if i%5 == 0 {
				s.Acknowledge(all[len(all)/2].Number)
			}
		}
		if over {
			break
		}
		for loss := range losses + 1 {
			cuts++
			next := m
			if loss < losses {
				next = m.Crash(loss)
			}
			next.Fault = nil
			must(t, next.Unlock())
			s, rec := openMem(t, next)
			s.KeepAudit(scribe())
			s.Audit(once("after"))
			must(t, s.FlushAudit())
			r := newReader(t)
			for k, v := range sent.have {
				r.have[k] = v
			}
			r.take(s.Queued(1 << 20))
			all := fmt.Sprint(r.have)
			for _, text := range append(acked, "after") {
				if !strings.Contains(all, " "+text) {
					t.Errorf("%s is lost", text)
				}
			}
			if want := len(sent.last); len(r.last) != 1 || len(sent.last) > 1 {
				t.Logf("chains %v before, %v after, findings %v, want %d", sent.last, r.last, rec.Findings, want)
			}
			if t.Failed() {
				t.Fatalf("cut after step %d, loss %d", stop, loss)
			}
		}
	}
	if cuts < 200 {
		t.Fatalf("only %d cuts", cuts)
	}
}

// Books that were damaged, or lost their end, do not know where the chain ended: another one begins, and says so. Never are
// there two entries of one number.
func TestChainAfterDamage(t *testing.T) {
	for _, file := range []string{"ledger.0", "ledger.1", "journal.0", "journal.1"} {
		m := NewMem()
		s, _ := openMem(t, m)
		s.KeepAudit(scribe())
		r := newReader(t)
		for i := range 12 {
			s.Audit(line(fmt.Sprint("e", i)))
			must(t, s.FlushAudit())
			r.take(s.Queued(1 << 20))
		}
		files := m.Files()
		b, there := files[file]
		if !there || len(b) < headSize+30 {
			continue
		}
		for _, bad := range [][]byte{nil, b[:len(b)-7], b[:headSize+10], append(append([]byte{}, b[:headSize+25]...), make([]byte, len(b)-headSize-25)...)} {
			next := NewMem()
			for name, content := range files {
				next.Put(name, content)
			}
			next.Put(file, bad)
			s, rec := openMem(t, next)
			s.KeepAudit(scribe())
			must(t, s.Repair()) // what decides must be in the files by then
			s, _ = openMem(t, next.Crash(LoseAll))
			s.KeepAudit(scribe())
			s.Audit(line("after"))
			must(t, s.FlushAudit())
			got := r.take(s.Queued(1 << 20))
			if begun := strings.Contains(fmt.Sprint(got), "begin true"); begun != rec.Lost() {
				t.Errorf("%s cut to %d of %d: lost %v, and %q", file, len(bad), len(b), rec.Lost(), got)
			}
		}
	}
}

// A queue that is full loses its oldest entries, says how many and which, and loses nothing else. What says so is told again
// should it be lost. Whoever reads knows in the end what is missing.
func TestQueueLoses(t *testing.T) {
	for seed := range uint64(3) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		m := NewMem()
		s := keeping(t, m)
		r := newReader(t)
		told := map[uint64]bool{}
		written := 0
		hear := func() {
			all := s.Queued(1 << 16)
			for _, text := range r.take(all) {
				var n, from, to uint64
				if c, _ := fmt.Sscanf(text, "gap %d %d %d", &n, &from, &to); c == 3 && from > 0 {
					for i := from; i <= to; i++ {
						told[i] = true
					}
				}
			}
			if len(all) > 0 {
				s.Acknowledge(all[len(all)-1].Number)
			}
		}
		for range 25 {
			for range rnd.IntN(500) {
				s.Audit(line(strings.Repeat("x", rnd.IntN(3000))))
				written++
			}
			must(t, s.FlushAudit())
			if c := &s.chain; len(c.queue) > maxQueued+1 || c.size > maxQueuedMem+2*maxNoteValue {
				t.Fatalf("the queue has %d entries of %d bytes", len(c.queue), c.size)
			}
			if rnd.IntN(6) == 0 {
				hear()
			}
			if rnd.IntN(9) == 0 {
				m = m.Crash(LoseAll)
				s = keeping(t, m)
			}
		}
		lost, _ := s.AuditLost()
		for untold := true; untold || len(s.Queued(1)) > 0; _, untold = s.AuditLost() {
			hear()
		}
		if len(r.last) != 1 {
			t.Fatalf("%d chains", len(r.last))
		}
		missing := 0
		for chain, last := range r.last {
			for i := uint64(1); i <= last; i++ {
				if _, have := r.have[fmt.Sprint(chain, " ", i)]; !have {
					missing++
					if !told[i] {
						t.Errorf("entry %d of %d is missing, and nobody says so", i, last)
					}
				}
			}
		}
		if missing == 0 || uint64(missing) > lost {
			t.Errorf("%d of %d are missing, and %d lost", missing, written, lost)
		}
	}
}

// What cannot be written is counted, changes nothing else, and is told as soon as something can be written again.
func TestEntriesThatCannotBeWritten(t *testing.T) { // X79
	m := NewMem()
	s := keeping(t, m)
	s.Audit(Line{Entry: func(Place) []byte { return nil }}, Line{Entry: func(Place) []byte { return make([]byte, maxNoteValue+1) }})
	must(t, s.Begin(apply(entry("x", "m", 1))))
	if n, untold := s.AuditLost(); n != 2 || !untold {
		t.Errorf("lost %d, untold %v", n, untold)
	}
	m.Fault = func(st Step) error {
		if st.Op == "write" {
			return syscall.ENOSPC
		}
		return nil
	}
	for i := range maxUnwritten + 3 {
		s.Audit(line(fmt.Sprint("e", i)))
	}
	if err := s.FlushAudit(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk gives %v", err)
	}
	m.Fault = nil
	must(t, s.SetNotes(map[string]string{"n": "1"}))
	all := s.Queued(1 << 20)
	r := newReader(t)
	texts := fmt.Sprint(r.take(all))
	if !strings.Contains(texts, "gap 1 0 0 gap 2 0 0") || !strings.Contains(texts, "gap 5 0 0 e0 e1 ") || !strings.Contains(texts, fmt.Sprint("e", maxUnwritten-1)) {
		t.Errorf("the queue is %s", texts)
	}
	s.Acknowledge(all[len(all)-1].Number)
	if n, untold := s.AuditLost(); n != 5 || untold {
		t.Errorf("lost %d, untold %v", n, untold)
	}
	none, _ := mustOpen(t, NewMem()) // where nobody keeps an audit, nothing is kept
	none.Audit(line("x"))
	must(t, none.FlushAudit())
	if len(none.Queued(100))+len(none.Notes("")) > 0 {
		t.Error("an audit without a scribe")
	}
}

// Commands leave a word while somebody else has the books.
func TestAsked(t *testing.T) {
	dir := t.TempDir() + "/state"
	must(t, LeaveAsked(dir, []byte("nobody reads it")))
	s, _ := mustOpen(t, Dir(dir))
	for _, bad := range [][]byte{nil, make([]byte, maxAsked+1)} {
		if LeaveAsked(dir, bad) == nil {
			t.Errorf("%d bytes are left", len(bad))
		}
	}
	must(t, LeaveAsked(dir, []byte("export")))
	got, forget, err := s.Asked()
	if err != nil || len(got) != 1 || string(got[0]) != "export" {
		t.Fatalf("%q, %v", got, err)
	}
	must(t, LeaveAsked(dir, []byte("backups"))) // meanwhile
	must(t, forget())
	if got, _, err := s.Asked(); err != nil || len(got) != 1 || string(got[0]) != "backups" {
		t.Errorf("%q, %v", got, err)
	}
}
