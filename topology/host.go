package topology

import "context"

// HostState is the name of the device.
type HostState struct {
	Static    string // as configured
	Transient string // as the kernel has it now
}

// HostReader observes the name of the device.
type HostReader interface {
	Hostname(ctx context.Context) (HostState, error)
}

// HostWriter changes the name of the device.
type HostWriter interface {
	HostReader

	// SetHostname sets the static name, durably, and the present one.
	SetHostname(ctx context.Context, name string) error
}

// Host is the identity of the device in its network.
type Host interface{ HostWriter }
