// Package pi is a Raspberry Pi, or any Linux machine with systemd: files of the
// kernel, services and jobs of systemd, containers of podman under systemd (Quadlet),
// connections of NetworkManager or systemd-networkd, tables of nftables, and the host
// name and time of hostnamed, timedated and timesyncd. What it leaves behind is native:
// the usual tools show it and manage it, and it goes on without the program that made it.
//
// A part that the machine lacks answers with a fault, topology.CodeUnavailable, whose
// text says what is missing; the other parts work. Connections are made when they are
// first needed and made again when they break.
//
// The package does not know what a score is, decides nothing, and keeps no books: marks
// on the things themselves are all it remembers.
package pi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// Options of a Device. The zero value is the running machine.
type Options struct {
	// Root is a directory that holds the file tree of a machine that does not run, such
	// as a mounted image. Paths are below it, accounts are its own, and no link leads out
	// of it. What is neither a file nor read from files is unavailable then.
	Root string

	// State is the directory of the agent's books. Its file system is a fact of the device
	// beside the root, and what an open checkpoint brings back is kept in it. Default for
	// the latter: /var/lib/continuo.
	State string

	// Revert is the program, with arguments, that calls the function Revert with its last
	// argument, however the process that opened a checkpoint ends. Default: this program,
	// with the argument "revert".
	Revert []string

	// Version of the program that asks, which is a tool like any other.
	Version string

	// JobEnded is the program, with arguments, that calls the function JobEnded with its last
	// argument. Default: this program, with the argument "job-ended".
	JobEnded []string

	// Settle is how long Start, Restart and Run watch what they started. Default: 1 s.
	Settle time.Duration

	// MaxAge is how long what podman said about a container is believed while the service
	// manager reports no change. It bounds how late a change that podman alone knows, such
	// as a pause, is seen. Default: 5 min.
	MaxAge time.Duration

	// Plaintext are the registries, HOST or HOST:PORT, that may be asked for images without
	// encryption. All others are asked with it, whatever podman's own configuration says.
	Plaintext []string
}

// Device is the machine. Its methods may be called from several goroutines at once.
type Device struct {
	files      *files
	services   *services
	managers   *managers
	containers *containers
	volumes    *volumes
	bridges    *containerNetworks
	host       *host
	clock      *clock
	firewall   *firewall
	events     *events
	facts      *facts
	network    *network
	tools      *tools
	jobs       *jobRunner
}

var _ interface {
	topology.HasFiles
	topology.HasSnapshots
	topology.HasServices
	topology.HasContainers
	topology.HasVolumes
	topology.HasContainerNetworks
	topology.HasHost
	topology.HasFirewall
	topology.HasTime
	topology.Recoverer
	topology.HasEvents
	topology.HasFacts
	topology.HasNetwork
	topology.HasTools
	topology.HasJobs
} = (*Device)(nil)

// Open returns the device. It fails only if the file tree itself cannot be opened. The
// values of ctx are kept, its end is not: a device lives until Close.
func Open(ctx context.Context, o Options) (*Device, error) {
	if o.Settle <= 0 {
		o.Settle = time.Second
	}
	if o.MaxAge <= 0 {
		o.MaxAge = 5 * time.Minute
	}
	state := cmp.Or(o.State, "/var/lib/continuo")
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	if len(o.Revert) == 0 {
		o.Revert = []string{self, "revert"}
	}
	if len(o.JobEnded) == 0 {
		o.JobEnded = []string{self, "job-ended"}
	}
	t, err := openTree(o.Root)
	if err != nil {
		return nil, fmt.Errorf("cannot open the file tree of the device: %w", err)
	}
	b := newBus(context.WithoutCancel(ctx), o.Root != "")
	f := &files{tree: t, accounts: newAccounts(t)}
	s := &services{
		bus: b, files: f, reload: newReloader(b, unitDirs, reloadMark), settle: o.Settle, dir: unitDir,
		cgroup: cgroupRoot, runs: filepath.Join(state, "runs"), journal: newJournal(),
	}
	m := newManagers(s)
	f.changed = m.changed
	c := newContainers(s, o)
	return &Device{
		files:      f,
		services:   s,
		managers:   m,
		containers: c,
		volumes:    &volumes{containers: c},
		bridges:    &containerNetworks{containers: c},
		jobs:       &jobRunner{s, c, filepath.Join(state, "jobs"), o.JobEnded, jobPatience},
		host:       &host{b, f},
		clock:      &clock{b, f, s},
		firewall:   &firewall{below: o.Root != "", services: s, dir: filepath.Join(state, "checkpoints"), revert: o.Revert},
		events:     &events{bus: b, root: o.Root},
		facts:      newFacts(o.Root, o.State),
		network:    newNetwork(s),
		tools:      newTools(b, o.Root != "", o.Version),
	}, nil
}

// Close ends all connections. Calls that are under way return with a fault.
func (d *Device) Close() error {
	d.managers.close()
	d.facts.close()
	return d.files.tree.close()
}

// Files is the file system.
func (d *Device) Files() topology.Files { return d.files }

// Snapshots read many files together.
func (d *Device) Snapshots() topology.Snapshots { return d.files }

// Services is systemd: its manager of the system, and those of users.
func (d *Device) Services() topology.Services { return d.managers }

// Volumes are podman's.
func (d *Device) Volumes() topology.Volumes { return d.volumes }

// ContainerNetworks are podman's.
func (d *Device) ContainerNetworks() topology.ContainerNetworks { return d.bridges }

// Containers is podman, under systemd.
func (d *Device) Containers() topology.Containers { return d.containers }

// Time is systemd-timesyncd, and the time zone.
func (d *Device) Time() topology.Time { return d.clock }

// Firewall is a table of nftables.
func (d *Device) Firewall() topology.Firewall { return d.firewall }

// Recover brings back what checkpoints hold that a process which is gone left open.
func (d *Device) Recover(ctx context.Context) ([]topology.Resource, error) {
	of, err := d.firewall.recover(ctx) // first: what it shuts out may be the way to the network
	more, netErr := d.network.recover(ctx)
	return append(of, more...), errors.Join(err, netErr)
}

// Host is the host name.
func (d *Device) Host() topology.Host { return d.host }

// Jobs are transient units.
func (d *Device) Jobs() topology.Jobs { return d.jobs }

// Tools are the programs of the machine.
func (d *Device) Tools() topology.ToolReader { return d.tools }

// Facts is what the kernel, the firmware and the packages tell.
func (d *Device) Facts() topology.FactReader { return d.facts }

// Network is the connections, as NetworkManager or systemd-networkd keeps them.
func (d *Device) Network() topology.Network { return d.network }

// Events tells about changes that were made by whomever.
func (d *Device) Events() topology.Events { return d.events }
