package score

// A BlobRef names a content that is too large for a document.
type BlobRef struct {
	// SHA256 of the content, in lower-case hex.
	SHA256 string
	// Size of the content in bytes.
	Size int64
}

// A BlobUser is implemented by specs that may need large contents. A content that no
// document names any more is collected, in the fleet and on the device.
type BlobUser interface {
	// BlobRefs lists the contents that the spec needs.
	BlobRefs() []BlobRef
}
