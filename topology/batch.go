package topology

import "context"

// A Batch is calls that are made at once and belong together, so that what does for all of
// them, such as a reload of the service manager, is done once.
type Batch interface {
	// Gather waits until no other call can add to what is about to be done once for all, or
	// until waiting any longer is not worth it. The error is that of ctx.
	Gather(ctx context.Context) error

	// Finally has do called, once for each key, when all else is done.
	Finally(key any, do func(context.Context) error)
}

type batchKey struct{}

// InBatch returns a context whose calls belong to b.
func InBatch(ctx context.Context, b Batch) context.Context {
	return context.WithValue(ctx, batchKey{}, b)
}

// Gather is that of the batch of ctx. Without one it returns at once.
func Gather(ctx context.Context) error {
	if b, ok := ctx.Value(batchKey{}).(Batch); ok {
		return b.Gather(ctx)
	}
	return ctx.Err()
}

// Finally is that of the batch of ctx, and reports whether there is one: without one it does nothing.
func Finally(ctx context.Context, key any, do func(context.Context) error) bool {
	b, ok := ctx.Value(batchKey{}).(Batch)
	if ok {
		b.Finally(key, do)
	}
	return ok
}
