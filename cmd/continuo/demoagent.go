package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/blobs"
	"github.com/continuo-fleet/continuo/agent/health"
	"github.com/continuo-fleet/continuo/agent/natslink"
	"github.com/continuo-fleet/continuo/agent/secrets"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/fleet/localnats"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/standard"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
	"github.com/continuo-fleet/continuo/topology/pi"
)

// demoDevice is what an agent of the demonstration works on.
type demoDevice interface {
	standard.Needs
	topology.HasEvents
	topology.HasProbes
	topology.HasSecrets
	topology.HasBlobs
}

// A directory stands for a machine, with what an agent keeps on one.
type directory struct {
	*pi.Device
	root, state string
	secrets     *secrets.Store
	blobs       *blobs.Store
}

// keep gives the directory its secrets, and large contents from a fleet.
func (d *directory) keep(source blobs.Source) {
	d.secrets = secrets.Open(secrets.Options{Root: d.root, State: d.state})
	d.blobs = blobs.Open(d.state, source)
}

// Secrets are those in its /etc.
func (d *directory) Secrets() topology.Secrets { return d.secrets }

// Events tells about changes, those of secrets included.
func (d *directory) Events() topology.Events { return d.secrets.Events(d.Device.Events()) }

// Blobs are large contents.
func (d *directory) Blobs() topology.Blobs { return d.blobs }

// A demoAgent is a whole agent, real but for where it runs.
type demoAgent struct {
	config localnats.AgentConfig
	dev    demoDevice
	mem    *memory.Device // if it is in memory
	dir    *directory     // if it is on one
	root   string         // of that
	disk   store.FS
	trusts []byte // the trust root that it accepted last
	log    *logrus.Entry

	ready  chan struct{} // closed when the first pass is over
	stop   func()        // stops the agent; the device stays usable
	closed func() error  // gives up the device
}

// onDirectory starts an agent on a directory of the demonstration.
func (d *demo) onDirectory(ctx context.Context, id string) (*demoAgent, error) {
	root := filepath.Join(d.dir, id)
	if err := os.Mkdir(root, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the disk of %s: %w", id, err)
	}
	dev, err := pi.Open(ctx, pi.Options{Root: root})
	if err != nil {
		return nil, err
	}
	on := &directory{Device: dev, root: root, state: filepath.Join(d.dir, id+".state")}
	a := &demoAgent{dev: on, dir: on, root: root, disk: store.Dir(on.state), closed: dev.Close}
	return a, d.launch(ctx, id, a)
}

// inMemory starts an agent on a device in memory.
func (d *demo) inMemory(ctx context.Context, id string) (*demoAgent, error) {
	dev := memory.New()
	a := &demoAgent{dev: dev, mem: dev, disk: store.NewMem(), closed: func() error { return nil }}
	return a, d.launch(ctx, id, a)
}

// launch makes the device known to the server and starts its agent.
func (d *demo) launch(ctx context.Context, id string, a *demoAgent) (err error) {
	if a.config, err = d.srv.AddDevice(device(id)); err != nil {
		return err
	}
	log := logrus.New()
	log.SetOutput(&d.log)
	a.log = log.WithField("device", id)
	return a.start(ctx)
}

// start runs the agent until stop is called.
func (a *demoAgent) start(ctx context.Context) error {
	id := fleet.Device{Site: a.config.Site, ID: a.config.Device}
	first, err := fleet.ReadEnvelope(a.config.Root)
	if err != nil {
		return err
	}
	trust, err := natslink.TrustRoot(first, a.trusts, func(root []byte) error { a.trusts = root; return nil })
	if err != nil {
		return err
	}
	who := interpret.Agent{Version: cli.ThisBuild().Version, BootID: "demo", Instance: fmt.Sprintf("%s-%d", id, time.Now().UnixNano())}
	link, err := natslink.New(natslink.Options{
		Servers: a.config.Servers, Device: id, CredsFile: a.config.CredsFile, Trust: trust,
		Version: who.Version, BootID: who.BootID, Instance: who.Instance, Clock: time.Now,
	})
	if err != nil {
		return err
	}
	if a.dir != nil {
		a.dir.keep(link)
	}
	books, rec, err := store.Open(a.disk, store.Options{})
	if err != nil {
		return err
	}
	a.ready = make(chan struct{})
	ag := agent.New(agent.Config{
		Runner: &agent.Runner{
			Table: standard.Bind(a.dev), Store: books, Files: a.dev.Files(), Reach: link.Reach,
			Eyes: &health.Eyes{Probes: a.dev.Probes(), Services: a.dev.Services(), Containers: a.dev.Containers()},
		},
		Recovered: rec, Open: trust.Opener(id), Link: link, Events: a.dev.Events(),
		Supervisor: &whenReady{ready: a.ready}, Device: id.ID, Identity: who, Log: a.log,
	})
	halt := background(ctx, ag.Run)
	a.stop = sync.OnceFunc(func() {
		halt()
		_ = books.Close()
	})
	return nil
}

// wait waits for the first pass.
func (a *demoAgent) wait(ctx context.Context) error {
	select {
	case <-a.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finish stops the agent and gives up its device.
func (a *demoAgent) finish() {
	a.stop()
	_ = a.closed() // a device that is thrown away
}

// read is the content of a file, or nothing.
func (a *demoAgent) read(path string) string {
	b, err := os.ReadFile(filepath.Join(a.root, path))
	if err != nil {
		return ""
	}
	return string(b)
}

// identity changes when a file is replaced or written.
func (a *demoAgent) identity(path string) string {
	st, err := os.Stat(filepath.Join(a.root, path))
	if err != nil {
		return ""
	}
	inode := uint64(0)
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		inode = sys.Ino
	}
	return fmt.Sprint(inode, st.ModTime())
}

// whenReady is a supervisor that only wants to know when the first pass is over.
type whenReady struct{ ready chan struct{} }

func (w *whenReady) Ready()  { close(w.ready) }
func (*whenReady) Alive()    {}
func (*whenReady) Stopping() {}

// locked is text that several agents write.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// background runs f until the function it returns is called, which waits for its end.
func background(ctx context.Context, f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { f(ctx) })
	return func() {
		cancel()
		wg.Wait()
	}
}

// forge stores a document for a device that a key signed which nobody trusts, as somebody
// who got hold of the server could.
func (d *demo) forge(ctx context.Context, id string, generation uint64) error {
	key, err := nkeys.CreateAccount()
	if err != nil {
		return fmt.Errorf("cannot make a key: %w", err)
	}
	as := score.Assignment{APIVersion: score.APIVersion, Kind: score.AssignmentKind,
		Metadata: score.Metadata{Name: id, Generation: generation}, Spec: score.AssignmentSpec{Complete: true}}
	payload, err := score.Encode(as)
	if err != nil {
		return err
	}
	st := wire.Statement{Kind: wire.KindDevice, Audience: device(id).String(), Name: id, Generation: generation,
		Issued: wire.UnixSeconds(time.Now()), Media: wire.MediaAssignment}
	frame, err := wire.Seal(st, payload, key)
	if err != nil {
		return err
	}
	nc, err := d.srv.Operator().Dial()
	if err != nil {
		return fmt.Errorf("cannot forge: %w", err)
	}
	defer nc.Close()
	m := &nats.Msg{Subject: wire.DesiredSubject(wire.DeviceKey(device(id))), Header: wire.Announce(st), Data: frame}
	return errors.Join(nc.PublishMsg(m), nc.FlushWithContext(ctx))
}
