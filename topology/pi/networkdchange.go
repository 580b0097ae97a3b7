package pi

import (
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

func (d *networkd) set(ctx context.Context, c topology.ConnectionConfig, m topology.Mark, r *netRecord) error {
	if err := d.cannot(c); err != nil {
		return err
	}
	return d.write(ctx, networkdContent{Config: c, Mark: m}, r)
}

// write writes the file of a connection and waits until its interface is as it says.
func (d *networkd) write(ctx context.Context, f networkdContent, r *netRecord) error {
	prefix := networkdKept
	if r != nil {
		prefix = networkdTried
	}
	at := networkdFileFor(prefix, f.Config)
	old, err := networkdFile(prefix, f.Config.Name)
	if err == nil {
		err = d.files.WriteFile(ctx, topology.FileWrite{Path: at, Mode: 0o644, Content: f.render()})
	}
	if err == nil && old != "" && old != at {
		err = d.files.RemoveFile(ctx, old)
	}
	if err == nil && r == nil {
		err = d.drop(ctx, f.Config.Name)
	}
	if err == nil {
		err = os.Chmod(path.Dir(networkdTried), 0o755) // networkd is no root
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return topology.FaultOf(err)
	}
	l, ok, err := d.linkOf(ctx, f.Config)
	if err != nil {
		return err
	}
	if r != nil {
		r.Devices = append(r.Devices, l.iface)
	}
	if err := d.reload(ctx, l.iface); err != nil || !ok || f.Removed {
		return err
	}
	return d.wait(ctx, f.Config)
}

// drop takes away what was tried of a connection.
func (d *networkd) drop(ctx context.Context, name string) error {
	at, err := d.tried(name)
	if err != nil || at == "" {
		return err
	}
	return d.files.RemoveFile(ctx, at)
}

// reload has networkd read its files again, and makes interfaces so.
func (d *networkd) reload(ctx context.Context, ifaces ...string) error {
	if err := d.call(ctx, networkdPath, networkdName+".Manager.Reload", nil); err != nil {
		return busFault("reload", "the files of systemd-networkd", err)
	}
	for _, iface := range slices.Compact(slices.Sorted(slices.Values(ifaces))) {
		l, ok, err := d.linkOf(ctx, topology.ConnectionConfig{Interface: iface})
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := d.call(ctx, l.at, networkdName+".Link.Reconfigure", nil); err != nil && !gone(err) {
			return busFault("configure", "the interface "+iface, err)
		}
	}
	return nil
}

// wait waits until a connection is up.
func (d *networkd) wait(ctx context.Context, c topology.ConnectionConfig) error {
	why := ""
	err := waitFor(ctx, activationPatience, func(ctx context.Context) (bool, error) {
		st, err := d.state(ctx, c)
		if err != nil {
			return false, err
		}
		why = string(st.Link)
		if st.Other != "" {
			return false, topology.Faultf(topology.CodeJobFailed, "cannot activate the connection %q: systemd-networkd takes %s for %s", c.Name, st.Other, st.Device)
		}
		return st.Link == topology.LinkUnavailable || st.Link == topology.LinkUp && isInForce(c, st.Device), nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return topology.Faultf(topology.CodeTimeout, "cannot activate the connection %q: it is %s after %s", c.Name, why, activationPatience)
	}
	if err != nil {
		return topology.FaultOf(err)
	}
	return nil
}

func (d *networkd) remove(ctx context.Context, name string, r *netRecord) error {
	f, ok, _, err := d.current(ctx, name)
	if err != nil || !ok {
		return err
	}
	if r != nil {
		// Nothing in /run can hide what is in /etc and let another file have the interface. So it is
		// proved that it can do without any.
		f.Removed = true
		return d.write(ctx, f, r)
	}
	return d.erase(ctx, f.Config)
}

func (d *networkd) erase(ctx context.Context, c topology.ConnectionConfig) error {
	at, err := d.kept(c.Name)
	if err == nil && at != "" {
		err = d.files.RemoveFile(ctx, at)
	}
	if err == nil {
		err = d.drop(ctx, c.Name)
	}
	if err != nil {
		return topology.FaultOf(err)
	}
	l, _, err := d.linkOf(ctx, c)
	if err != nil {
		return err
	}
	return d.reload(ctx, l.iface)
}

func (d *networkd) begin(ctx context.Context, window time.Duration) (netRecord, error) {
	return netRecord{}, d.arm(ctx, window)
}

func (d *networkd) extend(ctx context.Context, _ netRecord, window time.Duration) error {
	return d.arm(ctx, window)
}

func (d *networkd) keep(ctx context.Context, r netRecord) error {
	var found []networkdContent
	for _, name := range r.Names {
		at, err := d.tried(name)
		if err != nil {
			return topology.FaultOf(err)
		}
		f, ok, err := d.read(ctx, at)
		if err != nil {
			return err
		}
		if !ok && !d.wasAbsent(ctx, name) {
			return topology.Faultf(topology.CodeConnectivity, "the time for the proof is over, and what was there before is there again")
		}
		if ok {
			found = append(found, f)
		}
	}
	if err := d.disarm(ctx, ""); err != nil {
		return err
	}
	for _, f := range found {
		if f.Removed {
			if err := d.erase(ctx, f.Config); err != nil {
				return err
			}
			continue
		}
		at := networkdFileFor(networkdKept, f.Config)
		old, err := d.kept(f.Config.Name)
		if err == nil {
			err = d.files.WriteFile(ctx, topology.FileWrite{Path: at, Mode: 0o644, Content: []byte(f.text)})
		}
		if err == nil && old != "" && old != at {
			err = d.files.RemoveFile(ctx, old)
		}
		if err != nil {
			return topology.FaultOf(err)
		}
	}
	return nil
}

// wasAbsent: what is not there needs no file to be removed.
func (d *networkd) wasAbsent(ctx context.Context, name string) bool {
	_, ok, _, err := d.current(ctx, name)
	return err == nil && !ok
}

func (d *networkd) restore(ctx context.Context, r netRecord) error {
	for _, name := range r.Names {
		if err := d.drop(ctx, name); err != nil {
			return topology.FaultOf(err)
		}
	}
	if len(r.Names) > 0 {
		if err := d.reload(ctx, r.Devices...); err != nil {
			return err
		}
	}
	if err := d.disarm(ctx, ""); err != nil {
		return err
	}
	for _, name := range r.Names {
		f, ok, _, err := d.current(ctx, name)
		if err != nil || !ok {
			continue
		}
		if err := d.wait(ctx, f.Config); err != nil {
			return err
		}
	}
	return nil
}
