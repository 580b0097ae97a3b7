package pi

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/continuo-fleet/continuo/topology"
)

// begin makes a checkpoint of NetworkManager's own over all interfaces: it takes everything
// back by itself when the time is over.
func (n *networkManager) begin(ctx context.Context, window time.Duration) (r netRecord, err error) {
	var at dbus.ObjectPath
	err = n.call(ctx, nmPath, nmName+".CheckpointCreate", []any{&at}, []dbus.ObjectPath{}, uint32(window/time.Second), nmDeleteNew)
	if err != nil {
		return r, topology.Faultf(topology.FaultOf(nmFault("", "", err)).Code, "cannot make a checkpoint of the network: %v; another program may have one open", err)
	}
	made, _ := n.made(ctx, at)
	return netRecord{Object: string(at), Made: made}, nil
}

// made is when a checkpoint was made, by NetworkManager's clock; ok is false if it is not there.
func (n *networkManager) made(ctx context.Context, at dbus.ObjectPath) (made int64, ok bool) {
	p, err := n.properties(ctx, at, nmName+".Checkpoint")
	if err != nil || len(p) == 0 {
		return 0, false
	}
	return p.number("Created"), true
}

func (n *networkManager) isOpen(ctx context.Context, r netRecord) bool {
	made, ok := n.made(ctx, dbus.ObjectPath(r.Object))
	return ok && made == r.Made
}

func (n *networkManager) extend(ctx context.Context, r netRecord, window time.Duration) error {
	err := n.call(ctx, nmPath, nmName+".CheckpointAdjustRollbackTimeout", nil, dbus.ObjectPath(r.Object), uint32(window/time.Second))
	if err != nil {
		return topology.Faultf(topology.CodeTimeout, "the checkpoint of the network is gone: %v", err)
	}
	return nil
}

func (n *networkManager) keep(ctx context.Context, r netRecord) error {
	if !n.isOpen(ctx, r) {
		return topology.Faultf(topology.CodeConnectivity, "the time for the proof is over, and what was there before is there again")
	}
	for _, name := range r.Names {
		p, there, err := n.profile(ctx, name)
		if err == nil && there && p.removed {
			err = n.erase(ctx, p)
		} else if err == nil && there {
			var more map[string]dbus.Variant
			err = n.call(ctx, p.at, nmProfileName+".Update2", []any{&more}, nmSettings{}, nmToDisk|nmNoReapply, map[string]dbus.Variant{})
			if err == nil {
				if p, _, err = n.profile(ctx, name); err == nil {
					err = n.durable(p)
				}
			}
		}
		if err != nil {
			return nmFault("keep", name, err)
		}
	}
	if err := n.call(ctx, nmPath, nmName+".CheckpointDestroy", nil, dbus.ObjectPath(r.Object)); err != nil {
		return topology.Faultf(topology.CodeConnectivity, "the time for the proof is over: %v", err)
	}
	return nil
}

func (n *networkManager) restore(ctx context.Context, r netRecord) error {
	if n.isOpen(ctx, r) {
		var results map[string]uint32
		if err := n.call(ctx, nmPath, nmName+".CheckpointRollback", []any{&results}, dbus.ObjectPath(r.Object)); err != nil && n.isOpen(ctx, r) {
			return topology.Faultf(topology.CodeJobFailed, "cannot take the changes of the network back: %v; NetworkManager does so by itself when their time is over", err)
		}
	}
	// A NetworkManager that was restarted meanwhile has forgotten the checkpoint, and read what
	// is in /run again.
	var left []nmProfile
	for _, name := range r.Names {
		p, there, err := n.profile(ctx, name)
		if err != nil {
			return err
		}
		if there && nmBelow(p.filename) {
			left = append(left, p)
		}
	}
	if len(left) > 0 {
		if err := n.unshadow(ctx, left); err != nil {
			return err
		}
	}
	return n.settled(ctx, r)
}

// unshadow takes profiles in /run away, and puts in force again what they hid.
func (n *networkManager) unshadow(ctx context.Context, left []nmProfile) error {
	for _, p := range left {
		if dir := filepath.Dir(p.filename); dir != "/run/NetworkManager/system-connections" {
			return topology.Faultf(topology.CodeUnknown, "cannot take back the connection %q: NetworkManager keeps it in %s", p.config.Name, p.filename)
		}
		if err := os.Remove(p.filename); err != nil && !os.IsNotExist(err) {
			return topology.Faultf(topology.FaultOf(err).Code, "cannot take back the connection %q: %v", p.config.Name, err)
		}
	}
	var ok bool
	if err := n.call(ctx, nmSettingsAt, nmSettingsName+".ReloadConnections", []any{&ok}); err != nil {
		return nmFault("read again", left[0].config.Name, err)
	}
	for _, p := range left {
		old, there, err := n.profile(ctx, p.config.Name)
		if err != nil {
			return err
		}
		d, err := n.deviceOf(ctx, p.config)
		if err != nil {
			return nmFault("find the interface of", p.config.Name, err)
		}
		if there && d.at != nmNone {
			if err := n.activate(ctx, old.at, old.config, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// settled waits until the interfaces that were touched have come to rest again.
func (n *networkManager) settled(ctx context.Context, r netRecord) error {
	err := waitFor(ctx, activationPatience/2, func(ctx context.Context) (bool, error) {
		for _, iface := range slices.Compact(slices.Sorted(slices.Values(r.Devices))) {
			if iface == "" {
				continue
			}
			d, err := n.deviceOf(ctx, topology.ConnectionConfig{Interface: iface})
			if err != nil {
				return false, err
			}
			if d.at != nmNone && (d.state > nmDisconnected && d.state < nmActivated || d.state == nmDeactivating || d.state == nmFailed) {
				return false, nil
			}
		}
		return true, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // it has been asked for, and takes longer: the next look tells
	}
	return err
}
