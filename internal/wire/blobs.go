package wire

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// BlobChunk is how many bytes of a content are in one message; only the last one has fewer.
const BlobChunk = 128 << 10

// MaxBlobSize is the most bytes that one content may have.
const MaxBlobSize = 1 << 30

// A content is an object of the bucket: NATS tools list, read and verify it. Its name is its digest. Unlike objects that
// those tools write, every chunk has a subject of its own, with its number, so that a device reads a chunk by a request
// without a body, and can reach nothing whose digest it does not know.

// ErrBlobDigest says that a text is no digest.
var ErrBlobDigest = errors.New("it is not a sha256 in lower-case hex")

// CheckBlobDigest says whether a text can be the digest of a content. It is one token of a subject then.
func CheckBlobDigest(sha256 string) error {
	if len(sha256) != 64 || strings.Trim(sha256, "0123456789abcdef") != "" {
		return fmt.Errorf("cannot use %.70q as the name of a content: %w", sha256, ErrBlobDigest)
	}
	return nil
}

// BlobChunks is how many messages a content of so many bytes has.
func BlobChunks(size int64) int64 { return (size + BlobChunk - 1) / BlobChunk }

// BlobFetchSubject is where a device asks for chunk n of a content. The request has no body. The digest must have passed
// [CheckBlobDigest].
func BlobFetchSubject(sha256 string, n int64) string {
	return prefixFetch + keyBlob + mustDigest(sha256) + "." + strconv.FormatInt(n, 10)
}

// BlobChunkSubject is what a publisher writes chunk n to.
func BlobChunkSubject(sha256 string, n int64) string {
	return prefixBlobChunk + mustDigest(sha256) + "." + strconv.FormatInt(n, 10)
}

// BlobChunkSubjects are those of all chunks of a content.
func BlobChunkSubjects(sha256 string) string { return prefixBlobChunk + mustDigest(sha256) + ".*" }

// BlobInfoSubject is what a publisher writes to when all chunks of a content are stored.
func BlobInfoSubject(sha256 string) string {
	return prefixBlobInfo + base64.URLEncoding.EncodeToString([]byte(mustDigest(sha256)))
}

// AllBlobInfo is where every content is announced.
const AllBlobInfo = prefixBlobInfo + ">"

// BlobOf is the digest of the content that a subject of [BlobInfoSubject] is about.
func BlobOf(subject string) (sha256 string, ok bool) {
	name, ok := strings.CutPrefix(subject, prefixBlobInfo)
	if !ok {
		return "", false
	}
	b, err := base64.URLEncoding.DecodeString(name)
	if err != nil || CheckBlobDigest(string(b)) != nil {
		return "", false
	}
	return string(b), true
}

func mustDigest(sha256 string) string {
	if err := CheckBlobDigest(sha256); err != nil {
		panic("wire: digest was not checked: " + err.Error())
	}
	return sha256
}

// BlobInfo describes a content in the bucket, as NATS tools read it.
type BlobInfo struct {
	Name    string      `json:"name"`
	Options blobOptions `json:"options"`
	Bucket  string      `json:"bucket"`
	NUID    string      `json:"nuid"`
	Size    int64       `json:"size"`
	Chunks  int64       `json:"chunks"`
	Digest  string      `json:"digest"`
	Deleted bool        `json:"deleted,omitempty"`
}

type blobOptions struct {
	MaxChunkSize int `json:"max_chunk_size"`
}

// BlobInfoOf describes a content.
func BlobInfoOf(sum [32]byte, size int64) BlobInfo {
	name := fmt.Sprintf("%x", sum)
	return BlobInfo{
		Name: name, Options: blobOptions{BlobChunk}, Bucket: BucketBlobs,
		NUID: name + ".*", Size: size, Chunks: BlobChunks(size), Digest: "SHA-256=" + base64.URLEncoding.EncodeToString(sum[:]),
	}
}

// ParseBlobInfo reads what was written under the info subject of a content.
func ParseBlobInfo(b []byte) (BlobInfo, error) {
	var i BlobInfo
	if err := json.Unmarshal(b, &i); err != nil {
		return i, fmt.Errorf("cannot read what the bucket says of a content: %w", err)
	}
	return i, nil
}

// Describes reports whether i is of the whole content with a digest, as [BlobInfoOf] writes it.
func (i BlobInfo) Describes(sha256 string) bool {
	return !i.Deleted && i.Name == sha256 && i.NUID == sha256+".*" && i.Size >= 0 && i.Chunks == BlobChunks(i.Size)
}
