package topology

import "context"

// An ImageRequest is an image that is wanted, and how to ask for it.
type ImageRequest struct {
	// Image is its reference, by tag or by digest.
	Image string
	// Ask asks the registry even if the image is here. Another one that it has by then is
	// fetched and kept beside: the reference goes on to stand for what it stood for, until
	// UseNewest. A reference by digest is not asked for again.
	Ask bool
	// Username and Password for the registry; empty for one that wants none. They are used
	// for this request and kept nowhere.
	Username string
	Password []byte
}

// ImageReader observes images.
type ImageReader interface {
	// Image returns the digest of an image that is here; empty if it is not. It fetches nothing.
	Image(ctx context.Context, image string) (digest string, err error)
}

// ImageWriter brings images.
type ImageWriter interface {
	ImageReader

	// EnsureImage fetches an image that is not here yet and returns its digest, or with Ask
	// the digest that the registry has now. It touches no container. The image is durably
	// stored when it returns. Layers that were fetched before it failed are not fetched again.
	// Where an image is here and the registry could not be asked, the fault is CodeImageCheck.
	EnsureImage(ctx context.Context, r ImageRequest) (digest string, err error)

	// UseNewest makes a reference stand for what its registry had when EnsureImage asked last.
	// It touches no container. Where nobody asked, nothing happens.
	UseNewest(ctx context.Context, image string) error
}

// ImageCollector gives back the space of images.
type ImageCollector interface {
	// CollectImages removes images that EnsureImage fetched, that no container of anybody is
	// made from, that nobody gave another name, and that no reference in keep stands for. It
	// names what it removed. What it cannot prove to have fetched stays.
	CollectImages(ctx context.Context, keep []string) (removed []string, err error)
}
