package score

import (
	"maps"
	"slices"
)

// A Capability is one thing that a device can do, in the words of the industry.
type Capability string

// Capabilities.
const (
	CapFiles      Capability = "files"
	CapServices   Capability = "services"
	CapContainers Capability = "containers"
	CapHostname   Capability = "hostname"
	CapFirewall   Capability = "firewall"
	CapTimeSync   Capability = "timeSync"
	CapNetwork    Capability = "network"
	CapTools      Capability = "tools"
	CapJobs       Capability = "jobs"
)

// The interfaces below are capabilities as types: a profile that has a capability
// implements its interface. A kind states what it needs as a constraint on the
// profile of a Draft, so that a score which the profile cannot carry does not
// compile.
type (
	// Files is implemented by profiles with a file system that scores may write.
	Files interface{ HasFiles() }
	// Services is implemented by profiles with a service manager.
	Services interface{ HasServices() }
	// Containers is implemented by profiles with a container runtime.
	Containers interface{ HasContainers() }
	// HostNaming is implemented by profiles whose host name scores may set.
	HostNaming interface{ HasHostname() }
	// Firewalls is implemented by profiles whose kernel filters what comes in.
	Firewalls interface{ HasFirewall() }
	// TimeSyncing is implemented by profiles whose clock follows time servers.
	TimeSyncing interface{ HasTimeSync() }
	// Networking is implemented by profiles whose connections scores may set.
	Networking interface{ HasNetwork() }
	// Tools is implemented by profiles whose programs can be looked at.
	Tools interface{ HasTools() }
	// Jobs is implemented by profiles that run things to their end.
	Jobs interface{ HasJobs() }
)

// RaspberryPi is the profile of a Raspberry Pi OS trixie device: all capabilities.
type RaspberryPi struct{}

func (RaspberryPi) HasFiles()      {}
func (RaspberryPi) HasServices()   {}
func (RaspberryPi) HasContainers() {}
func (RaspberryPi) HasHostname()   {}
func (RaspberryPi) HasFirewall()   {}
func (RaspberryPi) HasTimeSync()   {}
func (RaspberryPi) HasNetwork()    {}
func (RaspberryPi) HasTools()      {}
func (RaspberryPi) HasJobs()       {}

// PiZero is the profile of a device without a container runtime, such as a Pi Zero,
// or a Raspberry Pi OS bookworm device, whose podman is too old for Quadlet.
type PiZero struct{}

func (PiZero) HasFiles()    {}
func (PiZero) HasServices() {}
func (PiZero) HasHostname() {}
func (PiZero) HasFirewall() {}
func (PiZero) HasTimeSync() {}
func (PiZero) HasNetwork()  {}
func (PiZero) HasTools()    {}
func (PiZero) HasJobs()     {}

var profiles = map[string]any{
	"raspberry-pi": RaspberryPi{},
	"pi-zero":      PiZero{},
}

// Profiles lists the names of the built-in profiles, sorted.
func Profiles() []string { return slices.Sorted(maps.Keys(profiles)) }

// capabilities says which interface a profile with a capability implements.
var capabilities = []struct {
	Capability
	of func(profile any) bool
}{
	{CapFiles, implements[Files]},
	{CapServices, implements[Services]},
	{CapContainers, implements[Containers]},
	{CapHostname, implements[HostNaming]},
	{CapFirewall, implements[Firewalls]},
	{CapTimeSync, implements[TimeSyncing]},
	{CapNetwork, implements[Networking]},
	{CapTools, implements[Tools]},
	{CapJobs, implements[Jobs]},
}

func implements[T any](profile any) bool {
	_, ok := profile.(T)
	return ok
}

// ProfileCapabilities lists what a built-in profile has; ok is false for an unknown one.
// The list is read off the profile's type, so that YAML and Go authors meet one table.
func ProfileCapabilities(name string) (caps []Capability, ok bool) {
	p, ok := profiles[name]
	if !ok {
		return nil, false
	}
	for _, c := range capabilities {
		if c.of(p) {
			caps = append(caps, c.Capability)
		}
	}
	return caps, true
}

// profileName is the name under which P is listed; it panics for a profile that is not.
func profileName[P any]() string {
	var zero P
	for name, p := range profiles {
		if p == any(zero) {
			return name
		}
	}
	panic("score: profile is not in the table of profiles")
}
