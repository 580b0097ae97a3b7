// Package memory is a whole device in memory, with every capability of package topology,
// with faults on demand and hands that change things behind the agent's back.
// It serves tests, simulators and dry runs.
//
// It is a model, not an emulator: programs are names that run on or end with a status,
// as the test says, and the service manager knows of a definition only what the
// capability can show. It passes topology/conform, as a real device does.
package memory

import (
	"fmt"
	"sync"

	"github.com/continuo-fleet/continuo/topology"
)

// A Device is a device in memory. All methods may be called from several goroutines.
//
// The methods of its capabilities are what an agent calls. All other methods are the
// hands of somebody else: they need no context, ask nobody and are not recorded.
type Device struct {
	mu    sync.Mutex
	moved chan struct{} // closed and replaced whenever anything changes

	files      map[string]*inode
	mounts     map[string]FS
	inodes     uint64
	users      map[string]uint32
	groups     map[string]uint32
	units      map[string]*unit
	lingers    map[string]bool // users whose service manager runs
	programs   map[string]Program
	manager    manager
	counter    int // of processes, invocations and container ids
	containers map[string]*container
	images     map[string]Image // on the device
	newest     map[string]Image // what the registry had when it was asked last, fetched
	replaced   []Image          // fetched, and without a name since another came in their place
	fetched    map[string]bool  // by reference and digest: nobody else brought it
	volumes    map[string]topology.VolumeState
	bridges    map[string]topology.ContainerNetworkState
	registry   map[string]*Image // nil: the registry does not have it
	offline    bool              // the registry cannot be reached

	controllersOff map[string]bool // controllers of the kernel that are off
	damaged        map[string]bool // images that are here and cannot be used

	host      topology.HostState
	facts     topology.Facts
	tools     map[string][]topology.ToolCopy
	jobs      map[string]topology.JobState
	jobEnds   map[string]JobEnd
	jobRuns   map[string]int
	endpoints map[string]Endpoint // by address
	secrets   map[string]secret
	secretKey string
	blobs     map[string][]byte // on the device, by sha256
	offered   map[string][]byte // in the fleet, by sha256

	clock    topology.TimeState
	firewall topology.FirewallState
	open     map[topology.Resource]*checkpoint
	net      connections

	watchers map[*watcher]bool
	control  control
}

// New returns a device as a fresh installation leaves it: the usual directories and
// accounts, no services, and a registry that has every image.
func New() *Device {
	d := &Device{
		moved: make(chan struct{}),
		files: map[string]*inode{}, mounts: map[string]FS{},
		users:  map[string]uint32{"root": 0, "daemon": 1, "pi": 1000, "nobody": 65534},
		groups: map[string]uint32{"root": 0, "daemon": 1, "pi": 1000, "nogroup": 65534},
		units:  map[string]*unit{}, programs: map[string]Program{"/bin/false": {Exits: true, Status: 1}, "/bin/true": {Exits: true}},
		containers: map[string]*container{}, images: map[string]Image{}, newest: map[string]Image{}, fetched: map[string]bool{}, volumes: map[string]topology.VolumeState{}, bridges: map[string]topology.ContainerNetworkState{}, registry: map[string]*Image{},
		host:  topology.HostState{Static: "raspberrypi", Transient: "raspberrypi"},
		facts: plainFacts(), tools: plainTools(),
		jobs: map[string]topology.JobState{}, jobEnds: map[string]JobEnd{}, jobRuns: map[string]int{},
		clock:    freshClock(),
		open:     map[topology.Resource]*checkpoint{},
		net:      newConnections(),
		watchers: map[*watcher]bool{}, controllersOff: map[string]bool{}, damaged: map[string]bool{}, endpoints: map[string]Endpoint{},
		secrets: map[string]secret{}, secretKey: "of this device", blobs: map[string][]byte{}, offered: map[string][]byte{},
	}
	for _, dir := range []string{"/", "/boot", "/dev", "/etc", "/home", "/opt", "/run", "/srv", "/tmp", "/usr", "/var"} {
		d.files[dir] = d.node(topology.Directory, 0o755)
	}
	return d
}

// Files of the device.
func (d *Device) Files() topology.Files { return files{d} }

// Snapshots read many files together.
func (d *Device) Snapshots() topology.Snapshots { return files{d} }

// Services of the device.
func (d *Device) Services() topology.Services { return services{d} }

// Containers of the device.
func (d *Device) Containers() topology.Containers { return containers{d} }

// Time is the clock.
func (d *Device) Time() topology.Time { return clock{d} }

// Firewall is the filter of what comes in.
func (d *Device) Firewall() topology.Firewall { return firewall{d} }

// Host is the name of the device.
func (d *Device) Host() topology.Host { return host{d} }

// Jobs of the device.
func (d *Device) Jobs() topology.Jobs { return jobs{d} }

// Tools of the device.
func (d *Device) Tools() topology.ToolReader { return tools{d} }

// Facts of the device.
func (d *Device) Facts() topology.FactReader { return facts{d} }

// Events of the device.
func (d *Device) Events() topology.Events { return events{d} }

// Probes of the device.
func (d *Device) Probes() topology.Prober { return prober{d} }

// Plain is a device with a file system and nothing else.
type Plain struct{ d *Device }

// FilesOnly shows the file system of d, and that d has nothing else.
func (d *Device) FilesOnly() Plain { return Plain{d} }

// Files of the device.
func (p Plain) Files() topology.Files { return p.d.Files() }

// Tools of the device.
func (p Plain) Tools() topology.ToolReader { return p.d.Tools() }

// Facts of the device.
func (p Plain) Facts() topology.FactReader { return p.d.Facts() }

// Events of the device.
func (p Plain) Events() topology.Events { return p.d.Events() }

// Probes of the device.
func (p Plain) Probes() topology.Prober { return p.d.Probes() }

// Small is a device without a container runtime.
type Small struct{ d *Device }

// WithoutContainers shows d without its container runtime.
func (d *Device) WithoutContainers() Small { return Small{d} }

// Files of the device.
func (s Small) Files() topology.Files { return s.d.Files() }

// Services of the device.
func (s Small) Services() topology.Services { return s.d.Services() }

// Time is the clock.
func (s Small) Time() topology.Time { return s.d.Time() }

// Firewall is the filter of what comes in.
func (s Small) Firewall() topology.Firewall { return s.d.Firewall() }

// Host is the name of the device.
func (s Small) Host() topology.Host { return s.d.Host() }

// Jobs of the device.
func (s Small) Jobs() topology.Jobs { return s.d.Jobs() }

// Tools of the device.
func (s Small) Tools() topology.ToolReader { return s.d.Tools() }

// Facts of the device.
func (s Small) Facts() topology.FactReader { return s.d.Facts() }

// Events of the device.
func (s Small) Events() topology.Events { return s.d.Events() }

// Probes of the device.
func (s Small) Probes() topology.Prober { return s.d.Probes() }

// hands runs f as somebody else on the device.
func (d *Device) hands(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// next returns a number that was not used before.
func (d *Device) next() int {
	d.counter++
	return d.counter
}

// fresh returns an identifier that was not used before.
func (d *Device) fresh() string { return fmt.Sprintf("%032x", d.next()) }
