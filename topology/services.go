package topology

import (
	"context"
	"slices"
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
	Load        string    // loaded, not-found, masked, error, bad-setting
	Active      string    // active, inactive, failed, activating, deactivating, reloading
	Sub         string    // running, exited, dead, auto-restart, waiting, listening, …
	Enabled     string    // enabled, enabled-runtime, disabled, static, indirect, masked, generated, …; empty: no such unit
	Type        string    // simple, notify, oneshot, …; empty for units that are no services
	Remain      bool      // stays active after its process ended
	CanReload   bool      // knows how to read its configuration again
	Since       time.Time // of the present active state, on the device's clock
	MainPID     int
	Restarts    uint32     // automatic ones since it was started by hand
	Result      string     // of the last run: success, exit-code, signal, timeout, start-limit-hit, …
	ExitCode    int        // of the last main process
	Invocation  string     // changes with every start
	Definition  FileState  // the file in the place where definitions of manifests live
	Source      string     // path of the file the unit was loaded from
	Stale       bool       // what is on disk is not what is loaded, and to read it again did not help
	DropIns     []DropIn   // what is added to the unit, wherever it is, in the order in which it is read
	Limits      UnitLimits // in force, as far as the unit itself bounds it
	Triggers    []string   // units that it starts, if it is a timer, a socket or a path; sorted
	TriggeredBy []string   // units of these kinds that start it; sorted
	Ran         *Run       // the last run of RunOnce that came to its end
}

// A DropIn is a file that adds to a unit or overrides a part of it.
type DropIn struct {
	Path string
	// Name is set for one that Define wrote: no other file is ever removed.
	Name     string
	Mark     Mark     // of whoever wrote it
	SHA256   Sum      // empty if it cannot be read
	Mode     uint32   // permission bits
	Settings []string // that it makes, as Section.Setting, each once, sorted; at most 64
}

// UnitLimits are what a unit may use at most; zero is no bound.
type UnitLimits struct {
	Memory   uint64 // bytes
	CPU      uint32 // percent of one processor
	Tasks    uint64
	IOWeight uint64
}

// A Run is one run of a unit to its end.
type Run struct {
	Digest     string // of what was run, as RunOnce was given it
	Invocation string
	Ended      time.Time // on the device's clock
	Result     string    // success, exit-code, signal, timeout, …
	ExitCode   int
	Output     string // the end of it, as Log returns it
	Truncated  bool   // there was more before that
}

// DropInHeader is the first line of every drop-in that Define writes: with it, and with a mark where files can carry one,
// a drop-in is known as ours.
const DropInHeader = "# Written by continuo; do not edit.\n"

// A Definition is the wanted text of a unit file, or of a drop-in.
type Definition struct {
	// Unit that it defines or adds to; USER/UNIT for a unit of the service manager of a user.
	Unit string
	// DropIn is the name of a drop-in; empty: the unit file itself.
	DropIn string
	// Text of it. That of a drop-in begins with DropInHeader. A unit file without any text masks the unit.
	Text []byte
	Mark Mark
	// Replaces is as that of a FileWrite.
	Replaces Sum
}

// ServiceReader observes services. Units of the service manager of a user are named
// USER/UNIT everywhere. It does not run: a fault, CodeUnavailable. There is no such user: a fault,
// CodeNoAccount, but what removes files of his units works, and what was in his manager is gone
// with him. What is on disk is in the ServiceState beside either fault.
type ServiceReader interface {
	// Service returns the state of a unit, as loaded from what is on disk now. A unit that
	// does not exist has Load NotFound; that is no error.
	Service(ctx context.Context, unit string) (ServiceState, error)

	// Log returns the last lines that a run of a unit wrote, and that the service manager
	// wrote about it: at most LogLines and LogBytes, valid UTF-8, without control characters.
	// It is cheap to ask again about the same invocation.
	Log(ctx context.Context, unit, invocation string) (string, error)

	// Controllers lists what the kernel can bound for units beside this one: cpu, io, memory, pids.
	Controllers(ctx context.Context, unit string) ([]string, error)

	// Lingers reports whether the service manager of a user runs without a login. There is no such
	// user: a fault, CodeNoAccount.
	Lingers(ctx context.Context, user string) (bool, error)
}

// Bounds of what Log returns.
const (
	LogLines = 20
	LogBytes = 4 << 10
)

// ServiceWriter changes services. Calls return when the job is done, with a fault
// that carries its result if it failed, not when it is queued.
type ServiceWriter interface {
	ServiceReader

	// Define writes the definition of a unit, or a drop-in, durably, and lets the service
	// manager know before any later call of this capability reads or acts on the unit.
	// Several definitions in a row may share one reload.
	Define(ctx context.Context, d Definition) error

	// Undefine stops and disables a unit that Define wrote, and removes its definition, its
	// drop-ins that Define wrote, and what is known of its runs. It leaves a unit that the
	// system has running, without these drop-ins.
	Undefine(ctx context.Context, unit string) error

	// RemoveDropIn removes a drop-in that Define wrote, by its name. One that is gone is no
	// error, and one that somebody else wrote stays: CodeForeign.
	RemoveDropIn(ctx context.Context, unit, name string) error

	// Unmask lifts every mask of a unit, for good or until the next boot, whoever made it.
	Unmask(ctx context.Context, unit string) error

	// SetEnabled enables or disables a unit for every boot to come. A unit that was
	// enabled until the next boot only is neither.
	SetEnabled(ctx context.Context, unit string, on bool) error

	// SetLinger says whether the service manager of a user runs without a login. It runs
	// when SetLinger returns, if it is to.
	SetLinger(ctx context.Context, user string, on bool) error

	// Start starts a unit that is not running and watches it for the settle time: a
	// process that ends within it is a fault, CodeExited. A start limit that was hit
	// before is reset first if reset is true.
	Start(ctx context.Context, unit string, reset bool) error

	// Stop stops a unit, also one that is still starting.
	Stop(ctx context.Context, unit string) error

	// Restart is Stop and Start as one job.
	Restart(ctx context.Context, unit string, reset bool) error

	// Reload makes a running unit read its configuration again. One that cannot is a fault, CodeInvalid.
	Reload(ctx context.Context, unit string) error

	// RunOnce runs a oneshot to its end and remembers that, for good, under digest: see
	// ServiceState.Ran. A run that is under way is waited for. One that fails is a fault,
	// CodeExited, and remembered as well.
	RunOnce(ctx context.Context, unit, digest string) error
}

// Services is a service manager.
type Services interface{ ServiceWriter }

// Controllers of the kernel that bound what a unit may use.
const (
	ControlCPU    = "cpu"
	ControlIO     = "io"
	ControlMemory = "memory"
	ControlTasks  = "pids"
)

// CheckController is a fault if what is wanted of a controller cannot be had, and says what to do about it.
func CheckController(have []string, want string) error {
	switch {
	case slices.Contains(have, want):
		return nil
	case want == ControlMemory:
		return Faultf(CodeNotSupported, "memory controller disabled (cmdline.txt): the kernel does not bound memory here; add cgroup_enable=memory to /boot/firmware/cmdline.txt and reboot, or leave the limit out")
	}
	return Faultf(CodeNotSupported, "%s controller disabled: the kernel does not bound %s here, as it has the controllers %v; leave the limit out", want, map[string]string{ControlCPU: "CPU time", ControlIO: "the disk", ControlTasks: "tasks"}[want], have)
}
