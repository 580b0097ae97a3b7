package wire_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/internal/natstest"
	"github.com/continuo-fleet/continuo/internal/wire"
)

const digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

// What is written chunk by chunk is an object for NATS tools, and a device reads it by number, without a consumer.
func TestContentsAreObjects(t *testing.T) {
	s := natstest.Start(t, pi1)
	operator, device := s.ConnectOperator(), s.ConnectDevice(pi1, quiet)
	js := newJetStream(t, operator)
	content := bytes.Repeat([]byte("0123456789abcde\n"), 3*wire.BlobChunk/16)
	content = content[:2*wire.BlobChunk+100]
	sum := sha256.Sum256(content)
	info := wire.BlobInfoOf(sum, int64(len(content)))
	if info.Chunks != 3 || wire.BlobChunks(0) != 0 || wire.BlobChunks(wire.BlobChunk) != 1 {
		t.Fatalf("%+v", info)
	}
	for n := range info.Chunks {
		chunk := content[n*wire.BlobChunk:]
		if _, err := js.Publish(t.Context(), wire.BlobChunkSubject(info.Name, n), chunk[:min(len(chunk), wire.BlobChunk)]); err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), wire.BlobInfoSubject(info.Name), b); err != nil {
		t.Fatal(err)
	}

	bucket, err := js.ObjectStore(t.Context(), wire.BucketBlobs)
	if err != nil {
		t.Fatal(err)
	}
	list, err := bucket.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != info.Name || list[0].Size != uint64(len(content)) {
		t.Fatalf("the bucket lists %+v, %v", list, err)
	}
	got, err := bucket.GetBytes(t.Context(), info.Name) // its digest is checked by the library
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("an object of %d bytes: %v", len(got), err)
	}

	var read []byte
	for n := range info.Chunks {
		m := request(t, device, wire.BlobFetchSubject(info.Name, n), nil)
		read = append(read, m.Data...)
	}
	if !bytes.Equal(read, content) {
		t.Errorf("the device read %d bytes", len(read))
	}
	if m := request(t, device, wire.BlobFetchSubject(info.Name, info.Chunks), nil); m.Header.Get("Status") != "404" {
		t.Errorf("beyond the end: %v", m.Header)
	}
	// A body would let a device choose what it reads, and how much at once.
	for _, body := range []string{`{"next_by_subj":">"}`, `{"batch":1000,"next_by_subj":">"}`, `{"seq":1}`} {
		if m := request(t, device, wire.BlobFetchSubject(info.Name, 0), []byte(body)); m.Header.Get("Status") != "408" || len(m.Data) > 0 {
			t.Errorf("a body %s: %v, %d bytes", body, m.Header, len(m.Data))
		}
	}
	stream, err := js.Stream(t.Context(), wire.StreamBlobs)
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Consumers; n != 0 {
		t.Errorf("%d consumers on %s", n, wire.StreamBlobs)
	}
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(wire.BlobChunkSubject(info.Name, 0))); err != nil {
		t.Fatal(err)
	}
	if m := request(t, device, wire.BlobFetchSubject(info.Name, 0), nil); m.Header.Get("Status") != "404" {
		t.Errorf("after its removal: %v", m.Header)
	}
}

func TestBlobNames(t *testing.T) {
	if got, ok := wire.BlobOf(wire.BlobInfoSubject(digest)); !ok || got != digest {
		t.Errorf("got %q, %t", got, ok)
	}
	for _, s := range []string{"", "$O.blobs.M.", "$O.blobs.M.eA==", "$O.blobs.M.%%%", wire.BlobChunkSubject(digest, 0)} {
		if got, ok := wire.BlobOf(s); ok {
			t.Errorf("%q is about %q", s, got)
		}
	}
	for _, bad := range []string{"", "*", ">", digest[1:], digest + "0", strings.ToUpper(digest), digest[:62] + ".>"} {
		if err := wire.CheckBlobDigest(bad); err == nil {
			t.Errorf("%q is a digest", bad)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q became a subject", bad)
				}
			}()
			_ = wire.BlobFetchSubject(bad, 0)
		}()
	}
}

func FuzzBlobInfo(f *testing.F) {
	b, err := json.Marshal(wire.BlobInfoOf(sha256.Sum256(nil), 0))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"name":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := wire.ParseBlobInfo(b)
		if err == nil && i.Describes(digest) && i.Name != digest {
			t.Errorf("%+v describes another", i)
		}
	})
}
