package score

import "regexp"

// A BlobRef names a content that is too large for a document.
type BlobRef struct {
	// SHA256 of the content, in lower-case hex.
	SHA256 string `json:"sha256" jsonschema:"pattern=^[0-9a-f]{64}$,example=5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"`
	// Size of the content in bytes.
	Size int64 `json:"size" jsonschema:"minimum=0,maximum=1073741824,example=67108864"`
}

// A BlobUser is implemented by specs that may need large contents. A content that no
// document names any more is collected, in the fleet and on the device.
type BlobUser interface {
	// BlobRefs lists the contents that the spec needs.
	BlobRefs() []BlobRef
}

// maxBlob is the largest content that a document may name: what the fleet stores and a device keeps.
const maxBlob = 1 << 30

var digestRE = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (b BlobRef) check(r *Report) {
	if !digestRE.MatchString(b.SHA256) {
		r.At("sha256").Errorf("sha256 %.70q must be the digest of the content: 64 digits of lower-case hex; sha256sum tells it", b.SHA256)
	}
	if b.Size < 0 || b.Size > maxBlob {
		r.At("size").Errorf("size is %d bytes, a content has 0 to %d", b.Size, int64(maxBlob))
	}
}
