package topology

import (
	"context"
	"time"
)

// Load states of a unit.
const (
	Loaded   = "loaded"
	NotFound = "not-found"
	Masked   = "masked"
)

// ServiceState is one unit as found. Words are those of the service manager.
type ServiceState struct {
	Load       string    // loaded, not-found, masked, error, bad-setting
	Active     string    // active, inactive, failed, activating, deactivating, reloading
	Sub        string    // running, exited, dead, auto-restart, …
	Enabled    string    // enabled, enabled-runtime, disabled, static, masked, generated, …; empty: no such unit
	Type       string    // simple, notify, oneshot, …; empty for units that are no services
	Remain     bool      // stays active after its process ended
	Since      time.Time // of the present active state, on the device's clock
	MainPID    int
	Restarts   uint32    // automatic ones since it was started by hand
	Result     string    // of the last run: success, exit-code, signal, timeout, start-limit-hit, …
	ExitCode   int       // of the last main process
	Invocation string    // changes with every start
	Definition FileState // the file in the place where definitions of manifests live
	Source     string    // path of the file the unit was loaded from
	Overrides  []string  // drop-in files that were loaded
}

// ServiceReader observes services.
type ServiceReader interface {
	// Service returns the state of a unit, as loaded from what is on disk now. A unit that
	// does not exist has Load NotFound; that is no error.
	Service(ctx context.Context, unit string) (ServiceState, error)
}

// ServiceWriter changes services. Calls return when the job is done, with a fault
// that carries its result if it failed, not when it is queued.
type ServiceWriter interface {
	ServiceReader

	// Define writes the definition of a unit, durably, and lets the service manager know
	// before any later call of this capability reads or acts on the unit. Several
	// definitions in a row may share one reload.
	Define(ctx context.Context, unit string, text []byte, mark Mark) error

	// Undefine stops and disables a unit that Define wrote, and removes its definition.
	Undefine(ctx context.Context, unit string) error

	// SetEnabled enables or disables a unit for every boot to come. A unit that was
	// enabled until the next boot only is neither.
	SetEnabled(ctx context.Context, unit string, on bool) error

	// Start starts a unit that is not running and watches it for the settle time: a
	// process that ends within it is a fault, CodeExited. A start limit that was hit
	// before is reset first if reset is true.
	Start(ctx context.Context, unit string, reset bool) error

	// Stop stops a unit, also one that is still starting.
	Stop(ctx context.Context, unit string) error

	// Restart is Stop and Start as one job.
	Restart(ctx context.Context, unit string, reset bool) error
}

// Services is a service manager.
type Services interface{ ServiceWriter }
