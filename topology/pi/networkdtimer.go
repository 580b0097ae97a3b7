package pi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"path"
	"time"

	sdbus "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"

	"github.com/continuo-fleet/continuo/topology"
)

// networkdTimers is how the dead-man's timers are called.
const networkdTimers = "continuo-network-"

// networkdRestore takes away what was not confirmed. It is run by systemd when nobody stops it,
// with nothing of ours, because nothing of ours may run any more.
var networkdRestore = []execStart{
	{"/usr/bin/find", []string{"/usr/bin/find", path.Dir(networkdTried), "-name", path.Base(networkdTried) + "*", "-delete"}, false},
	{"/usr/bin/networkctl", []string{"/usr/bin/networkctl", "reload"}, false},
}

// An execStart is how D-Bus is told what a service executes.
type execStart struct {
	Path    string
	Args    []string
	Unclean bool
}

// arm starts a timer anew: the one that runs is stopped after the next one was started.
func (d *networkd) arm(ctx context.Context, window time.Duration) error {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	name := networkdTimers + hex.EncodeToString(id[:])
	property := func(name string, v any) sdbus.Property {
		return sdbus.Property{Name: name, Value: dbus.MakeVariant(v)}
	}
	const what = "Continuo: bring back the network unless its change is proved"
	timer := []sdbus.Property{
		property("Description", what), property("CollectMode", "inactive-or-failed"), property("RemainAfterElapse", false),
		property("AccuracyUSec", uint64(100*time.Millisecond/time.Microsecond)),
		property("TimersMonotonic", []onActive{{"OnActiveSec", uint64(window / time.Microsecond)}}),
	}
	service := sdbus.PropertyCollection{Name: name + ".service", Properties: []sdbus.Property{
		property("Description", what), property("CollectMode", "inactive-or-failed"), property("Type", "oneshot"), property("ExecStart", networkdRestore),
	}}
	give := func(l *sdbus.Conn, ctx context.Context, unit, mode string, done chan<- string) (int, error) {
		return l.StartTransientUnitAux(ctx, unit, mode, timer, []sdbus.PropertyCollection{service}, done)
	}
	if err := d.services.job(ctx, "start", name+".timer", give, ""); err != nil {
		return err
	}
	return d.disarm(ctx, name+".timer")
}

// disarm stops all timers but one.
func (d *networkd) disarm(ctx context.Context, but string) error {
	var units []sdbus.UnitStatus
	err := d.bus.do(ctx, func(ctx context.Context, l *link) (err error) {
		units, err = l.systemd.ListUnitsByPatternsContext(ctx, nil, []string{networkdTimers + "*.timer"})
		return err
	})
	if err != nil {
		return busFault("list", "the timers of the network", err)
	}
	for _, u := range units {
		if u.Name == but || u.ActiveState == "inactive" {
			continue
		}
		if err := d.services.job(ctx, "stop", u.Name, stop, ""); err != nil && topology.FaultOf(err).Code != topology.CodeInvalid { // it has just gone
			return err
		}
	}
	return nil
}
