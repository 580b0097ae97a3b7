package conform

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

// A BlobBench is a device without large contents, and a fleet that may have some.
type BlobBench struct {
	Blobs topology.Blobs
	Hands BlobHands
}

// BlobHands are the fleet.
type BlobHands interface {
	// Offer lets the fleet have a content.
	Offer(content []byte) error
	// Withdraw takes it away again.
	Withdraw(sha256 string) error
	// Damage makes it something else of the same length, under the same name.
	Damage(sha256 string) error
}

// Blobs is the suite of a device that can bring large contents.
func Blobs(t *testing.T, bench func(*testing.T) BlobBench) { suite(t, bench, blobTests) }

// noise is n bytes that repeat nowhere, and their digest.
func noise(n int) (content []byte, sum string) {
	for block := sha256.Sum256([]byte("noise")); len(content) < n; block = sha256.Sum256(block[:]) {
		content = append(content, block[:]...)
	}
	s := sha256.Sum256(content[:n])
	return content[:n], hex.EncodeToString(s[:])
}

var blobTests = []test[BlobBench]{
	{"fetched, read, and not fetched again", func(t *testing.T, b BlobBench) {
		for _, n := range []int{0, 1, 128 << 10, 128<<10 + 1, 1 << 20} {
			content, sum := noise(n)
			hands(t, b.Hands.Offer(content))
			here(t, b, sum, false)
			ok(t, b.Blobs.FetchBlob(t.Context(), sum, int64(n)))
			hands(t, b.Hands.Withdraw(sum)) // the device needs nobody any more
			ok(t, b.Blobs.FetchBlob(t.Context(), sum, int64(n)))
			here(t, b, sum, true)
			r, err := b.Blobs.OpenBlob(t.Context(), sum)
			ok(t, err)
			got, err := io.ReadAll(r)
			ok(t, err)
			ok(t, r.Close())
			if !bytes.Equal(got, content) {
				t.Errorf("%d bytes came back as %d others", n, len(got))
			}
		}
	}},
	{"cannot be had", func(t *testing.T, b BlobBench) {
		_, sum := noise(100)
		fails(t, b.Blobs.FetchBlob(t.Context(), sum, 100), topology.CodeUnreachable)
		here(t, b, sum, false)
		_, err := b.Blobs.OpenBlob(t.Context(), sum)
		fails(t, err, topology.CodeUnreachable)
	}},
	{"not what it should be", func(t *testing.T, b BlobBench) {
		content, sum := noise(300 << 10)
		hands(t, b.Hands.Offer(content))
		hands(t, b.Hands.Damage(sum))
		fails(t, b.Blobs.FetchBlob(t.Context(), sum, int64(len(content))), topology.CodeInvalid)
		here(t, b, sum, false)
		hands(t, b.Hands.Withdraw(sum))
		hands(t, b.Hands.Offer(content)) // nothing of what was wrong is kept
		ok(t, b.Blobs.FetchBlob(t.Context(), sum, int64(len(content))))
		here(t, b, sum, true)
	}},
	{"another size", func(t *testing.T, b BlobBench) {
		content, sum := noise(300 << 10)
		hands(t, b.Hands.Offer(content))
		for _, size := range []int64{0, 1, int64(len(content)) - 1, int64(len(content)) + 1, -1, 1 << 50} {
			fails(t, b.Blobs.FetchBlob(t.Context(), sum, size), topology.CodeInvalid, topology.CodeNoSpace)
			here(t, b, sum, false)
		}
	}},
	{"a name that is no digest", func(t *testing.T, b BlobBench) {
		_, sum := noise(1)
		for _, name := range []string{"", "a", "../" + sum[3:], strings.ToUpper(sum), sum + "0", strings.Repeat("*", 64), sum[:63] + "."} {
			_, err := b.Blobs.HasBlob(t.Context(), name)
			fails(t, err, topology.CodeInvalid)
			_, err = b.Blobs.OpenBlob(t.Context(), name)
			fails(t, err, topology.CodeInvalid)
			fails(t, b.Blobs.FetchBlob(t.Context(), name, 1), topology.CodeInvalid)
		}
	}},
	{"canceled", func(t *testing.T, b BlobBench) {
		content, sum := noise(100)
		hands(t, b.Hands.Offer(content))
		fails(t, b.Blobs.FetchBlob(canceled(t), sum, 100), topology.CodeCanceled)
		here(t, b, sum, false)
	}},
}

func here(t *testing.T, b BlobBench, sum string, want bool) {
	t.Helper()
	got, err := b.Blobs.HasBlob(t.Context(), sum)
	ok(t, err)
	if got != want {
		t.Fatalf("HasBlob says %t, want %t", got, want)
	}
}
