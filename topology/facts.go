package topology

import (
	"context"
	"strconv"
)

// Facts are what a device is, as it finds out itself. Nobody wishes them, and they select
// nothing: what a device says of itself is no authority over what is sent to it. What a
// machine does not tell is left out. All of it is bounded, and none of it is trusted.
type Facts struct {
	// Hostname is the name that the kernel has.
	Hostname string `json:"hostname,omitempty"`
	// Model of the machine, such as Raspberry Pi 4 Model B Rev 1.5.
	Model string `json:"model,omitempty"`
	// Serial number of the machine.
	Serial string `json:"serial,omitempty"`
	// BootID changes when the device boots.
	BootID string `json:"bootId,omitempty"`
	// OS that is installed.
	OS OS `json:"os,omitzero"`
	// Kernel is the release of the kernel that runs.
	Kernel string `json:"kernel,omitempty"`
	// Arch is the machine as the kernel names it: aarch64, armv7l, x86_64.
	Arch string `json:"arch,omitempty"`
	// CPUs counts the processors that are in use.
	CPUs int `json:"cpus,omitzero"`
	// MemoryMiB is what the kernel can use, in MiB.
	MemoryMiB uint64 `json:"memoryMiB,omitzero"`
	// Disks are the file systems that the device lives on: the root, and that of the agent's state if it is another.
	Disks []Disk `json:"disks,omitempty"`
	// Cards are SD cards and eMMC, with what they say of their health.
	Cards []Card `json:"cards,omitempty"`
	// Temperature of the processor, in degrees Celsius.
	Temperature *float64 `json:"temperature,omitempty"`
	// Power is what the board has seen of its supply, where it tells.
	Power *Power `json:"power,omitempty"`
	// ClockSynchronized tells whether the kernel counts its clock as set by a time server; left out if it does not say.
	ClockSynchronized *bool `json:"clockSynchronized,omitempty"`
	// Interfaces of the network with their addresses, without those of containers.
	Interfaces []Interface `json:"interfaces,omitempty"`
	// RebootRequired is true while something that was installed takes effect with the next boot only.
	RebootRequired bool `json:"rebootRequired,omitzero"`
	// RebootFor names the packages that want it, where they are known; at most 20.
	RebootFor []string `json:"rebootFor,omitempty"`
}

// An OS is what a machine says in os-release.
type OS struct {
	// ID such as debian or raspbian.
	ID string `json:"id,omitempty"`
	// Version such as 13.
	Version string `json:"version,omitempty"`
	// Codename such as trixie.
	Codename string `json:"codename,omitempty"`
	// Name for people, such as Debian GNU/Linux 13 (trixie).
	Name string `json:"name,omitempty"`
}

// A Disk is one file system.
type Disk struct {
	// Path that was asked for.
	Path string `json:"path"`
	// SizeMiB is all of it, in MiB.
	SizeMiB uint64 `json:"sizeMiB"`
	// FreeMiB is what programs may still write, in MiB.
	FreeMiB uint64 `json:"freeMiB"`
	// ReadOnly is true if nothing can be written to it.
	ReadOnly bool `json:"readOnly,omitzero"`
}

// A Card is an SD card or an eMMC. Most SD cards tell who made them and nothing of their health.
type Card struct {
	// Device such as mmcblk0.
	Device string `json:"device"`
	// Type is SD or MMC.
	Type string `json:"type,omitempty"`
	// Name of the product, as the card has it.
	Name string `json:"name,omitempty"`
	// Manufacturer as the number that the card has, such as 0x000003.
	Manufacturer string `json:"manufacturer,omitempty"`
	// Date when it was made, such as 05/2021.
	Date string `json:"date,omitempty"`
	// LifeUsedPercent is how much of its life is used at most, in steps of ten, where the card tells: 110 is beyond it.
	LifeUsedPercent int `json:"lifeUsedPercent,omitzero"`
	// Reserve is how much it has left of its spare blocks, where the card tells: normal, warning (80 % are used) or urgent (90 %).
	Reserve string `json:"reserve,omitempty"`
}

// Power is what a board has seen of its supply. What has occurred is remembered until the next boot.
type Power struct {
	// UnderVoltage is true while the supply is too weak.
	UnderVoltage bool `json:"underVoltage,omitzero"`
	// UnderVoltageOccurred is true if it was too weak since the boot.
	UnderVoltageOccurred bool `json:"underVoltageOccurred,omitzero"`
	// Throttled is true while the processor is slowed down for want of power or for heat.
	Throttled bool `json:"throttled,omitzero"`
	// ThrottledOccurred is true if it was slowed down since the boot.
	ThrottledOccurred bool `json:"throttledOccurred,omitzero"`
	// FrequencyCapped is true while the processor may not run at its full speed.
	FrequencyCapped bool `json:"frequencyCapped,omitzero"`
	// FrequencyCappedOccurred is true if that was so since the boot.
	FrequencyCappedOccurred bool `json:"frequencyCappedOccurred,omitzero"`
	// TemperatureLimit is true while the soft limit of the temperature is in force.
	TemperatureLimit bool `json:"temperatureLimit,omitzero"`
	// TemperatureLimitOccurred is true if that was so since the boot.
	TemperatureLimitOccurred bool `json:"temperatureLimitOccurred,omitzero"`
}

// An Interface is one interface of the network.
type Interface struct {
	// Name such as eth0.
	Name string `json:"name"`
	// MAC is its hardware address.
	MAC string `json:"mac,omitempty"`
	// Up is true if it is switched on and has a link.
	Up bool `json:"up,omitzero"`
	// Addresses with their prefixes, such as 192.0.2.7/24.
	Addresses []string `json:"addresses,omitempty"`
}

// A FactReader finds out what a device is.
type FactReader interface {
	// Facts looks, starts no process, and leaves out what the machine does not tell. The
	// error is that of ctx.
	Facts(ctx context.Context) (Facts, error)
}

// HasFacts is implemented by topologies that know what they are.
type HasFacts interface{ Facts() FactReader }

// Text returns the facts that a template may use, by name: those that stay the same from
// one look to the next, while nobody changes the machine or upgrades it. What is not known
// is left out. The names are a closed set: hostname, model, serial, os, osVersion,
// osCodename, osName, kernel, arch, cpus, memoryMiB.
func (f Facts) Text() map[string]string {
	out := map[string]string{
		"hostname": f.Hostname, "model": f.Model, "serial": f.Serial,
		"os": f.OS.ID, "osVersion": f.OS.Version, "osCodename": f.OS.Codename, "osName": f.OS.Name,
		"kernel": f.Kernel, "arch": f.Arch,
	}
	if f.CPUs > 0 {
		out["cpus"] = strconv.Itoa(f.CPUs)
	}
	if f.MemoryMiB > 0 {
		out["memoryMiB"] = strconv.FormatUint(f.MemoryMiB, 10)
	}
	for name, text := range out {
		if text == "" {
			delete(out, name)
		}
	}
	return out
}
