package pi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	sdbus "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"

	"github.com/continuo-fleet/continuo/internal/atomicfile"
	"github.com/continuo-fleet/continuo/internal/nftables"
	"github.com/continuo-fleet/continuo/topology"
)

// A checkpoint of the firewall is a file with what was there, which survives the process
// and the device, and a timer of systemd, which brings it back when the window is over,
// whatever becomes of the agent. Whoever takes the file away ends the checkpoint: nobody
// else can any more.

const (
	firewallResource  = topology.Resource("firewall")
	checkpointPrefix  = "firewall-"
	checkpointSuffix  = ".json"
	claimedSuffix     = ".reverting" // somebody brings it back
	maxCheckpoint     = 8 << 20
	checkpointTimeout = 10 * time.Second // of stopping the timer
)

// firewallWas is what a checkpoint holds.
type firewallWas struct {
	Version int
	Table   *nftables.Table // nil: there was none
}

type firewallCheckpoint struct {
	f    *firewall
	path string
	unit string // without its suffix
}

// CheckpointFirewall keeps what is there, and starts the timer.
func (f *firewall) CheckpointFirewall(ctx context.Context, window time.Duration) (topology.Checkpoint, error) {
	t, err := f.read(ctx)
	if err != nil {
		return nil, err
	}
	if t != nil && t.Others > 0 {
		return nil, topology.Faultf(topology.CodeForeign, "somebody put sets or other objects into the table inet %s, which could not be brought back if the change cut the device off: nft delete table inet %s removes it, and it is made again", firewallTable, firewallTable)
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	name := checkpointPrefix + hex.EncodeToString(id[:])
	c := &firewallCheckpoint{f, filepath.Join(f.dir, name+checkpointSuffix), "continuo-" + name}
	if err := keep(c.path, firewallWas{1, t}); err != nil {
		return nil, topology.Faultf(topology.FaultOf(err).Code, "cannot keep the firewall as it is: %v", err)
	}
	if err := c.arm(ctx, window); err != nil {
		_ = forget(c.path)
		return nil, err
	}
	return c, nil
}

// onActive is how D-Bus is told when a timer elapses.
type onActive struct {
	Base string
	USec uint64
}

// arm starts the timer.
func (c *firewallCheckpoint) arm(ctx context.Context, window time.Duration) error {
	property := func(name string, v any) sdbus.Property {
		return sdbus.Property{Name: name, Value: dbus.MakeVariant(v)}
	}
	const what = "Continuo: bring back the firewall unless its change is proved"
	timer := []sdbus.Property{
		property("Description", what), property("CollectMode", "inactive-or-failed"), property("RemainAfterElapse", false),
		property("AccuracyUSec", uint64(100*time.Millisecond/time.Microsecond)),
		property("TimersMonotonic", []onActive{{"OnActiveSec", uint64(window / time.Microsecond)}}),
	}
	service := sdbus.PropertyCollection{Name: c.unit + ".service", Properties: []sdbus.Property{
		property("Description", what), property("CollectMode", "inactive-or-failed"), property("Type", "oneshot"),
		property("DefaultDependencies", false), // also while the device goes down
		sdbus.PropExecStart(append(append([]string(nil), c.f.revert...), c.path), false),
	}}
	give := func(l *sdbus.Conn, ctx context.Context, unit, mode string, done chan<- string) (int, error) {
		return l.StartTransientUnitAux(ctx, unit, mode, timer, []sdbus.PropertyCollection{service}, done)
	}
	return c.f.services.job(ctx, "start", c.unit+".timer", give, "")
}

// disarm stops the timer. Without the file it would do nothing.
func (c *firewallCheckpoint) disarm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkpointTimeout)
	defer cancel()
	_ = c.f.services.job(ctx, "stop", c.unit+".timer", stop, "")
}

// Commit takes the file away.
func (c *firewallCheckpoint) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return topology.FaultOf(err)
	}
	err := forget(c.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return topology.Faultf(topology.CodeConnectivity, "the window is over, and the firewall is what it was before")
	case err != nil:
		return topology.Faultf(topology.FaultOf(err).Code, "cannot keep the firewall: %v", err)
	}
	c.disarm(ctx)
	return nil
}

// Rollback brings back what was there, if the timer has not.
func (c *firewallCheckpoint) Rollback(ctx context.Context) error {
	if _, err := Revert(ctx, c.path); err != nil {
		return err
	}
	c.disarm(ctx)
	return nil
}

// recover brings back what a process that is gone left open.
func (f *firewall) recover(ctx context.Context) ([]topology.Resource, error) {
	if f.below {
		return nil, nil
	}
	names, err := os.ReadDir(f.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, topology.Faultf(topology.FaultOf(err).Code, "cannot look for firewalls to bring back: %v", err)
	}
	var back []topology.Resource
	for _, e := range names {
		name := strings.TrimSuffix(e.Name(), claimedSuffix)
		if !strings.HasPrefix(name, checkpointPrefix) || !strings.HasSuffix(name, checkpointSuffix) {
			continue
		}
		was, err := Revert(ctx, filepath.Join(f.dir, name))
		if was {
			back = []topology.Resource{firewallResource}
		}
		if err != nil {
			return back, err
		}
		c := firewallCheckpoint{f: f, unit: "continuo-" + strings.TrimSuffix(name, checkpointSuffix)}
		c.disarm(ctx)
	}
	return back, nil
}

// Revert brings back the firewall that a checkpoint holds, and ends it. It reports false if
// it was ended before. It is what the timer runs.
func Revert(ctx context.Context, path string) (bool, error) {
	claimed := path + claimedSuffix
	if name := filepath.Base(path); !strings.HasPrefix(name, checkpointPrefix) || !strings.HasSuffix(name, checkpointSuffix) {
		return false, topology.Faultf(topology.CodeInvalid, "%s is no checkpoint of the firewall: those are called %s…%s", path, checkpointPrefix, checkpointSuffix)
	}
	if err := os.Rename(path, claimed); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, topology.Faultf(topology.FaultOf(err).Code, "cannot end the checkpoint: %v", err)
	}
	was, err := kept(claimed)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		// Nobody can tell what was there. A device that nobody reaches is worse than one without a firewall, which
		// the agent sets again.
		was = firewallWas{}
	}
	var lost error
	if was.Table != nil {
		lost = nftables.Replace(ctx, *was.Table)
	}
	if was.Table == nil || lost != nil {
		if err := nftables.Remove(ctx, firewallTable); err != nil {
			return false, nftFault("bring back", err)
		}
	}
	switch err := forget(claimed); {
	case lost != nil:
		return true, topology.Faultf(topology.FaultOf(lost).Code, "cannot bring back the firewall: %v; it was removed instead, and the device is open until its firewall is set again", lost)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return true, topology.Faultf(topology.FaultOf(err).Code, "the firewall is what it was, but cannot forget the checkpoint: %v", err)
	}
	return true, nil
}

// keep writes a checkpoint, durably.
func keep(path string, was firewallWas) error {
	data, err := json.Marshal(was)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return in(path, func(dir *os.File) error {
		return atomicfile.Write(dir, filepath.Base(path), atomicfile.File{Content: data, Mode: 0o600})
	})
}

// kept reads a checkpoint.
func kept(path string) (was firewallWas, err error) {
	f, err := os.Open(path)
	if err != nil {
		return was, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCheckpoint))
	if err == nil {
		err = json.Unmarshal(data, &was)
	}
	if err == nil && (was.Version != 1 || was.Table != nil && was.Table.Name != firewallTable) {
		err = fmt.Errorf("cannot read the checkpoint %s: it holds something else", path)
	}
	return was, err
}

// forget removes a checkpoint, durably.
func forget(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return in(path, atomicfile.SyncDir)
}

func in(path string, do func(dir *os.File) error) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return do(dir)
}
