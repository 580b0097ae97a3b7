package memory

import (
	"context"

	"github.com/continuo-fleet/continuo/topology"
)

// plainFacts are those of a fresh Raspberry Pi.
func plainFacts() topology.Facts {
	return topology.Facts{
		Model: "Raspberry Pi 4 Model B Rev 1.5", Serial: "10000000c0ffee00", BootID: "00000000-0000-4000-8000-000000000001",
		OS:     topology.OS{ID: "debian", Version: "13", Codename: "trixie", Name: "Debian GNU/Linux 13 (trixie)"},
		Kernel: "6.12.47+rpt-rpi-v8", Arch: "aarch64", CPUs: 4, MemoryMiB: 3793,
		Disks:             []topology.Disk{{Path: "/", SizeMiB: 29 << 10, FreeMiB: 20 << 10}},
		ClockSynchronized: new(true),
		Interfaces:        []topology.Interface{{Name: "eth0", MAC: "02:00:00:00:00:07", Up: true, Addresses: []string{"192.0.2.7/24"}}},
	}
}

type facts struct{ d *Device }

// Facts hands out slices that are the device's own: who looks changes none of them.
func (f facts) Facts(ctx context.Context) (topology.Facts, error) {
	if err := f.d.control.call(ctx, OpFacts, "facts"); err != nil {
		return topology.Facts{}, err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	out := f.d.facts
	out.Hostname = f.d.host.Transient
	return out, nil
}

// SetFacts makes the device another one. The host name stays as it is.
func (d *Device) SetFacts(f topology.Facts) {
	d.hands(func() { d.facts = f })
}
