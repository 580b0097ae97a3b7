package pi

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/continuo-fleet/continuo/topology"
)

// networkManager is NetworkManager. Profiles are found by UUID, never by what people call them.
type networkManager struct {
	bus   *bus
	files *files
}

const (
	nmName                         = "org.freedesktop.NetworkManager"
	nmSettingsName                 = nmName + ".Settings"
	nmProfileName                  = nmSettingsName + ".Connection"
	nmPath         dbus.ObjectPath = "/org/freedesktop/NetworkManager"
	nmSettingsAt   dbus.ObjectPath = nmPath + "/Settings"
	nmNone         dbus.ObjectPath = "/"
)

// Flags of AddConnection2 and Update2.
const (
	nmToDisk           uint32 = 0x01
	nmInMemory         uint32 = 0x02 // in /run: it shadows what is on disk, and leaves that
	nmBlockAutoconnect uint32 = 0x20
	nmNoReapply        uint32 = 0x40
)

// nmDeleteNew is the flag of a checkpoint that takes back profiles made since.
const nmDeleteNew uint32 = 0x02

// States of devices and of active connections.
const (
	nmUnmanaged    = 10
	nmUnavailable  = 20
	nmDisconnected = 30
	nmActivated    = 100
	nmDeactivating = 110
	nmFailed       = 120

	nmActiveStarting = 1
	nmActiveUp       = 2
)

func (*networkManager) name() string    { return "NetworkManager" }
func (*networkManager) service() string { return nmName }

// call calls a method that may be called twice.
func (n *networkManager) call(ctx context.Context, at dbus.ObjectPath, method string, into []any, args ...any) error {
	return n.bus.do(ctx, func(ctx context.Context, l *link) error {
		call := l.calls.Object(nmName, at).CallWithContext(ctx, method, 0, args...)
		if call.Err != nil || len(into) == 0 {
			return call.Err
		}
		return call.Store(into...)
	})
}

func (n *networkManager) properties(ctx context.Context, at dbus.ObjectPath, of string) (p properties, err error) {
	err = n.call(ctx, at, "org.freedesktop.DBus.Properties.GetAll", []any{&p}, of)
	return p, err
}

func (n *networkManager) state(ctx context.Context, c topology.ConnectionConfig) (st topology.ConnectionState, err error) {
	p, ok, err := n.profile(ctx, c.Name)
	if err != nil {
		return st, err
	}
	if ok && !p.removed {
		st.Present, st.Config, st.Mark, st.Durable = true, p.config, p.mark, !p.unsaved && !nmBelow(p.filename)
		c = p.config
	}
	if c.Type == topology.ConnectionWifi {
		st.Config.Country = country(ctx, n.files)
	}
	d, err := n.deviceOf(ctx, c)
	if err != nil {
		return st, nmFault("read the interface of", c.Name, err)
	}
	if err := n.link(ctx, c, d, &st); err != nil {
		return st, nmFault("read the interface of", c.Name, err)
	}
	if st.Link == topology.LinkUp {
		st.Addresses, st.Routes = inForce(d.iface)
	}
	return st, nil
}

// link says how far c is in force on d.
func (n *networkManager) link(ctx context.Context, c topology.ConnectionConfig, d nmDevice, st *topology.ConnectionState) error {
	st.Device, st.Link = d.iface, topology.LinkUnavailable
	switch {
	case d.at == nmNone && c.Type == topology.ConnectionVLAN:
		parent, err := n.deviceOf(ctx, topology.ConnectionConfig{Interface: c.Parent})
		if err != nil {
			return err
		}
		if st.Reason = "the device has no interface " + c.Parent; parent.at != nmNone {
			st.Link, st.Reason = topology.LinkDown, ""
		}
		return nil
	case d.at == nmNone && c.Interface != "":
		st.Reason = "the device has no interface " + c.Interface
		return nil
	case d.at == nmNone:
		st.Reason = "the device has no interface that fits"
		return nil
	case d.state <= nmUnmanaged:
		st.Reason = "NetworkManager does not manage " + d.iface + ": its configuration says so"
		return nil
	case c.Type == topology.ConnectionWifi && d.state <= nmUnavailable:
		p, err := n.properties(ctx, nmPath, nmName)
		if err != nil {
			return err
		}
		soft, _ := p["WirelessEnabled"].Value().(bool)
		hard, _ := p["WirelessHardwareEnabled"].Value().(bool)
		st.Blocked = !soft || !hard
		st.Reason = nmReason(d.reason)
		if !hard {
			st.Reason = "rfkill blocks it, as a switch does, or a radio that was not told its country"
		} else if !soft {
			st.Reason = "NetworkManager was told to keep it off: nmcli radio wifi on"
		}
		return nil
	case d.active.uuid == nmUUID(c.Name) && d.active.state == nmActiveUp:
		st.Link = topology.LinkUp
		return nil
	case d.active.uuid == nmUUID(c.Name) && d.active.state == nmActiveStarting:
		st.Link = topology.LinkStarting
		return nil
	case d.state <= nmUnavailable:
		st.Reason = nmReason(d.reason)
		if carrier, err := os.ReadFile("/sys/class/net/" + d.iface + "/carrier"); err == nil && strings.TrimSpace(string(carrier)) == "0" {
			st.Reason = "no cable is plugged in"
		}
		return nil
	}
	if c.Type == topology.ConnectionWifi {
		in, err := n.inReach(ctx, d.at, c)
		if err != nil {
			return err
		}
		if !in {
			st.Reason = "no network of that name is in reach"
			return nil
		}
	}
	st.Link = topology.LinkDown
	if d.active.uuid != nmUUID(c.Name) && d.active.state == nmActiveUp {
		st.Other = d.active.name
		if c.Type == topology.ConnectionWifi {
			st.Link = topology.LinkStandby
		}
	}
	return nil
}

// maxAccessPoints bounds what the air may hold.
const maxAccessPoints = 256

// inReach reports whether a radio hears a network. Of a hidden one nobody knows before it is asked.
func (n *networkManager) inReach(ctx context.Context, at dbus.ObjectPath, c topology.ConnectionConfig) (bool, error) {
	if c.Hidden {
		return true, nil
	}
	p, err := n.properties(ctx, at, nmName+".Device.Wireless")
	if err != nil {
		return false, err
	}
	points, _ := p["AccessPoints"].Value().([]dbus.ObjectPath)
	for _, point := range points[:min(len(points), maxAccessPoints)] {
		a, err := n.properties(ctx, point, nmName+".AccessPoint")
		if gone(err) {
			continue
		}
		if err != nil {
			return false, err
		}
		if ssid, _ := a["Ssid"].Value().([]byte); string(ssid) == c.SSID {
			return true, nil
		}
	}
	return false, nil
}

// nmFault makes a fault of what NetworkManager answered.
func nmFault(verb, name string, err error) error {
	if _, ok := errors.AsType[*topology.Fault](err); ok {
		return err
	}
	e := errorName(err)
	if strings.HasPrefix(e, nmName) {
		code := topology.CodeJobFailed
		switch {
		case strings.Contains(e, "PermissionDenied"):
			code = topology.CodePermission
		case strings.Contains(e, ".Invalid") || strings.Contains(e, ".Missing") || strings.Contains(e, ".NotSupported"):
			code = topology.CodeInvalid
		}
		return topology.Faultf(code, "cannot %s the connection %q: NetworkManager says: %v", verb, name, err)
	}
	return busFault(verb, "the connection "+name, err)
}

// waitFor asks until done, at most as long as the patience with an activation.
func waitFor(ctx context.Context, limit time.Duration, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		ok, err := done(ctx)
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
