package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func goodOf(t *testing.T, s *Store, manifest string) string {
	t.Helper()
	v, ok, err := s.Good(manifest)
	must(t, err)
	if !ok {
		return ""
	}
	return v.Digest + " " + string(v.Body)
}

func TestGoodVersions(t *testing.T) { // G83, X102
	onBoth(t, func(t *testing.T, fs FS) {
		s, _ := mustOpen(t, fs)
		const name = "web/ü.0"
		must(t, s.KeepGood(name, Good{1, "one", []byte("1")}))
		must(t, s.KeepGood(name, Good{2, "two", []byte("2")}))
		must(t, s.KeepGood("app", Good{7, "x", nil}))
		s = reopen(t, s)
		if got := s.Goods(); !slices.Equal(got, []string{"app", name}) {
			t.Errorf("goods %q", got)
		}
		if v, ok, err := s.Good(name); !ok || err != nil || v.Generation != 2 || v.Digest != "two" || string(v.Body) != "2" {
			t.Errorf("got %+v %v %v", v, ok, err)
		}
		must(t, s.KeepGood(name, Good{1, "one", []byte("1")})) // rolled back
		must(t, s.DropGood("app"))
		must(t, s.DropGood("never"))
		s = reopen(t, s)
		if got := goodOf(t, s, name); got != "one 1" {
			t.Errorf("rolled back to %q", got)
		}
		if got := s.Goods(); !slices.Equal(got, []string{name}) {
			t.Errorf("after a drop %q", got)
		}
		must(t, s.KeepGood("app", Good{8, "y", []byte("again")}))
		if got := goodOf(t, reopen(t, s), "app"); got != "y again" {
			t.Errorf("kept again %q", got)
		}
	})
}

func TestGoodVersionThatIsRefused(t *testing.T) {
	m := NewMem()
	s, _ := mustOpen(t, m)
	for _, err := range []error{
		s.KeepGood("", Good{1, "x", nil}), s.KeepGood("m", Good{1, "", nil}), s.KeepGood(strings.Repeat("m", 201), Good{1, "x", nil}),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "cannot keep a good version of manifest ") {
			t.Errorf("got %v", err)
		}
	}
	if m.Stats().Steps > 0 {
		t.Error("a refusal wrote")
	}
}

// The last copy is damaged under the running store: the one before is given, and
// keeping the last one again writes it anew.
func TestGoodVersionDamagedInUse(t *testing.T) {
	m := NewMem()
	s, _ := mustOpen(t, m)
	must(t, s.KeepGood("m", Good{1, "one", []byte("1")}))
	must(t, s.KeepGood("m", Good{2, "two", []byte("2")}))
	files := m.Files()
	m.Put("good/m.1", files["good/m.1"][:45])
	if got := goodOf(t, s, "m"); got != "one 1" {
		t.Errorf("got %q", got)
	}
	must(t, s.KeepGood("m", Good{2, "two", []byte("2")}))
	if got := goodOf(t, reopen(t, s), "m"); got != "two 2" {
		t.Errorf("written anew %q", got)
	}
	m.Put("good/m.0", []byte("damaged"))
	m.Put("good/m.1", []byte("damaged"))
	s, rec := mustOpen(t, m.Crash(LoseAll))
	if _, ok, err := s.Good("m"); ok || err != nil || !rec.Lost() {
		t.Errorf("both are damaged: %v %v, %v", ok, err, rec.Findings)
	}
	must(t, s.KeepGood("m", Good{2, "two", []byte("2")}))
	if got := goodOf(t, reopen(t, s), "m"); got != "two 2" {
		t.Errorf("after both were damaged %q", got)
	}
}

// Both copies are damaged under the running store.
func TestGoodVersionsDamagedInUse(t *testing.T) {
	m := NewMem()
	s, _ := mustOpen(t, m)
	must(t, s.KeepGood("m", Good{1, "one", []byte("1")}))
	must(t, s.KeepGood("m", Good{2, "two", []byte("2")}))
	m.Put("good/m.0", []byte("damaged"))
	m.Put("good/m.1", []byte("damaged"))
	if _, ok, err := s.Good("m"); ok || !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v %v", ok, err)
	}
	must(t, s.KeepGood("m", Good{2, "two", []byte("2")}))
	if got := goodOf(t, s, "m"); got != "two 2" {
		t.Errorf("written anew %q", got)
	}
}

// The last copy was removed, and the older content becomes good once more: what is
// missing is not told for ever.
func TestLostGoodVersionHeals(t *testing.T) {
	m := NewMem()
	s, _ := mustOpen(t, m)
	must(t, s.KeepGood("m", Good{1, "one", []byte("1")}))
	must(t, s.KeepGood("m", Good{2, "two", []byte("2")}))
	must(t, s.Close())
	m.Put("good/m.1", nil)
	s, rec := mustOpen(t, m)
	if !rec.Lost() || rec.Findings[0].Code != CodeMissing || goodOf(t, s, "m") != "one 1" {
		t.Errorf("findings %v, good %q", rec.Findings, goodOf(t, s, "m"))
	}
	must(t, s.KeepGood("m", Good{1, "one", []byte("1")}))
	if got := goodOf(t, reopen(t, s), "m"); got != "one 1" {
		t.Errorf("got %q", got)
	}
}
