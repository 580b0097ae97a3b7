// Package bind_two_devices puts kinds of two devices into one table.
package bind_two_devices

import (
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/file"
	"github.com/continuo-fleet/continuo/interpret/hostname"
	"github.com/continuo-fleet/continuo/topology/memory"
)

var _ = interpret.Bind(memory.New(), hostname.Kind, file.Kind[memory.Small]) // want "type func\(t memory\.Small\) interpret\.Binding of file\.Kind\[memory\.Small\] does not match inferred type func\(\*memory\.Device\) interpret\.Binding"
