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
