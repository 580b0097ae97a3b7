package topology

import (
	"context"
	"time"
)

// VolumeState is one named volume as found.
type VolumeState struct {
	Present    bool
	Driver     string
	Mountpoint string // where its data is on the device
	Since      time.Time
	Mark       Mark // empty for one made by hand
}

// VolumeReader observes the named volumes of a container runtime.
type VolumeReader interface {
	// Volume returns the state of a volume. One that does not exist is no error.
	Volume(ctx context.Context, name string) (VolumeState, error)
}

// VolumeWriter changes named volumes.
type VolumeWriter interface {
	VolumeReader

	// MakeVolume makes an empty volume on the device's own storage. One of that name that
	// carries the mark is left as it is; any other is a fault, CodeForeign.
	MakeVolume(ctx context.Context, name string, mark Mark) error

	// RemoveVolume removes a volume that MakeVolume made, with its data. While a container
	// uses it, that is a fault, CodeInUse, with the names of those containers.
	RemoveVolume(ctx context.Context, name string) error
}

// Volumes are the named volumes of a container runtime.
type Volumes interface{ VolumeWriter }

// HasVolumes is implemented by topologies with named volumes for containers.
type HasVolumes interface{ Volumes() Volumes }

// A ContainerNetwork is what a network of containers is made from.
type ContainerNetwork struct {
	Name     string
	Subnets  []string // canonical prefixes; none: the runtime chooses
	Gateways []string // one for each of Subnets; empty: its first address
	Internal bool     // no way out of the device
	IPv6     bool
	NoDNS    bool   // containers do not find each other by name
	Spec     string // digest of all of the above, kept on the network
	Mark     Mark
}

// ContainerNetworkState is one network of containers as found.
type ContainerNetworkState struct {
	Present  bool
	Subnets  []string // as the runtime gave or took them
	Internal bool
	IPv6     bool
	DNS      bool
	Since    time.Time
	Spec     string // of the ContainerNetwork it was made from
	Mark     Mark   // empty for one made by hand
}

// ContainerNetworkReader observes the networks of a container runtime.
type ContainerNetworkReader interface {
	// ContainerNetwork returns the state of a network. One that does not exist is no error.
	ContainerNetwork(ctx context.Context, name string) (ContainerNetworkState, error)
}

// ContainerNetworkWriter changes networks of containers.
type ContainerNetworkWriter interface {
	ContainerNetworkReader

	// MakeContainerNetwork makes the network so. One of that name with another Spec is made
	// anew: containers of ours that are attached to it are stopped for that and started again.
	// While one of somebody else is attached, that is a fault, CodeInUse, with its name, and
	// nothing is touched. A network of that name without a mark is a fault, CodeForeign.
	MakeContainerNetwork(ctx context.Context, n ContainerNetwork) error

	// RemoveContainerNetwork removes a network that MakeContainerNetwork made. While a
	// container of anybody is attached, that is a fault, CodeInUse.
	RemoveContainerNetwork(ctx context.Context, name string) error
}

// ContainerNetworks are the networks of a container runtime.
type ContainerNetworks interface{ ContainerNetworkWriter }

// HasContainerNetworks is implemented by topologies with networks for containers.
type HasContainerNetworks interface {
	ContainerNetworks() ContainerNetworks
}
