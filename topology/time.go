package topology

import (
	"context"
	"time"
)

// HasTime is implemented by topologies whose clock follows time servers.
type HasTime interface{ Time() Time }

// TimeServers are the servers that a clock follows.
type TimeServers struct {
	Servers  []string // in the order in which they are asked; none: what the system says
	Fallback []string // asked if there are no others; none: what the system says
	Mark     Mark
}

// TimeState is the clock of the device, and what it follows.
type TimeState struct {
	Timezone string // its name, such as "Europe/Berlin"

	// Lacks says why the device cannot follow time servers; empty if it can. What is below is zero then.
	Lacks   string
	Enabled bool // it follows them from boot to boot
	Active  bool // it does so now

	Written  bool        // our choice of servers is on disk
	Choice   TimeServers // what it says
	Altered  bool        // it says more than that: somebody edited it
	Servers  []string    // what whoever sets the clock has read, also of others; only if Active
	Fallback []string

	Synchronized bool          // the kernel says that the clock is right
	Server       string        // the server that is asked now
	Measured     bool          // the next one is known
	Offset       time.Duration // how far the clock was off when the server answered last
}

// TimeReader observes the clock.
type TimeReader interface {
	Time(ctx context.Context) (TimeState, error)
}

// TimeWriter changes what the clock follows. It never sets the clock itself.
type TimeWriter interface {
	TimeReader

	// SetTimezone sets the time zone, durably. One that the device does not have is a fault, CodeInvalid.
	SetTimezone(ctx context.Context, zone string) error

	// SetTimeServers writes the choice, durably. Whoever sets the clock reads it again, if it runs.
	SetTimeServers(ctx context.Context, s TimeServers) error

	// RemoveTimeServers takes the choice back.
	RemoveTimeServers(ctx context.Context) error

	// SetTimeSync makes the clock follow its servers, or not, now and from boot to boot.
	SetTimeSync(ctx context.Context, on bool) error
}

// Time is the clock of the device.
type Time interface{ TimeWriter }
