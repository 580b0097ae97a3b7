package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// onBoth runs a test on a real directory and on one in memory.
func onBoth(t *testing.T, test func(t *testing.T, fs FS)) {
	t.Run("dir", func(t *testing.T) { test(t, Dir(filepath.Join(t.TempDir(), "state"))) })
	t.Run("mem", func(t *testing.T) { test(t, NewMem()) })
}

var clock = time.Date(2026, 11, 29, 18, 30, 0, 0, time.UTC)

func options() Options {
	return Options{Now: func() time.Time { return clock }, tag: func(b Backup) string { return b.SHA256[:8] }}
}

func mustOpen(t *testing.T, fs FS) (*Store, Recovered) {
	t.Helper()
	s, rec, err := Open(fs, options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, rec
}

// reopen closes s and opens its directory again, which must be without fault.
func reopen(t *testing.T, s *Store) *Store {
	t.Helper()
	must(t, s.Close())
	s, rec := mustOpen(t, s.fs)
	if len(rec.Findings) > 0 || rec.Fresh || rec.Newer {
		t.Fatalf("after an orderly stop: %+v", rec)
	}
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func entry(name, manifest string, generation uint64) Entry {
	return Entry{
		Resource: "file:/etc/" + name, Manifest: manifest, Score: name, Kind: "file",
		Generation: generation, Provenance: Created,
		Spec:       json.RawMessage(fmt.Sprintf(`{"path":"/etc/%s","g":%d}`, name, generation)),
		SpecDigest: fmt.Sprintf("sha256:%s-%d", name, generation),
	}
}

func apply(e Entry) Action { return Action{Entry: e, Verb: "apply"} }

func quoted(b []byte) []byte {
	text, err := json.Marshal(string(b))
	if err != nil {
		panic(err)
	}
	return text
}

// view is all that a store knows, as text that can be compared. Numbers that
// only give an order are left out, the order is not.
func view(t testing.TB, s *Store) string {
	t.Helper()
	var b strings.Builder
	line := func(what string, v any) {
		text, err := json.Marshal(v)
		must(t, err)
		fmt.Fprintf(&b, "%s %s\n", what, text)
	}
	plain := func(e Entry) Entry { // specs may be any bytes
		e.Order, e.Applied = 0, 0
		if e.Spec != nil {
			e.Spec = quoted(e.Spec)
		}
		return e
	}
	for _, e := range s.Entries() {
		line("entry", plain(e))
	}
	for _, o := range s.OpenActions() {
		o.Seq, o.Entry = 0, plain(o.Entry)
		if o.Previous != nil {
			p := plain(*o.Previous)
			o.Previous = &p
		}
		line("open", o)
	}
	for _, name := range sortedKeys(s.marks) {
		generation, digest, _ := s.Mark(name)
		in, ok, err := s.Intent(name)
		must(t, err)
		line("mark "+name, []any{generation, digest, ok, in.Generation, in.Digest, string(in.Envelope)})
	}
	backups, err := s.Backups()
	must(t, err)
	for _, k := range backups {
		_, content, err := s.ReadBackup(k.Name)
		must(t, err)
		line("backup", []any{k, string(content)})
	}
	for _, name := range sortedKeys(s.Notes("")) {
		v, _ := s.Note(name)
		line("note", []any{name, v})
	}
	for _, manifest := range s.Goods() {
		v, ok, err := s.Good(manifest)
		must(t, err)
		if ok {
			line("good "+manifest, []any{v.Generation, v.Digest, string(v.Body)})
		}
	}
	receipts, err := s.Receipts()
	must(t, err)
	for _, r := range receipts {
		body, ok, err := s.Receipt(r.ID)
		line("receipt", []any{r, string(body), ok, errors.Is(err, ErrDamaged)})
	}
	return strings.ReplaceAll(b.String(), `"Authority":"",`, "") // version 1 had none
}

func TestLedgerLife(t *testing.T) { // H53, H57
	onBoth(t, func(t *testing.T, fs FS) {
		s, rec := mustOpen(t, fs)
		if !rec.Fresh || len(rec.Findings) > 0 {
			t.Fatalf("first start: %+v", rec)
		}
		must(t, s.Begin(apply(entry("b", "web", 1)), apply(entry("a", "web", 1))))
		if got := s.OpenActions(); len(got) != 2 || got[0].Entry.Score != "b" || got[0].Previous != nil || got[0].Verb != "apply" {
			t.Fatalf("open actions %+v", got)
		}
		must(t, s.End(Result{Resource: "file:/etc/b", LastChanged: 1}, Result{Resource: "file:/etc/a", Revert: true}))
		must(t, s.Begin(apply(entry("c", "other", 4))))
		s = reopen(t, s)
		if e, ok := s.Owner("file:/etc/b"); !ok || e.Manifest != "web" || e.LastChanged != 1 {
			t.Fatalf("owner of b: %+v %v", e, ok)
		}
		if _, ok := s.Owner("file:/etc/a"); ok {
			t.Fatal("a was reverted and is still owned")
		}

		// A new generation of b: the entry before it is there until the end.
		must(t, s.Begin(apply(entry("b", "web", 2))))
		s = reopen(t, s)
		open := s.OpenActions()
		if len(open) != 2 || open[0].Entry.Score != "c" || open[1].Previous == nil || open[1].Previous.Generation != 1 {
			t.Fatalf("open actions %+v", open)
		}
		must(t, s.Begin(apply(entry("b", "web", 3)))) // begun once more after the restart
		if open := s.OpenActions(); open[1].Previous.Generation != 1 || open[1].Entry.Generation != 3 {
			t.Fatalf("second attempt %+v", open[1])
		}
		must(t, s.End(Result{Resource: "file:/etc/b", Revert: true}))
		if e, _ := s.Owner("file:/etc/b"); e.Generation != 1 || string(e.Spec) != string(entry("b", "web", 1).Spec) {
			t.Fatalf("reverted to %+v", e)
		}
		must(t, s.Begin(Action{Entry: entry("b", "web", 3), Verb: "remove"}))
		must(t, s.End(Result{Resource: "file:/etc/b", Release: true}))
		must(t, s.Record(apply(entry("d", "other", 4))))
		must(t, s.End(Result{Resource: "file:/etc/c"}))
		if got := s.ByManifest("other"); len(got) != 2 || got[0].Score != "c" || got[1].Score != "d" {
			t.Fatalf("by manifest: %+v", got)
		}
		if got := s.ByScore("other", "d"); len(got) != 1 || got[0].Resource != "file:/etc/d" {
			t.Fatalf("by score: %+v", got)
		}
		must(t, s.Release("file:/etc/d", "file:/etc/unknown"))
		if got := s.ByScore("other", "d"); got != nil {
			t.Fatalf("released and still found: %+v", got)
		}
		before := view(t, s)
		if after := view(t, reopen(t, s)); after != before {
			t.Fatalf("before:\n%s\nafter:\n%s", before, after)
		}
	})
}

func TestOwnedBySomebodyElse(t *testing.T) { // H53, cases 126, 128
	onBoth(t, func(t *testing.T, fs FS) {
		s, _ := mustOpen(t, fs)
		must(t, s.Record(apply(entry("motd", "first", 1))))
		before := view(t, s)
		var owned *OwnedError
		err := s.Begin(apply(entry("issue", "second", 1)), apply(entry("motd", "second", 1)))
		if !errors.As(err, &owned) || owned.Entry.Manifest != "first" {
			t.Fatalf("got %v", err)
		}
		if want := `cannot take file:/etc/motd: owned by manifest "first", score "motd"`; err.Error() != want {
			t.Fatalf("got %q, want %q", err, want)
		}
		if after := view(t, s); after != before {
			t.Fatalf("a refused batch changed the books:\n%s", after)
		}
		order := s.Entries()[0].Order
		must(t, s.Record(Action{Entry: entry("motd", "second", 1), Take: true}))
		if e, _ := s.Owner("file:/etc/motd"); e.Manifest != "second" || e.Order != order {
			t.Fatalf("moved: %+v", e)
		}
	})
}

func TestMisuse(t *testing.T) {
	s, _ := mustOpen(t, NewMem())
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"end without begin", s.End(Result{Resource: "x"}), `cannot end an action on "x": none was begun`},
		{"no resource", s.Begin(Action{Entry: Entry{Manifest: "m"}, Verb: "apply"}), `cannot record apply "": no resource or no manifest is named`},
		{"no manifest", s.Record(Action{Entry: Entry{Resource: "r"}}), `no resource or no manifest is named`},
		{"twice", s.Begin(apply(entry("a", "m", 1)), apply(entry("a", "n", 1))), `named twice in one batch`},
		{"no digest", s.Accept(Intent{Name: "d", Generation: 1}), "name or digest is missing"},
		{"long name", s.Accept(Intent{Name: strings.Repeat("ü", 100), Digest: "x"}), "too long"},
	}
	for _, tt := range tests {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, tt.err, tt.want)
		}
	}
	if n := s.fs.(*Mem).Stats().Steps; n != 0 {
		t.Errorf("refusals made %d steps on the disk", n)
	}
}

func TestNothingChangesNothingWritten(t *testing.T) { // idle = 0 bytes
	m := NewMem()
	s, _ := mustOpen(t, m)
	must(t, s.Accept(Intent{"d", 1, "x", []byte("body")}))
	must(t, s.Record(apply(entry("a", "web", 1))))
	_, err := s.SaveBackup(Backup{Path: "/etc/a", Mode: 0o644}, []byte("old"))
	must(t, err)
	must(t, s.SetNotes(map[string]string{"op/1": "x"}))
	must(t, s.KeepGood("m", Good{1, "x", []byte("body")}))
	must(t, s.SaveReceipt(ReceiptFile{"op-1", clock, []byte("body")}))
	s = reopen(t, s)
	before := m.Stats()
	must(t, s.SetNotes(map[string]string{"op/1": "x", "op/2": ""}))
	must(t, s.KeepGood("m", Good{2, "x", []byte("body")}))
	must(t, s.DropGood("never"))
	must(t, s.SaveReceipt(ReceiptFile{"op-1", clock, []byte("body")}))
	if gone, err := s.PruneBackups(1, time.Hour); err != nil || gone != nil {
		t.Errorf("pruned %v %v", gone, err)
	}
	must(t, s.Accept(Intent{"d", 1, "x", []byte("body")}))
	must(t, s.Record(apply(entry("a", "web", 1))))
	must(t, s.Release("file:/etc/unknown"))
	must(t, s.Begin())
	must(t, s.End())
	must(t, s.Check())
	must(t, s.Repair())
	_, err = s.SaveBackup(Backup{Path: "/etc/a", Mode: 0o644}, []byte("old"))
	must(t, err)
	_ = view(t, s)
	s = reopen(t, s)
	if after := m.Stats(); after != before {
		t.Fatalf("before %+v, after %+v", before, after)
	}
	if s.Owner("file:/etc/a"); m.Stats() != before {
		t.Fatal("a question wrote")
	}
}

func TestSecondAgentIsRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, fs FS) {
		s, _ := mustOpen(t, fs)
		second := fs
		if d, ok := fs.(*dirFS); ok {
			second = Dir(d.path)
		}
		_, _, err := Open(second, options())
		if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "cannot open state directory "+fs.String()+": another agent is using it") {
			t.Fatalf("got %v", err)
		}
		must(t, s.Record(apply(entry("a", "m", 1)))) // the first goes on
		must(t, s.Close())
		s, _ = mustOpen(t, second)
		if len(s.Entries()) != 1 {
			t.Fatal("lost")
		}
	})
}

// A journal is folded into a snapshot when it has grown, and specs stay right.
func TestCompaction(t *testing.T) {
	onBoth(t, func(t *testing.T, fs FS) {
		opts := options()
		opts.minCompact = 2000
		s, _, err := Open(fs, opts)
		must(t, err)
		defer func() { _ = s.Close() }()
		first := s.slot
		folds := 0
		for g := uint64(1); g <= 60; g++ {
			for _, name := range []string{"a", "b", "c"} {
				must(t, s.Begin(apply(entry(name, "m", g))))
				if name != "c" {
					must(t, s.End(Result{Resource: "file:/etc/" + name, LastChanged: g}))
				}
			}
			if s.slot != first {
				folds, first = folds+1, s.slot
			}
		}
		if folds < 5 {
			t.Fatalf("folded %d times", folds)
		}
		if o := s.OpenActions(); len(o) != 1 || o[0].Previous != nil || o[0].Entry.Generation != 60 {
			t.Fatalf("open %+v", o)
		}
		for _, e := range s.Entries() {
			if string(e.Spec) != string(entry(e.Score, "m", 60).Spec) {
				t.Fatalf("spec of %s: %s", e.Score, e.Spec)
			}
		}
		before := view(t, s)
		if after := view(t, reopen(t, s)); after != before {
			t.Fatalf("before:\n%s\nafter:\n%s", before, after)
		}
	})
}

func TestClosed(t *testing.T) {
	m := NewMem()
	s, _ := mustOpen(t, m)
	must(t, s.Close())
	for what, err := range map[string]error{"record": s.Record(apply(entry("a", "m", 1))), "repair": s.Repair()} {
		if err == nil || err.Error() != "cannot write state directory memory: it was closed" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := s.Check(); !errors.Is(err, ErrGone) || len(m.Files()) > 0 {
		t.Errorf("check: %v, files %v", err, m.Files())
	}
}
