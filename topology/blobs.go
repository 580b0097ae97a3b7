package topology

import (
	"context"
	"io"
	"strings"
)

// Blobs are contents that are too large for a document, each by the sha256 of its bytes in
// lower-case hex.
type Blobs interface {
	// HasBlob reports whether a content is here, whole and verified.
	HasBlob(ctx context.Context, sha256 string) (bool, error)

	// FetchBlob brings a content here that is not, size bytes long, as far as it is missing: a
	// fetch that was interrupted goes on where it ended. It is verified and durable when
	// FetchBlob returns, and not to be had before. One that cannot be had is CodeUnreachable,
	// and one that is not what it should be CodeInvalid.
	FetchBlob(ctx context.Context, sha256 string, size int64) error

	// OpenBlob opens a content that is here for reading. The caller closes it. One that is not
	// here is CodeUnreachable.
	OpenBlob(ctx context.Context, sha256 string) (io.ReadCloser, error)
}

// HasBlobs is implemented by topologies that can bring large contents.
type HasBlobs interface{ Blobs() Blobs }

// CheckBlobDigest refuses what cannot be the digest of a content, CodeInvalid.
func CheckBlobDigest(sha256 string) error {
	if len(sha256) != 64 || strings.Trim(sha256, "0123456789abcdef") != "" {
		return Faultf(CodeInvalid, "%.70q is not the sha256 of a content in lower-case hex", sha256)
	}
	return nil
}
