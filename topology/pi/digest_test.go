package pi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// readBytes is what this process has read by read calls, as the kernel counts it.
func readBytes(t testing.TB) (n int64) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skipf("the kernel does not count reads here: %v", err)
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "rchar: "); ok {
			for _, c := range strings.TrimSpace(v) {
				n = n*10 + int64(c-'0')
			}
		}
	}
	return n
}

// aged makes every file look as if nobody had changed it for a while: the time of a
// change cannot be set, so that the clock is moved.
func (f *files) aged(by time.Duration) { f.digests.ahead = by }

// A file of 64 MiB that did not change is read once, and known from then on without being
// read; whatever changes it, it is read again.
func TestLargeFileIsReadOnce(t *testing.T) { // issue 4: numbers
	f, root := below(t)
	const size = 64 << 20
	content := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	sum := sha256.Sum256(content)
	p := root + "/srv/model"
	put(t, p, "")
	if err := os.WriteFile(p, content, 0o644); err != nil {
		t.Fatal(err)
	}
	look := func(want topology.Sum) (read int64) {
		t.Helper()
		before := readBytes(t)
		st, err := f.File(t.Context(), "/srv/model")
		if err != nil || st.SHA256 != want {
			t.Fatalf("got %+v, %v, want %s", st, err, want)
		}
		return readBytes(t) - before
	}
	same := topology.Sum(hex.EncodeToString(sum[:]))
	for range 2 { // it was changed just now, and another change may have the same time
		if n := look(same); n < size {
			t.Errorf("a file that was just written is known after %d bytes", n)
		}
	}
	f.aged(settled)
	if n := look(same); n < size || n > size+1<<20 {
		t.Errorf("it was read once, and that took %d bytes", n)
	}
	start := time.Now()
	for range 100 {
		if n := look(same); n > 1<<20 {
			t.Fatalf("it did not change, and %d bytes were read", n)
		}
	}
	t.Logf("a look at 64 MiB that did not change takes %v", time.Since(start)/100)
	if got, err := f.Digest(t.Context(), "/srv/model", size); err != nil || got != same {
		t.Errorf("digest %s, %v", got, err)
	}
	if _, err := f.Digest(t.Context(), "/srv/model", size-1); err == nil {
		t.Error("it is larger than what may be read")
	}

	// A change of one byte, of the same size, with the time of the content put back.
	var st unix.Stat_t
	if err := unix.Stat(p, &st); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(p, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.WriteAt([]byte("X"), size/2)
	_ = w.Close()
	if err == nil {
		err = unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{st.Mtim, st.Mtim}, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	content[size/2] = 'X'
	sum = sha256.Sum256(content)
	if n := look(topology.Sum(hex.EncodeToString(sum[:]))); n < size {
		t.Errorf("it changed, and %d bytes were read", n)
	}
	// Another file of the same name.
	if err := os.WriteFile(p+"2", content, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(p+"2", p); err != nil {
		t.Fatal(err)
	}
	if n := look(topology.Sum(hex.EncodeToString(sum[:]))); n < size {
		t.Errorf("it is another file, and %d bytes were read", n)
	}
	// What the clock was put back behind is not believed.
	f.aged(-time.Hour)
	for range 2 {
		if n := look(topology.Sum(hex.EncodeToString(sum[:]))); n > size {
			t.Errorf("%d bytes were read", n)
		}
	}
}

// What is remembered is bounded, and a small file is nothing to remember.
func TestKeptDigestsAreBounded(t *testing.T) {
	var d digests
	old := time.Now().Add(-time.Hour)
	for i := range uint64(3 * maxKept) {
		st := unix.Stat_t{Ino: i, Size: worthKeeping, Ctim: unix.NsecToTimespec(old.UnixNano())}
		d.keep(&st, time.Now(), "x")
	}
	if len(d.kept) != maxKept {
		t.Errorf("%d are kept", len(d.kept))
	}
	small := unix.Stat_t{Ino: 1 << 40, Size: worthKeeping - 1, Ctim: unix.NsecToTimespec(old.UnixNano())}
	d.keep(&small, time.Now(), "x")
	if _, ok := d.find(&small); ok {
		t.Error("a small file is kept")
	}
}

// X53: of a file that is rewritten while it is read, at the same size, nothing partial is returned.
func TestTornReads(t *testing.T) {
	f, root := below(t)
	p := root + "/srv/f"
	a, b := strings.Repeat("a", 3<<20), strings.Repeat("b", 3<<20)
	put(t, p, a)
	whole := map[string]bool{}
	for _, s := range []string{a, b} {
		sum := sha256.Sum256([]byte(s))
		whole[hex.EncodeToString(sum[:])] = true
	}
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	var writing atomic.Uint64 // odd while a write is under way
	writer.Go(func() {        // in place, and of the same size
		w, err := os.OpenFile(p, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer w.Close()
		for i := 0; ctx.Err() == nil; i++ {
			writing.Add(1)
			if _, err := w.WriteAt([]byte([]string{b, a}[i%2]), 0); err != nil {
				t.Error(err)
			}
			writing.Add(1)
		}
	})
	refused, read, mixed := 0, 0, 0
	for range 100 {
		before := writing.Load()
		if b, err := f.Content(ctx, "/srv/f", 4<<20); err != nil {
			wantCode(t, err, topology.CodeChanged, "was changed while it was read")
			refused++
		} else if sum := sha256.Sum256(b); !whole[hex.EncodeToString(sum[:])] {
			// Otherwise one write stood still all the time, and that was the file. On a busy machine it may have
			// begun after one look at the count and ended before the other, now and then.
			if now := writing.Load(); now%2 == 0 || now > before+1 {
				mixed++
			}
		} else {
			read++
		}
		if _, err := f.File(ctx, "/srv/f"); err != nil { // what it tells may be half of a write that is under way, and is not kept
			wantCode(t, err, topology.CodeChanged, "/srv/f", "writes it all the time")
			refused++
		}
		if len(f.digests.kept) > 0 {
			t.Fatal("a file that changes all the time is taken for known")
		}
	}
	stop()
	writer.Wait()
	t.Logf("%d whole, %d refused, %d mixed", read, refused, mixed)
	if mixed > 5 {
		t.Errorf("%d mixtures were read", mixed)
	}
	if refused == 0 {
		t.Error("the race never happened")
	}
	if _, err := f.Content(t.Context(), "/srv/f", 4<<20); err != nil {
		t.Errorf("when all is quiet: %v", err)
	}
}

// What is read again is compared to the last byte: it is what tells that a write was under way.
func TestReads(t *testing.T) { // X53
	p := t.TempDir() + "/f"
	if err := os.WriteFile(p, []byte("one and the same"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for data, want := range map[string]bool{"one and the same": true, "one and the samE": false, "one and": false, "one and the same, and more": false, "": false} {
		if got := reads(int(file.Fd()), []byte(data)); got != want {
			t.Errorf("%q: %v", data, got)
		}
	}
}

// A source of many bytes is streamed: nothing holds it.
func TestStreamedWriteHoldsLittle(t *testing.T) {
	f, _ := below(t)
	const size = 32 << 20
	h := sha256.New()
	if _, err := io.CopyN(h, zeros{}, size); err != nil {
		t.Fatal(err)
	}
	w := topology.FileWrite{Path: "/srv/f", Mode: 0o644, Source: &topology.Source{SHA256: hex.EncodeToString(h.Sum(nil)), Size: size,
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(io.LimitReader(zeros{}, size)), nil }}}
	perByte := testing.AllocsPerRun(1, func() {
		if err := f.WriteFile(t.Context(), w); err != nil {
			t.Error(err)
		}
	})
	if perByte > 500 {
		t.Errorf("%.0f allocations", perByte)
	}
	if st, err := f.File(t.Context(), "/srv/f"); err != nil || st.Size != size || string(st.SHA256) != w.Source.SHA256 {
		t.Errorf("got %+v, %v", st, err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
