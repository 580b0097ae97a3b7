package score

import (
	"slices"
	"strings"
)

// KernelCapabilities are parts of the rights of root, by the names of the kernel without
// CAP_. A container cannot have all of them.
type KernelCapabilities struct {
	// Add are those that it has beside the usual ones.
	Add []string `json:"add,omitempty" jsonschema:"example=NET_ADMIN"`
	// Drop are those of the usual ones that it lacks; ALL is all of them.
	Drop []string `json:"drop,omitempty" jsonschema:"example=ALL"`
}

// ContainerLimits bound what a container may use. They need the controllers of the kernel: on
// a Raspberry Pi that of the memory is off unless cmdline.txt has cgroup_enable=memory.
type ContainerLimits struct {
	// Memory that it may use: 6Mi at least. A program that needs more is killed.
	Memory Bytes `json:"memory,omitzero"`
	// CPU is its share of the processors: 100% is one of them.
	CPU Percent `json:"cpu,omitzero"`
	// PIDs is how many processes and threads it may have: 8 at least.
	PIDs int `json:"pids,omitzero" jsonschema:"minimum=8,maximum=4194304,example=100"`
}

// A LogDriver says who keeps the output of a container.
type LogDriver string

// Log drivers.
const (
	LogJournal LogDriver = "journald" // the journal of the device, with its limits
	LogFile    LogDriver = "k8s-file" // a file of its own, of a bounded size
	LogNone    LogDriver = "none"     // nobody
)

// ContainerLog says where the output of a container goes.
type ContainerLog struct {
	// Driver keeps the output: journald (the journal, about 1000 lines in 30s), k8s-file (a file, see maxSize), or none.
	Driver LogDriver `json:"driver" jsonschema:"enum=journald,enum=k8s-file,enum=none,example=journald"`
	// MaxSize of the file of driver k8s-file, which begins anew when it is that large. If it is left out, 10Mi.
	MaxSize Bytes `json:"maxSize,omitzero"`
}

// DefaultLogSize is the maxSize of a log in a file that says none.
const DefaultLogSize Bytes = 10 << 20

var kernelCapabilities = strings.Fields(`AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN
	DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD
	NET_ADMIN NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYSLOG SYS_ADMIN SYS_BOOT
	SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG WAKE_ALARM`)

const (
	leastMemory = Bytes(6 << 20) // what runtimes take
	leastPIDs   = 8
	mostPIDs    = 4194304 // of the kernel
	leastLog    = Bytes(64 << 10)
)

// checkRights looks at what the container may do and use.
func (c Container) checkRights(r *Report) {
	if k := c.Capabilities; k != nil {
		at := r.At("capabilities")
		if len(k.Add)+len(k.Drop) == 0 {
			at.Errorf("capabilities says nothing: give add or drop, or leave it out")
		}
		checkCapabilities(at.At("add"), k.Add)
		checkCapabilities(at.At("drop"), k.Drop)
		if slices.Contains(k.Add, "ALL") {
			at.At("add").Errorf("a container with all capabilities is root on the device: name those that it needs")
		}
		for i, name := range k.Add {
			if slices.Contains(k.Drop, name) {
				at.At("add", i).Errorf("%s is in drop, too", name)
			}
		}
	}
	if l := c.Limits; l != nil {
		l.check(r.At("limits"))
	}
	if l := c.Log; l != nil {
		at := r.At("log")
		drivers := []string{string(LogJournal), string(LogFile), string(LogNone)}
		switch {
		case !slices.Contains(drivers, string(l.Driver)):
			at.At("driver").Errorf("unknown driver %q%s", l.Driver, didYouMean(string(l.Driver), drivers))
		case l.MaxSize != 0 && l.Driver != LogFile:
			at.At("maxSize").Errorf("maxSize goes with driver k8s-file: the journal has limits of its own, for the whole device (SystemMaxUse in journald.conf)")
		case l.MaxSize != 0 && l.MaxSize < leastLog:
			at.At("maxSize").Errorf("maxSize %s must be %s at least", l.MaxSize, leastLog)
		}
	}
}

func (l ContainerLimits) check(r *Report) {
	if l == (ContainerLimits{}) {
		r.Errorf("limits says nothing: give memory, cpu or pids, or leave it out")
	}
	if l.Memory != 0 && l.Memory < leastMemory {
		r.At("memory").Errorf("memory %s must be %s at least", l.Memory, leastMemory)
	}
	if l.PIDs != 0 && (l.PIDs < leastPIDs || l.PIDs > mostPIDs) {
		r.At("pids").Errorf("pids %d must be from %d to %d", l.PIDs, leastPIDs, mostPIDs)
	}
}

func checkCapabilities(r *Report, names []string) {
	for i, name := range names {
		if name != "ALL" && !slices.Contains(kernelCapabilities, name) {
			r.At(i).Errorf("unknown capability %q%s", name, didYouMean(strings.TrimPrefix(strings.ToUpper(name), "CAP_"), kernelCapabilities))
		}
		if slices.Contains(names[:i], name) {
			r.At(i).Errorf("%s is given twice", name)
		}
	}
}
