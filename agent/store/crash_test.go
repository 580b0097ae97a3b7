package store

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// operation is one step of a script, a batch of it being one step.
type operation struct {
	name string
	do   func(s *Store) error
}

func begin(actions ...Action) operation {
	return operation{fmt.Sprint("begin ", len(actions)), func(s *Store) error { return s.Begin(actions...) }}
}

func end(results ...Result) operation {
	return operation{fmt.Sprint("end ", len(results)), func(s *Store) error { return s.End(results...) }}
}

func accept(name string, generation uint64) operation {
	return operation{fmt.Sprint("accept ", name, generation), func(s *Store) error {
		return s.Accept(Intent{name, generation, fmt.Sprint("digest", generation), fmt.Appendf(nil, "envelope %s %d", name, generation)})
	}}
}

func keepGood(manifest string, generation uint64) operation {
	return other("good", func(s *Store) error {
		return s.KeepGood(manifest, Good{generation, fmt.Sprint("digest", generation), fmt.Appendf(nil, "manifest %s %d", manifest, generation)})
	})
}

func receipt(id, body string) operation {
	return other("receipt", func(s *Store) error { return s.SaveReceipt(ReceiptFile{id, clock, []byte(body)}) })
}

func backup(content string) operation {
	return other("backup", func(s *Store) error {
		_, err := s.SaveBackup(Backup{Path: "/etc/a", Mode: 0o600}, []byte(content))
		return err
	})
}

func withAuthority(e Entry, authority string) Action {
	e.Authority = authority
	return apply(e)
}

func other(name string, do func(s *Store) error) operation {
	return operation{name, do}
}

// script goes through everything that a store does, folding the journal
// several times.
func script() []operation {
	a, b, c := entry("a", "m", 1), entry("b", "m", 1), entry("c", "m", 1)
	ops := []operation{
		accept("d", 1),
		begin(apply(a), apply(b), apply(c)),
		end(Result{Resource: a.Resource, LastChanged: 1}, Result{Resource: b.Resource, Revert: true}),
		accept("d", 2),
		accept("k", 9),
		backup("was here"),
		keepGood("m", 1),
		other("burn and begin", func(s *Store) error {
			return s.BeginWith(map[string]string{"op/1": "digest", "condemned/m": "2"}, withAuthority(entry("q", "m", 2), "plan:1"))
		}),
		receipt("op-1", "interrupted"),
		keepGood("m", 2),
		other("end and note", func(s *Store) error {
			return s.EndWith(map[string]string{"condemned/m": ""}, Result{Resource: "file:/etc/q", Release: true})
		}),
		begin(apply(entry("a", "m", 2)), apply(entry("b", "m", 2))),
		end(Result{Resource: c.Resource, LastChanged: 1}, Result{Resource: b.Resource, LastChanged: 2}),
		other("record", func(s *Store) error { return s.Record(Action{Entry: entry("c", "n", 7), Take: true}) }),
		other("forget", func(s *Store) error { return s.Forget("k") }),
		accept("d", 3),
		end(Result{Resource: a.Resource, Revert: true}),
		begin(Action{Entry: a, Verb: "remove"}),
		end(Result{Resource: a.Resource, Release: true}),
		other("release", func(s *Store) error { return s.Release(c.Resource) }),
	}
	ops = append(ops,
		receipt("op-1", "done"), receipt("op-2", "done"), receipt("op-3", "done"), receipt("op-4", "done"), // one more than are kept
		keepGood("k", 7), keepGood("m", 3), keepGood("k", 8),
		backup("was there"),
		other("prune", func(s *Store) error {
			_, err := s.PruneBackups(1, 0)
			return err
		}),
		other("notes", func(s *Store) error { return s.SetNotes(map[string]string{"op/1": "", "op/2": "x", "op/3": "y"}) }),
	)
	for g := uint64(3); g < 16; g++ {
		ops = append(ops, begin(apply(entry("b", "m", g)), apply(entry("x", "m", g))), end(Result{Resource: b.Resource, LastChanged: g}))
	}
	return append(ops, other("drop", func(s *Store) error { return s.DropGood("k") }), accept("d", 4))
}

// inView are the operations that can fail after the last step but one, and be
// seen on the disk nevertheless.
var inView = map[string]bool{"backup": true, "forget": true, "receipt": true, "prune": true, "drop": true}

func crashOptions() Options {
	o := options()
	o.minCompact = 700 // a few records
	o.keepReceipts = 3
	return o
}

func openMem(t testing.TB, m *Mem) (*Store, Recovered) {
	t.Helper()
	s, rec, err := Open(m, crashOptions())
	if err != nil {
		t.Fatal(err)
	}
	return s, rec
}

// states are the views after each operation of a script, from before the first.
func states(t *testing.T, ops []operation) (whole []string) {
	t.Helper()
	s, _ := openMem(t, NewMem())
	whole = append(whole, view(t, s))
	slot, folds := s.slot, 0
	for _, op := range ops {
		must(t, op.do(s))
		whole = append(whole, view(t, s))
		if s.slot != slot {
			slot, folds = s.slot, folds+1
		}
	}
	if folds < 4 {
		t.Fatalf("the script folds the journal %d times only", folds)
	}
	return whole
}

// The power goes after every single step that the store takes on the disk, and
// takes each of four shares of what was not synced. What was acknowledged is
// there, nothing is half, what was begun and not ended is open, and the script
// can be finished to the same end. The last round is a kill without a power
// cut, and with one soon after the next start.
func TestPowerCutAtEveryStep(t *testing.T) { // X77, cases 123
	ops := script()
	whole := states(t, ops)
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
		at := 0
		var err error
		for at < len(ops) {
			if err = ops[at].do(s); err != nil {
				break
			}
			at++
		}
		if err == nil {
			break // the whole script in fewer steps
		}
		if !errors.Is(err, ErrStopped) {
			t.Fatalf("stopped after step %d in %q: %v", stop, ops[at].name, err)
		}
		if got := view(t, s); got != whole[at] && !(inView[ops[at].name] && got == whole[at+1]) {
			t.Fatalf("step %d: the error of %q changed the memory:\n%s\nwant\n%s", stop, ops[at].name, got, whole[at])
		}
		for loss := range losses + 1 {
			cuts++
			next := m // a kill: the process is gone, what it wrote is in view and not safe
			if loss < losses {
				next = m.Crash(loss)
			}
			next.Fault = nil
			must(t, next.Unlock())
			crashAndFinish(t, next, ops, at, whole)
			if t.Failed() {
				t.Fatalf("cut after step %d, in %q, loss %d", stop, ops[at].name, loss)
			}
		}
	}
	t.Logf("%d cuts", cuts)
	if cuts < 1100 {
		t.Fatalf("only %d cuts", cuts)
	}
}

func crashAndFinish(t *testing.T, next *Mem, ops []operation, at int, whole []string) {
	t.Helper()
	before := next.Stats().Writes
	s, rec := openMem(t, next)
	if n := next.Stats().Writes - before; n > 0 {
		t.Errorf("opening wrote %d times", n)
	}
	for _, f := range rec.Findings {
		if f.Code != CodeTorn {
			t.Errorf("finding %+v", f)
		}
	}
	got := view(t, s)
	if got != whole[at] && got != whole[at+1] {
		t.Errorf("found\n%s\nwant\n%s\nor\n%s\nfindings %v", got, whole[at], whole[at+1], rec.Findings)
	}
	inMap(t, next.Files())

	// The power goes once more, at once: what was told after the first cut is
	// what there is.
	again, _ := openMem(t, next.Crash(LoseAll))
	if told := view(t, again); told != got {
		t.Errorf("told\n%s\nand after another cut\n%s", got, told)
	}

	if got != whole[at+1] {
		must(t, ops[at].do(s))
	}
	for _, op := range ops[at+1:] {
		if err := op.do(s); err != nil {
			t.Fatalf("%s after recovery: %v", op.name, err)
		}
	}
	if end := view(t, s); end != whole[len(ops)] {
		t.Errorf("finished at\n%s\nwant\n%s", end, whole[len(ops)])
	}
	must(t, s.Repair())
	last, rec := openMem(t, next.Crash(LoseAll))
	if end := view(t, last); end != whole[len(ops)] || len(rec.Findings) > 0 {
		t.Errorf("reopened at\n%s\nwith %v", end, rec.Findings)
	}
	inMap(t, next.Files())
}

// Any one step fails once: the operation says so and has changed nothing, and
// done again it works. The disk is full or gone for good: reading goes on.
func TestEveryStepFails(t *testing.T) { // cases 43
	ops := script()
	whole := states(t, ops)
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EROFS} {
		faults := 0
		for bad := 1; ; bad++ {
			m, hit := NewMem(), false
			m.Fault = func(st Step) error {
				if st.N == bad && st.Op != "read" && !hit {
					hit = true
					return errno
				}
				return nil
			}
			s, _ := openMem(t, m)
			for i, op := range ops {
				before := hit
				err := op.do(s)
				if err != nil {
					if !errors.Is(err, errno) || before == hit {
						t.Fatalf("step %d in %q: %v", bad, op.name, err)
					}
					if got := view(t, s); got != whole[i] && !(inView[op.name] && got == whole[i+1]) {
						t.Fatalf("step %d: failed %q changed the memory:\n%s\nwant\n%s", bad, op.name, got, whole[i])
					}
					if err := op.do(s); err != nil {
						t.Fatalf("step %d: %q again: %v", bad, op.name, err)
					}
				}
				if got := view(t, s); got != whole[i+1] {
					t.Fatalf("step %d: after %q\n%s\nwant\n%s", bad, op.name, got, whole[i+1])
				}
				if !hit {
					continue // as without the fault
				}
				crashed, rec := openMem(t, m.Crash(LoseAll))
				if got := view(t, crashed); got != whole[i+1] || len(rec.Findings) > 0 {
					t.Fatalf("step %d: power cut after %q\n%s\nwant\n%s\nfindings %v", bad, op.name, got, whole[i+1], rec.Findings)
				}
			}
			if !hit {
				break
			}
			faults++
		}
		if faults < 200 {
			t.Fatalf("%v: only %d faults", errno, faults)
		}
	}
}

func TestFullDiskForGood(t *testing.T) { // cases 43
	ops := script()
	whole := states(t, ops)
	m := NewMem()
	s, _ := openMem(t, m)
	for _, op := range ops[:8] {
		must(t, op.do(s))
	}
	m.Fault = func(st Step) error {
		if st.Op == "create" || st.Op == "write" {
			return syscall.ENOSPC
		}
		return nil
	}
	for _, op := range ops[8:] {
		if err := op.do(s); err != nil && !errors.Is(err, syscall.ENOSPC) && !strings.HasPrefix(op.name, "end ") {
			t.Errorf("%s: %v", op.name, err)
		}
	}
	if got := view(t, s); got != whole[8] {
		t.Errorf("full disk changed the memory:\n%s", got)
	}
	must(t, s.Close())
	s, rec := openMem(t, m)
	if got := view(t, s); got != whole[8] || rec.Fresh {
		t.Errorf("opened on a full disk:\n%s\nfindings %v", got, rec.Findings)
	}
	m.Fault = nil // recovers without a restart
	for _, op := range ops[8:] {
		must(t, op.do(s))
	}
	if got := view(t, s); got != whole[len(ops)] {
		t.Errorf("after there was space again:\n%s", got)
	}
}
