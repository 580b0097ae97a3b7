package topology

import "context"

// Progress of something that takes long, such as fetching an image.
type Progress struct {
	Done, Total int64 // bytes; Total is 0 while nobody knows
}

type progressKey struct{}

// WithProgress returns a context that carries tell to whatever is fetched under it. Tell is
// called often, and from one goroutine at a time.
func WithProgress(ctx context.Context, tell func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, tell)
}

// TellProgress tells whoever wants to know under ctx; it may be nobody.
func TellProgress(ctx context.Context, p Progress) {
	if tell, ok := ctx.Value(progressKey{}).(func(Progress)); ok {
		tell(p)
	}
}
