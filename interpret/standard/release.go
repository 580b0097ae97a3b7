//go:build !shelljob

package standard

import "github.com/continuo-fleet/continuo/interpret"

// hatch is empty: a release has no escape hatch (H78).
func hatch[T Needs]() []func(T) interpret.Binding { return nil }
