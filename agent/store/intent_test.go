package store

import (
	"errors"
	"fmt"
	"sync"
	"testing"
)

func TestGenerationNeverGoesBack(t *testing.T) { // H36, S01, S34, cases 132
	onBoth(t, func(t *testing.T, fs FS) {
		s, _ := mustOpen(t, fs)
		const name = "d.main/pi ü.7"
		must(t, s.Accept(Intent{name, 6, "sha256:six", []byte("six")}))
		must(t, s.Accept(Intent{name, 7, "sha256:seven", []byte("seven")}))
		must(t, s.Accept(Intent{"c.kiosk", 2, "sha256:k", nil}))
		s = reopen(t, s)
		if err := s.Accept(Intent{name, 6, "sha256:six", []byte("six")}); !errors.Is(err, ErrRegressed) {
			t.Fatalf("replay of 6: %v", err)
		} else if want := "cannot accept generation 6 of " + name + ": generation regressed: 7 was accepted before"; err.Error() != want {
			t.Fatalf("got %q", err)
		}
		if err := s.Accept(Intent{name, 7, "sha256:other", []byte("other")}); !errors.Is(err, ErrEquivocation) {
			t.Fatalf("another 7: %v", err)
		}
		in, ok, err := s.Intent(name)
		if err != nil || !ok || string(in.Envelope) != "seven" || in.Generation != 7 || in.Digest != "sha256:seven" {
			t.Fatalf("kept %+v %v %v", in, ok, err)
		}
		must(t, s.Forget("c.kiosk"))
		must(t, s.Forget("c.unknown"))
		s = reopen(t, s)
		if _, ok, _ := s.Intent("c.kiosk"); ok {
			t.Fatal("forgotten and still there")
		}
		if err := s.Accept(Intent{"c.kiosk", 1, "sha256:j", nil}); !errors.Is(err, ErrRegressed) {
			t.Fatalf("the mark was forgotten: %v", err)
		}
		must(t, s.Accept(Intent{"c.kiosk", 2, "sha256:k", []byte("again")}))
		if in, ok, _ := s.Intent("c.kiosk"); !ok || string(in.Envelope) != "again" {
			t.Fatalf("followed again: %+v %v", in, ok)
		}
	})
}

// While the network feeds and the engine reads, an envelope and its generation
// always belong together.
func TestNoTornReads(t *testing.T) { // S21
	s, _ := mustOpen(t, NewMem())
	var wg sync.WaitGroup
	wg.Go(func() {
		for g := uint64(1); g <= 200; g++ {
			if err := s.Accept(Intent{"d", g, fmt.Sprint("digest ", g), fmt.Appendf(nil, "body %d", g)}); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Go(func() {
		for range 500 {
			in, ok, err := s.Intent("d")
			if err != nil || ok && (string(in.Envelope) != fmt.Sprint("body ", in.Generation) || in.Digest != fmt.Sprint("digest ", in.Generation)) {
				t.Errorf("torn: %+v %v", in, err)
			}
		}
	})
	wg.Go(func() {
		for i := range 100 {
			e := entry(fmt.Sprint(i), "m", 1)
			if err := errors.Join(s.Begin(apply(e)), s.End(Result{Resource: e.Resource})); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if n := len(s.Entries()); n != 100 || len(s.OpenActions()) != 0 {
		t.Errorf("%d entries, open %v", n, s.OpenActions())
	}
}
