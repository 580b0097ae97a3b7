package blobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/conform"
)

// A fleet has contents, and hands them over in pieces.
type fleet struct {
	mu       sync.Mutex
	contents map[string][]byte
	cut      int64 // after so many bytes the line is cut; 0: never
	sent     int64
	now      int // fetches under way
	most     int
}

func newFleet() *fleet { return &fleet{contents: map[string][]byte{}} }

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func (f *fleet) Offer(content []byte) error {
	f.contents[sumOf(content)] = bytes.Clone(content)
	return nil
}
func (f *fleet) Withdraw(sum string) error { delete(f.contents, sum); return nil }
func (f *fleet) Damage(sum string) error   { f.contents[sum][len(f.contents[sum])/2] ^= 1; return nil }

func (f *fleet) Fetch(ctx context.Context, sum string, size, offset int64, take func([]byte) error) error {
	f.mu.Lock()
	content, ok := f.contents[sum]
	f.now++
	f.most = max(f.most, f.now)
	f.mu.Unlock()
	defer func() { f.mu.Lock(); f.now--; f.mu.Unlock() }()
	if !ok {
		return errors.New("the fleet does not have it")
	}
	for rest := content[min(offset, int64(len(content))):min(size, int64(len(content)))]; len(rest) > 0; {
		piece := rest[:min(len(rest), 100_000)]
		if f.cut > 0 && f.sent+int64(len(piece)) > f.cut {
			return errors.New("the line is cut")
		}
		f.sent += int64(len(piece))
		if err := take(piece); err != nil {
			return err
		}
		rest = rest[len(piece):]
	}
	return ctx.Err()
}

func newStore(t *testing.T, source Source) (*Store, string) {
	t.Helper()
	dir := t.TempDir()
	return Open(dir, source), filepath.Join(dir, folder)
}

func TestConforms(t *testing.T) {
	conform.Blobs(t, func(t *testing.T) conform.BlobBench {
		f := newFleet()
		s, _ := newStore(t, f)
		return conform.BlobBench{Blobs: s, Hands: f}
	})
}

func content(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}

func code(err error) topology.Code {
	if err == nil {
		return ""
	}
	return topology.FaultOf(err).Code
}

// What was fetched is not fetched again, and is not visible before it is whole.
func TestInterrupted(t *testing.T) {
	f := newFleet()
	s, dir := newStore(t, f)
	c := content(1_000_000)
	sum := sumOf(c)
	_ = f.Offer(c)
	for f.cut = 250_000; ; f.cut += 250_000 {
		err := s.FetchBlob(t.Context(), sum, int64(len(c)))
		if err == nil {
			break
		}
		if code(err) != topology.CodeUnreachable || !strings.Contains(err.Error(), "the line is cut") {
			t.Fatalf("got %v", err)
		}
		if here, err := s.HasBlob(t.Context(), sum); here || err != nil {
			t.Fatalf("a part of it is here: %v", err)
		}
		if _, err := s.OpenBlob(t.Context(), sum); code(err) != topology.CodeUnreachable {
			t.Fatalf("a part of it can be opened: %v", err)
		}
		s = Open(filepath.Dir(dir), f) // the agent was killed
	}
	if f.sent != 1_000_000 {
		t.Errorf("%d bytes were sent", f.sent)
	}
	left(t, dir, sum)
}

func left(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		if info, err := e.Info(); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("left: %v, want %v", names, want)
	}
}

// What a loss of power left of a part is found, and costs a fetch from the beginning.
func TestTornPart(t *testing.T) {
	f := newFleet()
	s, dir := newStore(t, f)
	c := content(1_000_000)
	sum := sumOf(c)
	_ = f.Offer(c)
	for name, torn := range map[string][]byte{"zeros": make([]byte, 300_000), "too long": make([]byte, 2_000_000), "the very size": make([]byte, 1_000_000), "nothing": nil} {
		t.Run(name, func(t *testing.T) {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, sum+part), torn, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := s.FetchBlob(t.Context(), sum, int64(len(c))); err != nil {
				t.Fatal(err)
			}
			r, err := s.OpenBlob(t.Context(), sum)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, c) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			_ = r.Close()
			left(t, dir, sum)
			if _, err := s.Keep(t.Context(), func(string) bool { return false }); err != nil {
				t.Fatal(err)
			}
			left(t, dir)
		})
	}
}

// A card that rots is noticed when it is read, and what is damaged is fetched again.
func TestDamagedOnDisk(t *testing.T) {
	f := newFleet()
	s, dir := newStore(t, f)
	c := content(300_000)
	sum := sumOf(c)
	_ = f.Offer(c)
	if err := s.FetchBlob(t.Context(), sum, int64(len(c))); err != nil {
		t.Fatal(err)
	}
	c[5] ^= 1
	if err := os.WriteFile(filepath.Join(dir, sum), c, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := s.OpenBlob(t.Context(), sum)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r); code(err) != topology.CodeIO {
		t.Errorf("got %v", err)
	}
	_ = r.Close()
	if err := s.FetchBlob(t.Context(), sum, int64(len(c))); err != nil {
		t.Error(err)
	}
	if err := s.FetchBlob(t.Context(), sum, 5); code(err) != topology.CodeInvalid {
		t.Errorf("another size: %v", err)
	}
}

func TestKeep(t *testing.T) {
	f := newFleet()
	s, dir := newStore(t, f)
	if n, err := s.Keep(t.Context(), func(string) bool { return false }); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	a, b, broken := content(1000), content(2000), content(500_000)
	for _, c := range [][]byte{a, b, broken} {
		_ = f.Offer(c)
	}
	for _, c := range [][]byte{a, b} {
		if err := s.FetchBlob(t.Context(), sumOf(c), int64(len(c))); err != nil {
			t.Fatal(err)
		}
	}
	f.cut = f.sent + 200_000
	if err := s.FetchBlob(t.Context(), sumOf(broken), int64(len(broken))); err == nil {
		t.Fatal("it was to be cut")
	}
	freed, err := s.Keep(t.Context(), func(sum string) bool { return sum == sumOf(a) })
	if err != nil || freed != 202_000 {
		t.Errorf("%d bytes, %v", freed, err)
	}
	left(t, dir, sumOf(a))
}

func TestNoRoom(t *testing.T) {
	f := newFleet()
	s, dir := newStore(t, f)
	s.reserve = 1 << 60
	c := content(10)
	_ = f.Offer(c)
	if err := s.FetchBlob(t.Context(), sumOf(c), 10); code(err) != topology.CodeNoSpace {
		t.Errorf("got %v", err)
	}
	if f.sent != 0 {
		t.Error("it was fetched before")
	}
	_ = dir
}

func TestWithoutSource(t *testing.T) {
	s, _ := newStore(t, nil)
	if err := s.FetchBlob(t.Context(), sumOf([]byte("x")), 1); code(err) != topology.CodeUnreachable {
		t.Errorf("got %v", err)
	}
	if err := s.FetchBlob(t.Context(), sumOf(nil), 0); err != nil {
		t.Errorf("nothing is everywhere: %v", err)
	}
}

// Many want the same: it is fetched once, and one at a time.
func TestAtOnce(t *testing.T) {
	f := newFleet()
	s, _ := newStore(t, f)
	c := content(1_000_000)
	_ = f.Offer(c)
	other := c[:500_000]
	_ = f.Offer(other)
	var wg sync.WaitGroup
	for range 8 {
		for _, c := range [][]byte{c, other} {
			wg.Go(func() {
				if err := s.FetchBlob(t.Context(), sumOf(c), int64(len(c))); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if f.sent != 1_500_000 || f.most != 1 {
		t.Errorf("%d bytes were sent, %d at once", f.sent, f.most)
	}
}

func TestPlacesThatAreNone(t *testing.T) {
	f := newFleet()
	c := content(10)
	_ = f.Offer(c)
	s, dir := newStore(t, f)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, sumOf(c))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.HasBlob(t.Context(), sumOf(c)); code(err) != topology.CodeNotRegular {
		t.Errorf("got %v", err)
	}
	if _, err := Open(filepath.Join(dir, "nowhere"), f).HasBlob(t.Context(), sumOf(c)); err != nil {
		t.Errorf("a state directory that is not there yet: %v", err)
	}
}
