package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/boots"
	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/agent/health"
	"github.com/continuo-fleet/continuo/agent/natslink"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/standard"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/pi"
)

// parts is everything that an agent is made of, each of them replaceable.
type parts struct {
	disk       store.FS
	device     device
	contents   agent.Contents
	sweeper    agent.Sweeper
	boots      agent.Boots
	link       agent.Link
	reach      func(context.Context) error
	open       agent.Open
	supervisor agent.Supervisor
	beat       time.Duration
	log        *logrus.Entry
}

// device is what the built-in kinds need, events and probes.
type device interface {
	standard.Needs
	topology.HasEvents
	topology.HasProbes
	topology.HasFacts
	topology.HasSecrets
	topology.HasBlobs
}

// assemble is the one place where an agent is put together. The store is the caller's
// to close, when the agent has stopped.
func assemble(c config.Config, id interpret.Agent, p parts) (*agent.Agent, *store.Store, error) {
	books, rec, err := store.Open(p.disk, store.Options{})
	if err != nil {
		return nil, nil, err
	}
	runner := runnerOf(p.device, books, c)
	runner.Reach = p.reach
	storage, _ := p.device.(agent.Storage) // not every device has one that a power cut damages
	a := agent.New(agent.Config{
		Runner:     runner,
		Recovered:  rec,
		Open:       p.open,
		Link:       p.link,
		Events:     p.device.Events(),
		Containers: p.device.Containers(),
		Contents:   p.contents,
		Images:     p.device.Containers(),
		Supervisor: p.supervisor,
		Sweeper:    p.sweeper,
		Storage:    storage,
		Boots:      p.boots,
		Self:       &agent.Self{Facts: p.device.Facts(), Tools: p.device.Tools()},
		Device:     c.Device,
		Identity:   id,
		Relist:     time.Duration(c.Relist),
		Beat:       p.beat,
		Log:        p.log,
	})
	return a, books, nil
}

// runnerOf plays scores on a device, under its ceiling.
func runnerOf(dev device, books *store.Store, c config.Config) *agent.Runner {
	checkpoints, _ := dev.(topology.Recoverer) // not every device can be cut off
	var ending func(context.Context) bool
	if machine, real := dev.(interface{ ShuttingDown(context.Context) bool }); real {
		ending = machine.ShuttingDown
	}
	return &agent.Runner{
		Ending:       ending,
		Synchronized: func() bool { return !trustedTime().IsZero() },
		Checkpoints:  checkpoints, Boot: identity().BootID,
		Table: standard.Bind(dev), Store: books, Files: dev.Files(), Ceiling: c.Ceiling,
		Eyes: &health.Eyes{Probes: dev.Probes(), Services: dev.Services(), Containers: dev.Containers()},
	}
}

// newLink makes the link of a device to its fleet. It connects when it is run.
func newLink(c config.Config, trust *natslink.Trust, id interpret.Agent, notice func(error)) (*natslink.Link, error) {
	if err := c.CheckFiles(); err != nil {
		return nil, err
	}
	o := natslink.Options{
		Servers: c.Servers, Device: c.Identity(),
		CA: c.TLS.CA, Cert: c.TLS.Cert, Key: c.TLS.Key, Plaintext: c.TLS.Plaintext,
		Trust:   trust,
		Version: id.Version, Build: cli.ThisBuild().Commit, BootID: id.BootID, Instance: id.Instance, Serial: boardOf(c),
		Window: readWindow(c.StateDir()), KeepWindow: keepWindow(c.StateDir()), Clock: trustedTime,
		Notice: notice,
	}
	switch c.Credentials.Type {
	case config.CredentialsNkey:
		o.SeedFile = c.Credentials.File
	case config.CredentialsCreds:
		o.CredsFile = c.Credentials.File
		o.KeepCreds, o.BackFile = keepCreds(c.Credentials.File), c.Credentials.File+backSuffix
	}
	return natslink.New(o)
}

// boardOf is the serial number of the board. What is tried out in a directory is on no board of its own.
func boardOf(c config.Config) string {
	if c.Root != "" {
		return ""
	}
	return pi.Serial()
}

// realParts makes the parts of a real device. close gives them up.
func realParts(ctx context.Context, c config.Config, id interpret.Agent, log *logrus.Entry) (p parts, close func() error, err error) {
	trust, err := trustOf(c)
	if err != nil {
		return p, nil, err
	}
	link, err := newLink(c, trust, id, func(err error) {
		if err != nil {
			log.WithError(err).Warn("cannot connect to the fleet; it is tried again, and what was accepted stays in force")
		} else {
			log.Info("connected to the fleet")
		}
	})
	if err != nil {
		return p, nil, err
	}
	dev, err := openMachine(ctx, c, link, false)
	if err != nil {
		return p, nil, err
	}
	var begun agent.Boots
	if c.Root == "" { // a directory is not switched off
		begun = orderly{boots.Open(c.StateDir(), id.BootID), dev.Device}
	}
	return parts{
		boots: begun,
		disk:  store.Dir(c.StateDir()), device: dev, contents: dev.blobs, sweeper: sweeper{ctx, dev.Device}, link: link, reach: link.Reach,
		open: trust.Opener(c.Identity()), supervisor: systemd{log}, beat: beat(log), log: log,
	}, dev.Close, nil
}

// sweeper lets the agent sweep without a context: it does so before anything else, and
// its end is the end of the program.
type sweeper struct {
	ctx context.Context
	dev *pi.Device
}

func (s sweeper) SweepTemp(dirs []string) error {
	_, err := s.dev.SweepTemp(s.ctx, dirs)
	return err
}

// orderly are boots of a device: they end in order when the service manager ends everything, and not
// when it ends the agent alone.
type orderly struct {
	*boots.Boots
	dev *pi.Device
}

func (o orderly) End(ctx context.Context) error {
	if !o.dev.ShuttingDown(ctx) {
		return nil
	}
	return o.Boots.End()
}

// hide keeps what the program holds in memory, secrets among it, out of core dumps, whatever
// becomes of it, and from every debugger that is not root's. Somebody else than root could not
// look at the program's own files in /proc any more, and is left as he is.
func hide() {
	if os.Geteuid() == 0 {
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	}
}

// identity is who reports.
func identity() interpret.Agent {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		boot = nil // not Linux, or no /proc: then restarts cannot be told from boots
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return interpret.Agent{Version: cli.ThisBuild().Version, BootID: strings.TrimSpace(string(boot)), Instance: hex.EncodeToString(b[:])}
}

// trustedTime is the time if the kernel says that the clock is synchronized. A Pi has no
// clock of its own: before it has asked the network it lives in the past.
func trustedTime() time.Time {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil || state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0 {
		return time.Time{}
	}
	return time.Now()
}
