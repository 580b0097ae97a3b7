package pi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/continuo-fleet/continuo/topology"
)

func (n *networkManager) set(ctx context.Context, c topology.ConnectionConfig, m topology.Mark, r *netRecord) error {
	old, there, err := n.profile(ctx, c.Name)
	if err != nil {
		return err
	}
	if c.Type == topology.ConnectionWifi {
		if err := n.radio(ctx, c); err != nil {
			return err
		}
	}
	flags := nmToDisk
	if r != nil {
		flags = nmInMemory
	}
	var more map[string]dbus.Variant
	if there {
		err = n.call(ctx, old.at, nmProfileName+".Update2", []any{&more}, nmOf(c, m, false), flags|nmNoReapply, map[string]dbus.Variant{})
	} else {
		var at dbus.ObjectPath
		err = n.call(ctx, nmSettingsAt, nmSettingsName+".AddConnection2", []any{&at, &more}, nmOf(c, m, false), flags|nmBlockAutoconnect, map[string]dbus.Variant{})
		if errorName(err) == nmSettingsName+".UuidExists" { // it was asked twice
			err = nil
		}
	}
	if err != nil {
		return nmFault("make", c.Name, err)
	}
	now, there, err := n.profile(ctx, c.Name) // what it did not load, it says nothing about
	switch {
	case err != nil:
		return err
	case !there || now.mark != m:
		return topology.Faultf(topology.CodeDefinition, "cannot make the connection %q: NetworkManager took it and does not have it", c.Name)
	}
	if r == nil {
		if err := n.durable(now); err != nil {
			return err
		}
	}
	d, err := n.deviceOf(ctx, c)
	if err != nil {
		return nmFault("find the interface of", c.Name, err)
	}
	if r != nil {
		r.Devices = append(r.Devices, d.iface)
	}
	var st topology.ConnectionState
	if err := n.link(ctx, c, d, &st); err != nil {
		return nmFault("find the interface of", c.Name, err)
	}
	switch {
	case st.Blocked:
		return topology.Faultf(topology.CodeRadioBlocked, "the radio of %s is switched off: %s", d.iface, st.Reason)
	case st.Link == topology.LinkUnavailable:
		return nil
	case st.Link == topology.LinkUp && old.there(c) && isInForce(c, d.iface):
		return nil
	case st.Link == topology.LinkStandby && n.outranked(ctx, c, d):
		return nil
	}
	return n.activate(ctx, now.at, c, d)
}

// there reports whether the profile was what c asks for, but for what needs no new activation.
func (p nmProfile) there(c topology.ConnectionConfig) bool {
	same := func(c topology.ConnectionConfig) string {
		c.Priority, c.Country = 0, ""
		return fmt.Sprintf("%s %v %v %v", string(c.Password), c, c.IPv4, c.IPv6)
	}
	return p.at != "" && !p.removed && same(p.config) == same(c)
}

// outranked reports whether the wireless network that an interface has joined has a higher priority.
func (n *networkManager) outranked(ctx context.Context, c topology.ConnectionConfig, d nmDevice) bool {
	var at dbus.ObjectPath
	var s nmSettings
	if n.call(ctx, nmSettingsAt, nmSettingsName+".GetConnectionByUuid", []any{&at}, d.active.uuid) != nil ||
		n.call(ctx, at, nmProfileName+".GetSettings", []any{&s}) != nil {
		return false
	}
	return int32(properties(s["connection"]).number("autoconnect-priority")) > c.Priority
}

// activate puts a profile in force and waits until it is.
func (n *networkManager) activate(ctx context.Context, at dbus.ObjectPath, c topology.ConnectionConfig, d nmDevice) error {
	var active dbus.ObjectPath
	if err := n.call(ctx, nmPath, nmName+".ActivateConnection", []any{&active}, at, d.at, nmNone); err != nil {
		return nmFault("activate", c.Name, err)
	}
	began := time.Now()
	err := waitFor(ctx, activationPatience, func(ctx context.Context) (bool, error) {
		p, err := n.properties(ctx, active, nmName+".Connection.Active")
		switch {
		case gone(err) || err == nil && p.number("State") > nmActiveUp:
			return false, topology.Faultf(topology.CodeJobFailed, "cannot activate the connection %q: %s", c.Name, n.why(ctx, c))
		case err != nil:
			return false, err
		case p.number("State") != nmActiveUp:
			return false, nil
		}
		now, err := n.deviceOf(ctx, c)
		return err == nil && (isInForce(c, now.iface) || time.Since(began) > activationPatience/5), err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return topology.Faultf(topology.CodeTimeout, "cannot activate the connection %q: it got no address within %s", c.Name, activationPatience)
	}
	if err != nil {
		return nmFault("activate", c.Name, err)
	}
	return nil
}

// why says why the interface of a connection is not up.
func (n *networkManager) why(ctx context.Context, c topology.ConnectionConfig) string {
	d, err := n.deviceOf(ctx, c)
	if err != nil || d.at == nmNone {
		return "its interface is gone"
	}
	return nmReason(d.reason)
}

// radio tells the device its country, and switches its radios on. Which of it helped, the
// state of the interface says.
func (n *networkManager) radio(ctx context.Context, c topology.ConnectionConfig) error {
	if err := setCountry(ctx, n.files, c.Country); err != nil {
		return err
	}
	p, err := n.properties(ctx, nmPath, nmName)
	if err != nil {
		return nmFault("switch on the radio for", c.Name, err)
	}
	if on, _ := p["WirelessEnabled"].Value().(bool); on {
		return nil
	}
	err = n.call(ctx, nmPath, "org.freedesktop.DBus.Properties.Set", nil, nmName, "WirelessEnabled", dbus.MakeVariant(true))
	if err != nil {
		return nmFault("switch on the radio for", c.Name, err)
	}
	return nil
}

// durable flushes the file that NetworkManager wrote, and looks whether it did.
func (n *networkManager) durable(p nmProfile) error {
	if p.unsaved || p.filename == "" || nmBelow(p.filename) {
		return topology.Faultf(topology.CodeJobFailed, "cannot keep the connection %q: NetworkManager did not write it to its disk", p.config.Name)
	}
	return n.files.flush(p.filename)
}

func (n *networkManager) remove(ctx context.Context, name string, r *netRecord) error {
	p, there, err := n.profile(ctx, name)
	if err != nil || !there || p.removed && r != nil {
		return err
	}
	if r == nil {
		return n.erase(ctx, p)
	}
	// What is on disk stays until the checkpoint is committed: a profile of the same UUID in
	// /run shadows it, and does not come up.
	var more map[string]dbus.Variant
	if err := n.call(ctx, p.at, nmProfileName+".Update2", []any{&more}, nmOf(p.config, p.mark, true), nmInMemory|nmNoReapply, map[string]dbus.Variant{}); err != nil {
		return nmFault("remove", name, err)
	}
	d, err := n.deviceOf(ctx, p.config)
	if err != nil {
		return nmFault("find the interface of", name, err)
	}
	r.Devices = append(r.Devices, d.iface)
	if d.active.uuid != nmUUID(name) {
		return nil
	}
	if err := n.call(ctx, nmPath, nmName+".DeactivateConnection", nil, d.activeAt); err != nil && !gone(err) {
		return nmFault("take down", name, err)
	}
	return nil
}

func (n *networkManager) erase(ctx context.Context, p nmProfile) error {
	if err := n.call(ctx, p.at, nmProfileName+".Delete", nil); err != nil && !gone(err) {
		return nmFault("remove", p.config.Name, err)
	}
	if p.filename == "" {
		return nil
	}
	return n.files.flush(p.filename)
}
