package topology

import (
	"context"
	"time"
)

// ContainerState is one container as found.
type ContainerState struct {
	State      string    // absent, created, running, paused, stopping, exited, …
	Since      time.Time // of the present state, on the device's clock
	Restarts   uint32    // automatic ones, as the service manager counts them
	ID         string
	Image      string // as it was asked for
	Digest     string // of the image that runs: sha256:…
	Here       string // digest of what Image stands for on this device now; empty: nothing
	Newest     string // digest of what the registry had for Image when it was asked last; empty: nobody asked
	ExitCode   int    // of the last run
	Health     string // healthy, unhealthy, starting; empty: no health check
	Unit       ServiceState
	Definition FileState
	SpecDigest string // of the ContainerConfig it was made from
	// Departs names the parts of its definition that the container was not created with, as far as the runtime
	// can tell. A container that somebody made anew with our labels has some.
	Departs []string
	Mark    Mark // on the container; empty for one made by hand

	// Made is the ContainerConfig of SpecDigest, where the definition still tells it. It is
	// shared, holds the values of variables, and is there to tell people what differs.
	Made *ContainerConfig
}

// A NamedContainer is a container that is there, whoever made it.
type NamedContainer struct {
	Name string
	Mark Mark // on the container; empty for one made by hand
}

// ContainerReader observes containers.
type ContainerReader interface {
	ImageReader

	// AllContainers returns every container that is there, running or not, sorted by name.
	// It may cost much more than to ask for one, and is not for every pass.
	AllContainers(ctx context.Context) ([]NamedContainer, error)

	// Container returns the state of a container. One that does not exist is "absent",
	// not an error.
	Container(ctx context.Context, name string) (ContainerState, error)
}

// ContainerWriter changes containers.
type ContainerWriter interface {
	ContainerReader
	ImageWriter

	// Run makes the container so and starts it, under the service manager, replacing one
	// of the same name that carries our mark: that gets its stop signal and its time first.
	// A container or unit of that name without a mark is a fault, CodeForeign, and stays. The
	// images must be here: see EnsureImage. Like Start of a service it watches for the settle
	// time. A config that is Stopped is defined only, and a container that runs is stopped.
	//
	// What the device cannot do is found out before anything is touched, and is a fault: a limit
	// without its controller CodeNotSupported, as for a service, and a health check that the image
	// lacks CodeUnavailable.
	// Secrets reach the container through the runtime, and those of configs before are
	// removed when it runs. One without a value is a fault, CodeSecret, unless the config is
	// Stopped.
	Run(ctx context.Context, c ContainerConfig) error

	// Restart starts the container again, as it is defined.
	Restart(ctx context.Context, name string) error

	// Reload sends a container that runs its reload signal. It needs one in its config.
	Reload(ctx context.Context, name string) error

	// RemoveContainer stops and removes a container that Run made, and its definition.
	// Named volumes and images stay.
	RemoveContainer(ctx context.Context, name string) error
}

// Containers is a container runtime.
type Containers interface {
	ContainerWriter
	ImageCollector
}
