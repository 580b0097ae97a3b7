package interpret

import "context"

type sealKey struct{}

// Seal is for looking at, and changing, a thing that may hold a secret which its score does not name, because another score
// wrote it there. Nothing of what it holds is to be told then, and no digest of that, but a fingerprint.
func Seal(ctx context.Context) context.Context { return context.WithValue(ctx, sealKey{}, true) }

// Sealed reports whether ctx comes from Seal.
func Sealed(ctx context.Context) bool { return ctx.Value(sealKey{}) != nil }
