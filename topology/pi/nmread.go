package pi

import (
	"context"
	"slices"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/continuo-fleet/continuo/topology"
)

// A nmProfile is a profile as found.
type nmProfile struct {
	at       dbus.ObjectPath
	config   topology.ConnectionConfig
	mark     topology.Mark
	removed  bool
	unsaved  bool
	filename string
}

// profile finds the profile of a connection; ok is false if there is none.
func (n *networkManager) profile(ctx context.Context, name string) (p nmProfile, ok bool, err error) {
	err = n.call(ctx, nmSettingsAt, nmSettingsName+".GetConnectionByUuid", []any{&p.at}, nmUUID(name))
	if gone(err) || errorName(err) == nmSettingsName+".InvalidConnection" {
		return p, false, nil
	}
	var s nmSettings
	if err == nil {
		err = n.call(ctx, p.at, nmProfileName+".GetSettings", []any{&s})
	}
	if gone(err) {
		return p, false, nil
	}
	if err != nil {
		return p, false, nmFault("read", name, err)
	}
	p.config, p.mark, p.removed = nmRead(s)
	p.config.Name = name
	if p.config.Security == "wpa-psk" || p.config.Security == "sae" {
		var secrets nmSettings
		if err := n.call(ctx, p.at, nmProfileName+".GetSecrets", []any{&secrets}, "802-11-wireless-security"); err != nil && !gone(err) {
			return p, false, nmFault("read the password of", name, err)
		}
		p.config.Password = topology.SecretValue(properties(secrets["802-11-wireless-security"]).text("psk"))
	}
	about, err := n.properties(ctx, p.at, nmProfileName)
	if err != nil {
		return p, false, nmFault("read", name, err)
	}
	p.unsaved, _ = about["Unsaved"].Value().(bool)
	p.filename = about.text("Filename")
	return p, true, nil
}

// gone reports whether an object of the bus is not there, or not any more.
func gone(err error) bool {
	return slices.Contains([]string{
		"org.freedesktop.DBus.Error.UnknownObject", "org.freedesktop.DBus.Error.UnknownMethod", "org.freedesktop.DBus.Error.UnknownInterface",
		nmName + ".UnknownDevice", nmName + ".UnknownConnection", nmName + ".ConnectionNotActive",
	}, errorName(err))
}

// A nmDevice is an interface as NetworkManager sees it.
type nmDevice struct {
	at       dbus.ObjectPath // "/": none
	iface    string
	typ      uint32
	state    uint32
	reason   uint32
	mac      string
	activeAt dbus.ObjectPath
	active   nmActive
}

type nmActive struct {
	uuid, name string
	state      uint32
}

func (n *networkManager) device(ctx context.Context, at dbus.ObjectPath) (d nmDevice, err error) {
	p, err := n.properties(ctx, at, nmName+".Device")
	if err != nil {
		return d, err
	}
	d = nmDevice{at: at, iface: p.text("Interface"), typ: uint32(p.number("DeviceType")), state: uint32(p.number("State")), mac: strings.ToLower(p.text("HwAddress"))}
	if reason, ok := p["StateReason"].Value().([]any); ok && len(reason) == 2 {
		d.reason, _ = reason[1].(uint32)
	}
	d.activeAt, _ = p["ActiveConnection"].Value().(dbus.ObjectPath)
	if len(d.activeAt) > 1 {
		a, err := n.properties(ctx, d.activeAt, nmName+".Connection.Active")
		if err != nil && !gone(err) {
			return d, err
		}
		d.active = nmActive{a.text("Uuid"), a.text("Id"), uint32(a.number("State"))}
	}
	return d, nil
}

// deviceOf finds the interface that a connection is for; its path is "/" if there is none.
func (n *networkManager) deviceOf(ctx context.Context, c topology.ConnectionConfig) (nmDevice, error) {
	none := nmDevice{at: nmNone, iface: c.Interface}
	if c.Interface != "" {
		var at dbus.ObjectPath
		err := n.call(ctx, nmPath, nmName+".GetDeviceByIpIface", []any{&at}, c.Interface)
		if gone(err) {
			return none, nil
		}
		if err != nil {
			return none, err
		}
		d, err := n.device(ctx, at)
		if gone(err) {
			return none, nil
		}
		return d, err
	}
	p, err := n.properties(ctx, nmPath, nmName)
	if err != nil {
		return none, err
	}
	all, _ := p["Devices"].Value().([]dbus.ObjectPath)
	for _, at := range all {
		d, err := n.device(ctx, at)
		if gone(err) {
			continue
		}
		if err != nil {
			return none, err
		}
		const wifi, loopback = 2, 32
		if (c.Type == topology.ConnectionWifi) == (d.typ == wifi) && d.typ != loopback && (c.MAC == "" || c.MAC == d.mac) {
			return d, nil
		}
	}
	return none, nil
}
