package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/score"
)

// A Blob is a content that is stored for devices.
type Blob struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	// Stored is when somebody stored it last.
	Stored time.Time `json:"stored"`
	// UsedBy are the devices for which something is published that needs it.
	UsedBy []Device `json:"usedBy"`

	revision uint64
}

// Blobs lists the contents that are stored, by digest, with who needs them. keys are whose documents are read: one of
// anybody else is an error, because nobody can tell what it needs.
func (f *Fleet) Blobs(ctx context.Context, keys KeySet) ([]Blob, error) {
	all, err := f.storedBlobs(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot list the contents: %w", err)
	}
	used, err := f.blobUse(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("cannot tell which contents are needed: %w", err)
	}
	for i := range all {
		all[i].UsedBy = append([]Device{}, used[all[i].SHA256]...)
	}
	return all, nil
}

// CollectBlob takes a content away that Blobs listed and that nothing needs. One that was stored again since is left.
func (f *Fleet) CollectBlob(ctx context.Context, b Blob) error {
	if len(b.UsedBy) > 0 {
		return fmt.Errorf("cannot take the content %.12s away: %s needs it", b.SHA256, b.UsedBy[0])
	}
	ctx, cancel := f.within(ctx)
	defer cancel()
	s, err := f.js.Stream(ctx, wire.StreamBlobs)
	// First what announces it, as it was listed: then who stores it now sends all of it, and what is sent has later
	// sequences than what is taken away here.
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(wire.BlobInfoSubject(b.SHA256)), jetstream.WithPurgeSequence(b.revision+1))
	}
	if err == nil {
		var there bool
		if _, there, err = f.blob(ctx, b.SHA256); there {
			return nil
		}
	}
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(wire.BlobChunkSubjects(b.SHA256)), jetstream.WithPurgeSequence(b.revision))
	}
	if err != nil {
		return fmt.Errorf("cannot take the content %.12s away: %w", b.SHA256, f.explain(noStore(err)))
	}
	return nil
}

func (f *Fleet) storedBlobs(ctx context.Context) ([]Blob, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	messages, hand := channel(ctx)
	n, stop, err := f.follow(ctx, wire.StreamBlobs, []string{wire.AllBlobInfo}, hand)
	if err != nil {
		return nil, err
	}
	defer stop()
	left, all := backlog{}, []Blob{}
	for left.expect(wire.StreamBlobs, n); len(left) > 0; {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case m := <-messages:
			left.took(m)
			sum, ours := wire.BlobOf(m.subject)
			info, err := wire.ParseBlobInfo(m.data)
			if ours && err == nil && !info.Deleted {
				all = append(all, Blob{SHA256: sum, Size: info.Size, Stored: m.time, revision: m.sequence})
			}
		}
	}
	slices.SortFunc(all, func(a, b Blob) int { return strings.Compare(a.SHA256, b.SHA256) })
	return all, nil
}

// blobUse is which contents the published documents need.
func (f *Fleet) blobUse(ctx context.Context, keys KeySet) (map[string][]Device, error) {
	states, err := f.Status(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string][]Device{}
	for _, s := range states {
		doc, err := f.present(ctx, s.Device, keys)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Device, err)
		}
		for _, m := range doc.assignment.Spec.Manifests {
			for _, sc := range m.Spec.Scores {
				if _, opaque := sc.Spec.(score.Opaque); opaque {
					return nil, fmt.Errorf("%s: score %q of manifest %q is of a kind that this program does not know: update it", s.Device, sc.ID, m.Metadata.Name)
				}
				user, ok := sc.Spec.(score.BlobUser)
				if !ok {
					continue
				}
				for _, ref := range user.BlobRefs() {
					if !slices.Contains(used[ref.SHA256], s.Device) {
						used[ref.SHA256] = append(used[ref.SHA256], s.Device)
					}
				}
			}
		}
	}
	return used, nil
}
