// Package observe_writes changes the device where it may only look.
package observe_writes

import (
	"context"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Observe has the read half only.
func Observe(ctx context.Context, r topology.FileReader, s score.File) error {
	return r.RemoveFile(ctx, s.Path) // want "r\.RemoveFile undefined \(type topology\.FileReader has no field or method RemoveFile\)"
}
