// Package bind_missing binds a kind to a device that lacks what it needs.
package bind_missing

import (
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/container"
	"github.com/continuo-fleet/continuo/interpret/file"
	"github.com/continuo-fleet/continuo/topology/memory"
)

var _ = interpret.Bind(memory.New().WithoutContainers(), file.Kind, container.Kind) // want "T \(type memory\.Small\) does not satisfy container\.Needs \(missing method Containers\)"
