package fleet_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/natslink"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/natstest"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/standard"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

var (
	pi1  = fleet.Device{Site: "main", ID: "pi-1"}
	pi10 = fleet.Device{Site: "main", ID: "pi-10"}
)

// patience is how long something may take that is about to happen. Only a failing test waits so long.
const patience = 20 * time.Second

// A rig is a server with the fleet's side connected to it.
type rig struct {
	t    *testing.T
	srv  *natstest.Server
	keys fleet.Keys
	*fleet.Fleet
}

func newRig(t *testing.T, devices ...fleet.Device) *rig {
	t.Helper()
	r := &rig{t: t, srv: natstest.Start(t, devices...)}
	var err error
	if r.keys, err = fleet.OpenKeys(filepath.Join(t.TempDir(), "keys")); err != nil {
		t.Fatal(err)
	}
	r.Fleet = r.connect(r.srv.Operator)
	return r
}

// connect connects with a key, as a command does with a credentials file.
func (r *rig) connect(key nkeys.KeyPair) *fleet.Fleet {
	r.t.Helper()
	f, err := fleet.Connect(r.t.Context(), fleet.Options{Server: r.srv.URL, Creds: r.srv.Creds(key), Getenv: none, ConfigDir: r.t.TempDir()})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(f.Close)
	return f
}

func none(string) string { return "" }

// serve runs a control service until stop is called or the test ends.
func (r *rig) serve(o fleet.ServeOptions) (stop func()) {
	r.t.Helper()
	operator, _, err := r.keys.Trusted()
	if err != nil {
		r.t.Fatal(err)
	}
	o.Signer = r.keys.Control
	if o.Keys, err = fleet.DocumentKeys(operator); err != nil { // a trust root says so in its place
		r.t.Fatal(err)
	}
	f := r.connect(r.srv.Controller)
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Serve(ctx, o) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				r.t.Error(err)
			}
			f.Close()
		})
	}
	r.t.Cleanup(stop)
	return stop
}

// trusting is the trust of a device in an operator's key and a control service's.
func trusting(t *testing.T, operator, control string) *natslink.Trust {
	t.Helper()
	documents, err1 := fleet.DocumentKeys(operator)
	operations, err2 := fleet.ApprovalKeys(operator)
	answers, err3 := fleet.ControlKeys(control)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return natslink.TrustKeys(documents, operations, answers)
}

// A device is a real agent on a device in memory.
type device struct {
	*memory.Device
	agent *agent.Agent
	link  *natslink.Link
	disk  *store.Mem
	stop  func()
}

// device starts the agent of d.
func (r *rig) device(d fleet.Device, change ...func(*natslink.Options)) *device {
	r.t.Helper()
	return r.deviceOn(d, memory.New(), store.NewMem(), change...)
}

func (r *rig) deviceOn(d fleet.Device, dev *memory.Device, disk *store.Mem, change ...func(*natslink.Options)) *device {
	r.t.Helper()
	operator, control, err := r.keys.Trusted()
	if err != nil {
		r.t.Fatal(err)
	}
	o := natslink.Options{Servers: []string{r.srv.URL}, Device: d, CredsFile: r.srv.Creds(r.srv.DeviceKey(d)), Version: "test", BootID: "boot", Instance: rand(), Clock: time.Now}
	o.Trust = trusting(r.t, operator, control)
	for _, c := range change {
		c(&o)
	}
	books, recovered, err := store.Open(disk, store.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	dv := &device{Device: dev, disk: disk}
	if dv.link, err = natslink.New(o); err != nil {
		r.t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	dv.agent = agent.New(agent.Config{
		Runner: &agent.Runner{Table: standard.Bind(dev), Store: books, Files: dev.Files(), Uncertain: recovered.Lost()}, Recovered: recovered,
		Open: o.Trust.Opener(d), Link: dv.link, Events: dev.Events(), Self: &agent.Self{Facts: dev.Facts(), Tools: dev.Tools()}, Device: d.ID,
		Identity: interpret.Agent{Version: "test", BootID: o.BootID, Instance: o.Instance}, Log: logrus.NewEntry(log),
	})
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() { dv.agent.Run(ctx); close(done) }()
	var once sync.Once
	dv.stop = func() { once.Do(func() { cancel(); <-done }) }
	r.t.Cleanup(dv.stop)
	return dv
}

func rand() string {
	kp, err := nkeys.CreateUser()
	if err != nil {
		panic(err)
	}
	public, _ := kp.PublicKey()
	return public[:12]
}

func manifest(name, device string, scores ...score.Score) score.Manifest {
	return score.Manifest{
		APIVersion: score.APIVersion, Kind: score.ManifestKind, Metadata: score.Metadata{Name: name},
		Spec: score.ManifestSpec{Target: score.Target{Device: device}, Policy: score.Policy{Preset: score.Converge}, Scores: scores},
	}
}

func file(id score.ID, path, content string) score.Score {
	return score.Score{ID: id, Spec: score.File{Path: path, Content: content, Mode: 0o644}}
}

func (r *rig) options() fleet.PublishOptions { return fleet.PublishOptions{Signer: r.keys.Operator} }

// publish publishes manifests, and fails the test if it cannot.
func (r *rig) publish(ms ...score.Manifest) []fleet.Publication {
	r.t.Helper()
	p, err := r.Publish(r.t.Context(), ms, r.options())
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// wait waits until d is settled at a generation.
func (r *rig) wait(d fleet.Device, generation uint64) fleet.DeviceState {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	s, err := r.Wait(ctx, d, generation)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// until waits until the state of d is as f wants it.
func (r *rig) until(d fleet.Device, what string, f func(fleet.DeviceState) bool) fleet.DeviceState {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	var last fleet.DeviceState
	err := r.Watch(ctx, []fleet.Device{d}, func(s fleet.DeviceState) bool {
		last = s
		return !f(s)
	})
	if err != nil {
		r.t.Fatalf("never %s: %v; last: %+v %+v", what, err, last, last.Status)
	}
	return last
}

var _ wire.Signer = nkeys.KeyPair(nil)
