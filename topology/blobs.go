package topology

import (
	"context"
	"io"
)

// Blobs are contents that are too large for a document, each by the sha256 of its bytes in
// lower-case hex.
type Blobs interface {
	// HasBlob reports whether a content is here, whole and verified.
	HasBlob(ctx context.Context, sha256 string) (bool, error)

	// FetchBlob brings a content here that is not, size bytes long, as far as it is missing: a
	// fetch that was interrupted goes on where it ended. It is verified and durable when
	// FetchBlob returns, and not to be had before. One that cannot be had is CodeUnreachable.
	FetchBlob(ctx context.Context, sha256 string, size int64) error

	// OpenBlob opens a content that is here for reading. The caller closes it.
	OpenBlob(ctx context.Context, sha256 string) (io.ReadCloser, error)
}

// HasBlobs is implemented by topologies that can bring large contents.
type HasBlobs interface{ Blobs() Blobs }
