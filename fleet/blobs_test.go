package fleet_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// large is a kind that needs a large content.
type large struct {
	SHA256 string `json:"sha256"`
}

func (large) Kind() score.Kind      { return "test-large" }
func (l large) Check(*score.Report) {}
func (l large) Claims() []score.Resource {
	return []score.Resource{score.Resource("large:" + l.SHA256)}
}
func (l large) BlobRefs() []score.BlobRef { return []score.BlobRef{{SHA256: l.SHA256}} }
func init()                               { score.Register(score.Definition[large]{Sample: large{"a"}}) }
func needs(ref score.BlobRef) score.Manifest {
	return manifest("a", "pi-1", score.Score{ID: "l", Spec: large{ref.SHA256}})
}

func TestBlobsAreStoredOnce(t *testing.T) {
	r := newRig(t, pi1)
	for _, size := range []int{0, 1, wire.BlobChunk, 3*wire.BlobChunk + 5} {
		content := bytes.Repeat([]byte{byte(size)}, size)
		want := fmt.Sprintf("%x", sha256.Sum256(content))
		for range 2 {
			before := r.chunks()
			ref, err := r.PutBlob(t.Context(), bytes.NewReader(content))
			if err != nil || ref.SHA256 != want || ref.Size != int64(size) {
				t.Fatalf("got %+v, %v", ref, err)
			}
			if there, err := r.HasBlob(t.Context(), want); err != nil || !there {
				t.Errorf("%d bytes: %t, %v", size, there, err)
			}
			if sent := r.chunks() - before; sent != 0 && sent != uint64(wire.BlobChunks(int64(size))) {
				t.Errorf("%d bytes: %d more chunks", size, sent)
			}
		}
		bucket, err := r.js().ObjectStore(t.Context(), wire.BucketBlobs)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := bucket.GetBytes(t.Context(), want); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes came back as %d: %v", size, len(got), err)
		}
	}
}

// chunks counts the messages that are no announcement.
func (r *rig) chunks() (n uint64) {
	r.t.Helper()
	s, err := r.js().Stream(r.t.Context(), wire.StreamBlobs)
	if err != nil {
		r.t.Fatal(err)
	}
	blobs, err := r.Blobs(r.t.Context(), r.documentKeys())
	if err != nil {
		r.t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs - uint64(len(blobs))
}

func (r *rig) documentKeys() fleet.KeySet {
	r.t.Helper()
	operator, _, err := r.keys.Trusted()
	if err != nil {
		r.t.Fatal(err)
	}
	keys, err := fleet.DocumentKeys(operator)
	if err != nil {
		r.t.Fatal(err)
	}
	return keys
}

// A changing is a content that is another one when it is read again.
type changing struct {
	*bytes.Reader
	reads int
}

func (c *changing) Seek(offset int64, whence int) (int64, error) {
	c.Reader = bytes.NewReader([]byte{byte(c.reads)})
	c.reads++
	return c.Reader.Seek(offset, whence)
}

func TestBlobThatChangesWhileItIsRead(t *testing.T) {
	r := newRig(t, pi1)
	ref, err := r.PutBlob(t.Context(), &changing{})
	if err == nil || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("got %v", err)
	}
	if there, err := r.HasBlob(t.Context(), ref.SHA256); err != nil || there {
		t.Errorf("it is stored: %t, %v", there, err)
	}
	if _, err := r.PutBlob(t.Context(), unreadable{}); err == nil || !strings.Contains(err.Error(), "cannot read the content") {
		t.Errorf("got %v", err)
	}
}

type unreadable struct{}

func (unreadable) Read([]byte) (int, error)       { return 0, errors.New("the disk is gone") }
func (unreadable) Seek(int64, int) (int64, error) { return 0, nil }

var _ io.ReadSeeker = unreadable{}

func TestBlobsThatNothingNeedsAreCollected(t *testing.T) {
	r := newRig(t, pi1, pi10)
	put := func(content string) score.BlobRef {
		t.Helper()
		ref, err := r.PutBlob(t.Context(), strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	list := func() map[string]fleet.Blob {
		t.Helper()
		all, err := r.Blobs(t.Context(), r.documentKeys())
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]fleet.Blob{}
		for _, b := range all {
			out[b.SHA256] = b
		}
		return out
	}
	used, unused, again := put("used"), put("unused"), put("again")
	if _, err := r.Publish(t.Context(), []score.Manifest{needs(used)}, fleet.PublishOptions{Signer: r.keys.Operator}); err != nil {
		t.Fatal(err)
	}
	seen := list()
	if b := seen[used.SHA256]; len(seen) != 3 || len(b.UsedBy) != 1 || b.UsedBy[0] != pi1 || b.Size != 4 || b.Stored.IsZero() {
		t.Fatalf("got %+v", seen)
	}
	if err := r.CollectBlob(t.Context(), seen[used.SHA256]); err == nil || !strings.Contains(err.Error(), "main.pi-1 needs it") {
		t.Errorf("got %v", err)
	}
	put("again") // somebody is about to publish what needs it
	for _, ref := range []score.BlobRef{unused, again} {
		if err := r.CollectBlob(t.Context(), seen[ref.SHA256]); err != nil {
			t.Error(err)
		}
	}
	now := list()
	if _, there := now[unused.SHA256]; there || len(now) != 2 {
		t.Errorf("left: %+v", now)
	}
	if n := r.chunks(); n != 2 {
		t.Errorf("%d chunks are left of two contents", n)
	}
	put("unused") // comes back whole
	if n := r.chunks(); n != 3 {
		t.Errorf("%d chunks of three contents", n)
	}
}

// What was signed by somebody else may need anything.
func TestBlobUseOfUnreadableDocuments(t *testing.T) {
	r := newRig(t, pi1)
	if _, err := r.Publish(t.Context(), []score.Manifest{needs(score.BlobRef{SHA256: "a"})}, fleet.PublishOptions{Signer: r.keys.Operator}); err != nil {
		t.Fatal(err)
	}
	operator, _, err := fleet.Keys{Operator: r.keys.Control, Control: r.keys.Control}.Trusted()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := fleet.DocumentKeys(operator)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Blobs(t.Context(), keys); err == nil || !strings.Contains(err.Error(), "not signed by this key") {
		t.Errorf("got %v", err)
	}
}

// X91: what is cheap comes first. Nothing of a large content is fetched for a document with a wrong key; one that names more
// than anybody stores is not published.
func TestWrongKeyFetchesNothing(t *testing.T) {
	const content = "a content"
	sum := sha256.Sum256([]byte(content))
	naming := func(size int64) score.Manifest {
		return manifest("a", "pi-1", score.Score{ID: "f", Spec: score.File{Path: "/srv/f", Mode: 0o644, Blob: &score.BlobRef{SHA256: hex.EncodeToString(sum[:]), Size: size}}})
	}
	for _, right := range []bool{true, false} {
		r := newRig(t, pi1)
		dv := r.device(pi1)
		dv.OfferBlob(content)
		if _, err := r.PutBlob(t.Context(), strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		rec := dv.Record()
		signer := r.keys.Operator
		if !right {
			var err error
			if signer, err = nkeys.CreateAccount(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Publish(t.Context(), []score.Manifest{naming(fleet.MaxBlobSize + 1)}, fleet.PublishOptions{Signer: signer}); err == nil || !strings.Contains(err.Error(), "/blob/size") {
			t.Errorf("more than is stored: %v", err)
		}
		if _, err := r.Publish(t.Context(), []score.Manifest{naming(int64(len(content)))}, fleet.PublishOptions{Signer: signer}); err != nil {
			t.Fatal(err)
		}
		if right {
			r.wait(pi1, 1)
		} else {
			r.until(pi1, "refused", func(s fleet.DeviceState) bool {
				return s.Status != nil && slices.ContainsFunc(s.Status.Problems, func(p interpret.Problem) bool { return p.Code == "untrusted" })
			})
		}
		fetched := slices.ContainsFunc(rec.Calls(), func(c memory.Call) bool { return c.Op == memory.OpFetchBlob })
		if fetched != right {
			t.Errorf("signed by the right key: %v, fetched: %v", right, fetched)
		}
	}
}
