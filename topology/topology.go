// Package topology says what a device can do.
//
// A capability is a pair of interfaces, one file each: a Reader observes, a Writer
// changes. What is only looked at, as tools and facts are, has no Writer. The words are
// those of the industry, not of a tool: files, services, containers, volumes,
// connections, a firewall, jobs, the time. A topology is any value that hands out capabilities through the Has
// interfaces; which ones it has is a fact of its type, so the compiler knows it.
// topology/memory is a device in memory, topology/pi is a Raspberry Pi, and
// topology/conform is the suite that both pass.
//
// The package imports only the standard library and does nothing by itself.
package topology

import "context"

// HasFiles is implemented by topologies with a file system.
type HasFiles interface{ Files() Files }

// HasServices is implemented by topologies with a service manager.
type HasServices interface{ Services() Services }

// HasContainers is implemented by topologies with a container runtime.
type HasContainers interface{ Containers() Containers }

// HasHost is implemented by topologies with a host name.
type HasHost interface{ Host() Host }

// HasEvents is optionally implemented by topologies that can tell about changes from
// outside. Events hurry the next observation; they are never the truth.
type HasEvents interface{ Events() Events }

// A Resource is the name of one thing on a device, as score.Resource spells it:
// "file:/etc/motd", "unit:web.service", "container:web", "hostname".
type Resource string

// A Mark says whom a thing belongs to: "manifest/score". It is kept on the thing
// itself (an extended attribute, a label), so that ownership can be found again when
// the books of the agent are lost. The empty mark is on everything foreign.
type Mark string

// Events tells about changes.
type Events interface {
	// Watch calls changed, from one goroutine at a time, whenever one of the resources
	// may have changed, until ctx ends. It may call too often, and it may miss. The empty
	// resource stands for all of them: it comes as soon as changes are seen, because what
	// happened before was missed, and may come again. Watch returns when ctx ends or when it
	// cannot watch any more; the caller calls it again.
	Watch(ctx context.Context, resources []Resource, changed func(Resource)) error
}
