// Package bind_standard binds all kinds to a device that has files only.
package bind_standard

import (
	"github.com/continuo-fleet/continuo/interpret/standard"
	"github.com/continuo-fleet/continuo/topology/memory"
)

var _ = standard.Bind(memory.New().FilesOnly()) // want "T \(type memory\.Plain\) does not satisfy standard\.Needs \(missing method (Services|Containers|ContainerNetworks|Volumes|Host)\)"
