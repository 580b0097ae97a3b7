package natslink

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// blob stores a content of n bytes as a publisher does.
func (r *rig) blob(n int) (content []byte, sum string) {
	r.t.Helper()
	content = make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(content)
	s := sha256.Sum256(content)
	sum = hex.EncodeToString(s[:])
	for i := range wire.BlobChunks(int64(n)) {
		piece := content[i*wire.BlobChunk:]
		if _, err := r.js.Publish(r.t.Context(), wire.BlobChunkSubject(sum, i), piece[:min(len(piece), wire.BlobChunk)], jetstream.WithRetryAttempts(3)); err != nil {
			r.t.Fatal(err)
		}
	}
	return content, sum
}

func fetchAll(ctx context.Context, l *Link, sum string, size, offset int64) ([]byte, error) {
	var got []byte
	err := l.Fetch(ctx, sum, size, offset, func(b []byte) error { got = append(got, b...); return nil })
	return got, err
}

func TestFetch(t *testing.T) {
	r := newRig(t)
	content, sum := r.blob(20*wire.BlobChunk + 1000)
	whole, wholeSum := r.blob(2 * wire.BlobChunk)
	l, _, _ := r.run(r.options())
	size := int64(len(content))
	tests := []struct {
		name         string
		sum          string
		size, offset int64
		want         []byte
		err          string
	}{
		{"all", sum, size, 0, content, ""},
		{"from a chunk on", sum, size, 3 * wire.BlobChunk, content[3*wire.BlobChunk:], ""},
		{"from the middle of one on", sum, size, 3*wire.BlobChunk + 7, content[3*wire.BlobChunk+7:], ""},
		{"the last byte", sum, size, size - 1, content[size-1:], ""},
		{"nothing is missing", sum, size, size, nil, ""},
		{"only whole chunks", wholeSum, 2 * wire.BlobChunk, 0, whole, ""},
		{"fewer than it says", sum, size + 10, 20 * wire.BlobChunk, content[20*wire.BlobChunk:], ""},
		{"a chunk is missing", wholeSum, 2*wire.BlobChunk + 1, 0, whole, "the fleet does not have it"},
		{"nowhere", strings.Repeat("0", 64), 10, 0, nil, "the fleet does not have it"},
		{"no digest", "*", 10, 0, nil, "not a sha256"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := fetchAll(t.Context(), l, tt.sum, tt.size, tt.offset)
			if (tt.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v, want %q", err, tt.err)
			}
			if !bytes.Equal(got, tt.want) {
				t.Errorf("got %d bytes, want %d", len(got), len(tt.want))
			}
		})
	}
	broken := errors.New("the disk is full")
	if err := l.Fetch(t.Context(), sum, size, 0, func([]byte) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := l.Fetch(ctx, sum, size, 0, func([]byte) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The server goes and comes back in the middle: the fetch goes on.
func TestFetchOverARestart(t *testing.T) {
	r := newRig(t)
	content, sum := r.blob(40 * wire.BlobChunk)
	l, _, _ := r.run(r.options())
	var got []byte
	var restarted sync.WaitGroup
	defer restarted.Wait()
	err := l.Fetch(t.Context(), sum, int64(len(content)), 0, func(b []byte) error {
		if got = append(got, b...); len(got) == 5*wire.BlobChunk {
			r.srv.Stop()
			restarted.Go(func() { <-time.After(100 * time.Millisecond); r.srv.Restart() })
		}
		return nil
	})
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes of %d: %v", len(got), len(content), err)
	}
}

// A fleet that was set up before there were contents says what to do.
func TestFetchWithoutBucket(t *testing.T) {
	r := newRig(t)
	if err := r.js.DeleteStream(t.Context(), wire.StreamBlobs); err != nil {
		t.Fatal(err)
	}
	l, _, _ := r.run(r.options())
	if _, err := fetchAll(t.Context(), l, strings.Repeat("0", 64), 1, 0); err == nil || !strings.Contains(err.Error(), "continuo setup") {
		t.Errorf("got %v", err)
	}
}
