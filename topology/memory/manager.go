package memory

import (
	"context"
	"strings"

	"github.com/continuo-fleet/continuo/internal/unitfiles"
	"github.com/continuo-fleet/continuo/topology"
)

// A manager is what the service managers have read of the disk. Of a unit that is loaded they know
// nothing new before a reload, and of the definition of a container nothing at all: a generator reads it, at each reload.
type manager struct {
	debts      unitfiles.Debts
	reloads    int
	loaded     map[string]definition
	containers map[string]string // text of definitions
}

// mark notes that a file was changed.
func (m *manager) mark(path string) {
	for _, dir := range unitDirs {
		if below, ok := strings.CutPrefix(path, dir); ok {
			m.debts.Add(unitfiles.Unit(below))
		}
	}
	for _, dir := range userDirs {
		if below, ok := strings.CutPrefix(path, dir); ok {
			unit := unitfiles.Unit(below)
			if unit != unitfiles.Every {
				unit = anyUser + unit
			}
			m.debts.Add(unit)
		}
	}
	if below, ok := strings.CutPrefix(path, containerDir); ok {
		m.debts.Add(unitfiles.Container(below))
	}
}

// debtor is what a unit is called in debts: files of users are those of all users.
func debtor(ref string) string {
	if _, name, ok := strings.Cut(ref, "/"); ok {
		return anyUser + name
	}
	return ref
}

// loads has the manager read a unit again, if it has to. The lock is not held.
func (d *Device) loads(ctx context.Context, ref string) error {
	debts, unit := &d.manager.debts, debtor(ref)
	if _, any := debts.Any(); !any {
		return nil
	}
	batch := topology.Finally(ctx, d, d.finish)
	if marks := debts.Marks(); debts.Owed(unit) && d.readsAnew(ref) {
		debts.Forgive(unit, marks)
	}
	return d.settle(ctx, func() bool { return debts.Owed(unit) || !batch && debts.Deferred(unit) })
}

// acts is loads before an order: it depends on other units as well.
func (d *Device) acts(ctx context.Context, ref string) error {
	if err := d.loads(ctx, ref); err != nil {
		return err
	}
	batch := topology.Finally(ctx, d, d.finish)
	return d.settle(ctx, func() bool {
		now, atAll := d.manager.debts.Any()
		return now || !batch && atAll
	})
}

// readsAnew reports whether a unit is read when it is asked for: it is not loaded, and nothing that is loaded wants it.
func (d *Device) readsAnew(ref string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	u := d.units[ref]
	def := d.read(ref)
	return (u == nil || u.active == "inactive" && !u.wanted) && def.load == topology.Loaded && def.container == ""
}

func (d *Device) settle(ctx context.Context, owed func() bool) error {
	if !owed() {
		return nil
	}
	if err := topology.Gather(ctx); err != nil {
		return topology.FaultOf(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if owed() {
		d.reload()
		d.manager.reloads++
	}
	return nil
}

// finish is the reload at the end of a batch.
func (d *Device) finish(ctx context.Context) error {
	return d.settle(ctx, func() bool { _, atAll := d.manager.debts.Any(); return atAll })
}

// reload has the manager read everything. The lock is held.
func (d *Device) reload() {
	m := &d.manager
	m.debts.Pay(m.debts.Marks())
	m.loaded, m.containers = map[string]definition{}, map[string]string{}
	for p, n := range d.files {
		if below, ok := strings.CutPrefix(p, containerDir); ok && n.typ == topology.Regular {
			if name, ok := strings.CutSuffix(below, ".container"); ok {
				m.containers[name] = string(n.content)
			}
		}
	}
	for _, u := range d.units {
		u.wanted = u.persistent
	}
}

// letGo lets the manager forget a unit whose definition is gone, with all others of a batch; without one
// at the next look. The lock is held.
func (d *Device) letGo(ctx context.Context, ref string) (batch bool) {
	if d.read(ref).load != topology.NotFound {
		return false
	}
	d.manager.debts.Defer(debtor(ref))
	return topology.Finally(ctx, d, d.finish)
}

// DaemonReloads counts how often the service managers read their definitions again. A reboot is none.
func (d *Device) DaemonReloads() (n int) {
	d.hands(func() { n = d.manager.reloads })
	return n
}
