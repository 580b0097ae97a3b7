package pi

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/continuo-fleet/continuo/topology"
)

// networkd is systemd-networkd. A connection is a .network file of ours, whose name comes before
// those of others, because the first that matches an interface is the one.
//
// What is not confirmed is in /run and comes first of all; when it is confirmed, it is in /etc as
// well and stays in /run until the next boot, so that nothing is done to the interface again.
type networkd struct {
	bus      *bus
	files    *files
	services *services
}

const (
	networkdName  = "org.freedesktop.network1"
	networkdPath  = dbus.ObjectPath("/org/freedesktop/network1")
	networkdTried = "/run/systemd/network/04-continuo-"
	networkdKept  = "/etc/systemd/network/05-continuo-"
	networkdEnd   = ".network"
)

func (*networkd) name() string    { return "systemd-networkd" }
func (*networkd) service() string { return networkdName }

// cannot says what this manager lacks for a connection.
func (*networkd) cannot(c topology.ConnectionConfig) error {
	switch c.Type {
	case topology.ConnectionWifi:
		return topology.Faultf(topology.CodeUnavailable, "this device has systemd-networkd, which joins no wireless network by itself: NetworkManager does")
	case topology.ConnectionVLAN:
		return topology.Faultf(topology.CodeUnavailable, "this device has systemd-networkd, where a VLAN is said in the file of its parent, which another connection owns: NetworkManager knows VLANs by themselves")
	}
	return nil
}

// tried and kept are the files of a connection. Those of a higher priority come first.
func (d *networkd) tried(name string) (string, error) { return networkdFile(networkdTried, name) }
func (d *networkd) kept(name string) (string, error)  { return networkdFile(networkdKept, name) }

// networkdFile finds the file of a connection, whatever its priority was; empty if there is none.
func networkdFile(prefix, name string) (string, error) {
	found, err := filepath.Glob(prefix + "????-" + nmUUID(name) + networkdEnd)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0], nil
}

func networkdFileFor(prefix string, c topology.ConnectionConfig) string {
	return prefix + networkdRank(c.Priority) + "-" + nmUUID(c.Name) + networkdEnd
}

// read reads the file of a connection back; ok is false if there is none.
func (d *networkd) read(ctx context.Context, at string) (f networkdContent, ok bool, err error) {
	if at == "" {
		return f, false, nil
	}
	text, err := os.ReadFile(at)
	if errors.Is(err, os.ErrNotExist) {
		return f, false, nil
	}
	if err != nil {
		return f, false, topology.Faultf(topology.FaultOf(err).Code, "cannot read the connection: %v", err)
	}
	return networkdParse(text), true, ctx.Err()
}

// current is what counts of a connection now, and whether the next boot finds the same.
func (d *networkd) current(ctx context.Context, name string) (f networkdContent, ok, durable bool, err error) {
	tried, err := d.tried(name)
	if err != nil {
		return f, false, false, err
	}
	kept, err := d.kept(name)
	if err != nil {
		return f, false, false, err
	}
	now, isTried, err := d.read(ctx, tried)
	if err != nil {
		return f, false, false, err
	}
	then, isKept, err := d.read(ctx, kept)
	if !isTried {
		return then, isKept, isKept, err
	}
	return now, true, isKept && now.text == then.text, err
}

// A networkdLink is what networkd says about an interface.
type networkdLink struct {
	at    dbus.ObjectPath
	iface string
	about struct {
		NetworkFile         string
		AdministrativeState string
		CarrierState        string
	}
}

// linkOf finds the interface of a connection; ok is false if there is none.
func (d *networkd) linkOf(ctx context.Context, c topology.ConnectionConfig) (l networkdLink, ok bool, err error) {
	l.iface = c.Interface
	if l.iface == "" {
		all, err := net.Interfaces()
		if err != nil {
			return l, false, topology.Faultf(topology.FaultOf(err).Code, "cannot list the interfaces: %v", err)
		}
		for _, i := range all {
			if i.HardwareAddr.String() == c.MAC {
				l.iface = i.Name
			}
		}
	}
	if _, err := net.InterfaceByName(l.iface); err != nil || l.iface == "" {
		return l, false, nil
	}
	var index int32
	err = d.call(ctx, networkdPath, networkdName+".Manager.GetLinkByName", []any{&index, &l.at}, l.iface)
	if gone(err) {
		return l, false, nil
	}
	var text string
	if err == nil {
		err = d.call(ctx, l.at, networkdName+".Link.Describe", []any{&text})
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &l.about)
	}
	if err != nil {
		return l, false, busFault("read", "the interface "+l.iface, err)
	}
	return l, true, nil
}

func (d *networkd) call(ctx context.Context, at dbus.ObjectPath, method string, into []any, args ...any) error {
	return d.bus.do(ctx, func(ctx context.Context, l *link) error {
		call := l.calls.Object(networkdName, at).CallWithContext(ctx, method, 0, args...)
		if call.Err != nil || len(into) == 0 {
			return call.Err
		}
		return call.Store(into...)
	})
}

func (d *networkd) state(ctx context.Context, c topology.ConnectionConfig) (st topology.ConnectionState, err error) {
	if err := d.cannot(c); err != nil {
		return st, err
	}
	f, ok, durable, err := d.current(ctx, c.Name)
	if err != nil {
		return st, err
	}
	if ok && !f.Removed {
		st.Present, st.Config, st.Mark, st.Durable = true, f.Config, f.Mark, durable
		c = f.Config
	}
	l, found, err := d.linkOf(ctx, c)
	if err != nil {
		return st, err
	}
	st.Device, st.Link = l.iface, topology.LinkUnavailable
	ours := strings.Contains(path.Base(l.about.NetworkFile), "-"+nmUUID(c.Name)+".")
	switch {
	case !found:
		st.Reason = "the device has no such interface"
	case l.about.CarrierState == "no-carrier" || l.about.CarrierState == "off" && l.about.AdministrativeState != "unmanaged":
		st.Reason = "no cable is plugged in"
	case ours && st.Present && l.about.AdministrativeState == "configured":
		st.Link = topology.LinkUp
		st.Addresses, st.Routes = inForce(l.iface)
	case ours && st.Present && slices.Contains([]string{"pending", "initialized", "configuring"}, l.about.AdministrativeState):
		st.Link = topology.LinkStarting
	default:
		st.Link = topology.LinkDown
		if !ours && l.about.NetworkFile != "" {
			st.Other = l.about.NetworkFile
		}
	}
	return st, nil
}

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
