package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/score"
)

// MaxBlobSize is the most bytes that one content may have.
const MaxBlobSize = wire.MaxBlobSize

// window is how many chunks may be on their way at once.
const window = 16

// DescribeBlob reads a content to its end and says what a manifest calls it.
func DescribeBlob(content io.Reader) (score.BlobRef, error) {
	ref, _, err := describe(content)
	return ref, err
}

func describe(content io.Reader) (ref score.BlobRef, sum [32]byte, err error) {
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(content, MaxBlobSize+1))
	switch {
	case err != nil:
		return ref, sum, fmt.Errorf("cannot read the content: %w", err)
	case n > MaxBlobSize:
		return ref, sum, fmt.Errorf("cannot store the content: it has more than %d bytes", MaxBlobSize)
	}
	h.Sum(sum[:0])
	return score.BlobRef{SHA256: fmt.Sprintf("%x", sum), Size: n}, sum, nil
}

// PutBlob stores a content, from its beginning, for devices whose manifests name it. It is stored as a whole when PutBlob
// returns. One that is there is not sent again. Store contents before the manifests that need them are published, and
// again when they are published again: one that nothing needs, and that nobody stored lately, may be collected.
func (f *Fleet) PutBlob(ctx context.Context, content io.ReadSeeker) (score.BlobRef, error) {
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return score.BlobRef{}, fmt.Errorf("cannot read the content: %w", err)
	}
	ref, sum, err := describe(content)
	if err != nil {
		return ref, err
	}
	revision, there, err := f.blob(ctx, ref.SHA256)
	if err != nil {
		return ref, fmt.Errorf("cannot ask for the content %.12s: %w", ref.SHA256, err)
	}
	if there && f.announceBlob(ctx, ref, sum, jetstream.WithExpectLastSequencePerSubject(revision)) == nil {
		return ref, nil // and nobody collects it now
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return ref, fmt.Errorf("cannot read the content: %w", err)
	}
	err = f.sendBlob(ctx, ref, sum, content)
	if err == nil {
		err = f.announceBlob(ctx, ref, sum)
	}
	if err != nil {
		return ref, fmt.Errorf("cannot store the content %.12s: %w", ref.SHA256, f.explain(noStore(err)))
	}
	return ref, nil
}

// HasBlob reports whether a content is stored, all of it.
func (f *Fleet) HasBlob(ctx context.Context, sha256 string) (bool, error) {
	if err := wire.CheckBlobDigest(sha256); err != nil {
		return false, err
	}
	_, there, err := f.blob(ctx, sha256)
	if err != nil {
		return false, fmt.Errorf("cannot ask for the content %.12s: %w", sha256, err)
	}
	return there, nil
}

// blob reports whether a content is stored, and under which revision. What is damaged is not there, and written again.
func (f *Fleet) blob(ctx context.Context, sha256 string) (revision uint64, there bool, err error) {
	ctx, cancel := f.within(ctx)
	defer cancel()
	s, err := f.js.Stream(ctx, wire.StreamBlobs)
	if err != nil {
		return 0, false, f.explain(noStore(err))
	}
	m, err := s.GetLastMsgForSubject(ctx, wire.BlobInfoSubject(sha256))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, f.explain(err)
	}
	info, err := wire.ParseBlobInfo(m.Data)
	return m.Sequence, err == nil && info.Describes(sha256), nil
}

// sendBlob writes all chunks. They are stored when it returns.
func (f *Fleet) sendBlob(ctx context.Context, ref score.BlobRef, sum [32]byte, content io.Reader) error {
	js, err := jetstream.New(f.nc, jetstream.WithPublishAsyncTimeout(patience), jetstream.WithPublishAsyncMaxPending(window))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer f.awaits(cancel)()
	acks := make([]jetstream.PubAckFuture, 0, window)
	confirm := func(upTo int) error {
		for len(acks) > upTo {
			select {
			case <-acks[0].Ok():
			case err := <-acks[0].Err():
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
			acks = acks[1:]
		}
		return nil
	}
	h := sha256.New()
	for n := range wire.BlobChunks(ref.Size) {
		chunk := make([]byte, min(wire.BlobChunk, ref.Size-n*wire.BlobChunk)) // the library keeps it until it is confirmed
		if _, err := io.ReadFull(content, chunk); err != nil {
			return fmt.Errorf("it was changed while it was read: %w", err)
		}
		h.Write(chunk)
		if err := confirm(window - 1); err != nil {
			return err
		}
		ack, err := js.PublishAsync(wire.BlobChunkSubject(ref.SHA256, n), chunk)
		if err != nil {
			return err
		}
		acks = append(acks, ack)
	}
	if err := confirm(0); err != nil {
		return err
	}
	if [32]byte(h.Sum(nil)) != sum {
		return errors.New("it was changed while it was read")
	}
	return nil
}

// announceBlob says that all chunks of a content are stored.
func (f *Fleet) announceBlob(ctx context.Context, ref score.BlobRef, sum [32]byte, o ...jetstream.PublishOpt) error {
	b, err := json.Marshal(wire.BlobInfoOf(sum, ref.Size))
	if err != nil {
		return err
	}
	ctx, cancel := f.within(ctx)
	defer cancel()
	_, err = f.js.Publish(ctx, wire.BlobInfoSubject(ref.SHA256), b, o...)
	return err
}
