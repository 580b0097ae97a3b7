//go:build shelljob

package standard

import (
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/shelljob"
)

// hatch is the kind that is in no release.
func hatch[T Needs]() []func(T) interpret.Binding {
	return []func(T) interpret.Binding{shelljob.Kind[T]}
}
