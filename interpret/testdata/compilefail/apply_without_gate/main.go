// Package apply_without_gate changes a device and asks nobody.
package apply_without_gate

import (
	"context"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/file"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// Apply takes the interpreter out of its binding.
func Apply(ctx context.Context, s score.File) error {
	return file.Kind(memory.New()).apply(ctx, s, interpret.Task{}) // want "file\.Kind\(memory\.New\(\)\)\.apply undefined \(cannot refer to unexported field apply\)"
}
