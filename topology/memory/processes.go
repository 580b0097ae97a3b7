package memory

import (
	"cmp"
	"path"

	"github.com/continuo-fleet/continuo/topology"
)

// A Program is what a command of the device does when it is started. A program that is
// not known runs on, as a service should; the command of a oneshot ends with status 0.
type Program struct {
	Exits  bool // it ends at once
	Status int
	Output string // what it writes
}

// Program says what the command at path does, from its next start on.
func (d *Device) Program(path string, p Program) { d.hands(func() { d.programs[path] = p }) }

// launch starts the program of a unit and follows it until nothing moves any more. The
// lock is held.
func (d *Device) launch(name string, def definition, u *unit) {
	u.invocation, u.result, u.status, u.log = d.fresh(), "success", 0, ""
	if d.manager.loaded == nil {
		d.manager.loaded = map[string]definition{}
	}
	d.manager.loaded[name] = def
	if def.slow {
		d.become(name, u, "activating", "start-pre")
		return
	}
	if def.typ == "" { // a timer, a socket, a target
		sub := map[string]string{".timer": "waiting", ".path": "waiting", ".socket": "listening"}[path.Ext(name)]
		d.become(name, u, "active", cmp.Or(sub, "active"))
		return
	}
	p := d.programs[def.start]
	u.log = p.Output
	if def.container != "" {
		c := d.containers[def.container]
		if c == nil || !d.hasImage(c.config.Image) {
			u.result = "exit-code"
			u.status = 125
			d.become(name, u, "failed", "failed")
			return
		}
		p = d.images[c.config.Image].Program
		d.containerStarted(c)
	}
	if def.typ == "oneshot" {
		d.ended(name, def, u, p.Status)
		return
	}
	u.pid = 1000 + d.next()
	d.become(name, u, "active", "running")
	if p.Exits {
		d.ended(name, def, u, p.Status)
	}
}

// ended is what the service manager does when the program of a unit has ended.
func (d *Device) ended(name string, def definition, u *unit, status int) {
	u.pid, u.status, u.result = 0, status, "success"
	if status != 0 {
		u.result = "exit-code"
	}
	if c := d.containers[def.container]; def.container != "" && c != nil {
		d.containerEnded(c, status)
	}
	again := def.restart == "always" || def.restart == "on-failure" && status != 0
	switch {
	case again && def.typ != "oneshot":
		d.again(name, def, u)
	case def.remain && status == 0:
		d.become(name, u, "active", "exited")
	case status == 0:
		d.become(name, u, "inactive", "dead")
	default:
		d.become(name, u, "failed", "failed")
	}
}

// again starts a unit that ended, by itself. One whose program ends each time is found
// waiting for its next start, or at the limit.
func (d *Device) again(name string, def definition, u *unit) {
	p := d.programs[def.start]
	if c := d.containers[def.container]; def.container != "" && c != nil {
		p = d.images[c.config.Image].Program
	}
	u.restarts++
	switch {
	case !p.Exits:
		d.launch(name, def, u)
	case def.limited:
		u.restarts, u.result = 5, "start-limit-hit"
		d.become(name, u, "failed", "failed")
	default:
		d.become(name, u, "activating", "auto-restart")
	}
}

// halt stops a unit. The lock is held.
func (d *Device) halt(name string, u *unit) {
	if !u.up() {
		return
	}
	u.pid, u.result, u.status = 0, "success", 0
	if def := d.load(name); def.container != "" && d.containers[def.container] != nil {
		d.containerEnded(d.containers[def.container], 0)
	}
	d.become(name, u, "inactive", "dead")
}

// The methods below act on services as somebody else on the device would.

// Kill ends the program of a unit with a status, behind the back of the service
// manager, which does what the definition says.
func (d *Device) Kill(name string, status int) {
	d.hands(func() {
		if u := d.units[name]; u != nil && u.active == "active" {
			d.ended(name, d.load(name), u, status)
		}
	})
}

// StopUnit stops a unit by hand.
func (d *Device) StopUnit(name string) { d.hands(func() { d.halt(name, d.unit(name)) }) }

// StartUnit starts a unit by hand.
func (d *Device) StartUnit(name string) {
	d.hands(func() {
		if def, u := d.load(name), d.unit(name); def.load == topology.Loaded && u.active != "active" {
			d.launch(name, def, u)
		}
	})
}

// Enable enables a unit by hand, for every boot or until the next one.
func (d *Device) Enable(name string, runtime bool) {
	d.hands(func() {
		u := d.unit(name)
		u.persistent, u.runtime = !runtime, runtime
		d.changed(unitResource(name))
	})
}

// Disable disables a unit by hand.
func (d *Device) Disable(name string) {
	d.hands(func() {
		u := d.unit(name)
		u.persistent, u.runtime = false, false
		d.changed(unitResource(name))
	})
}

// Mask masks a unit that has no definition of an administrator, as is the rule.
func (d *Device) Mask(name string) { d.Symlink("/dev/null", adminDir+name) }

// Unmask takes the mask away.
func (d *Device) Unmask(name string) { d.Delete(adminDir + name) }

// Install puts a unit on the device that comes with the system.
func (d *Device) Install(name, text string) { d.Put(vendorDir+name, text) }

// Reboot ends everything that runs and starts what is enabled.
func (d *Device) Reboot() {
	d.hands(func() {
		for name, u := range d.units {
			d.halt(name, u)
			u.runtime, u.restarts, u.result, u.status = false, 0, "success", 0
			d.become(name, u, "inactive", "dead")
		}
		for p := range d.files {
			if len(p) > len("/run/") && p[:5] == "/run/" {
				delete(d.files, p)
			}
		}
		d.reload()
		for name, u := range d.units {
			def := d.load(name)
			if def.load == topology.Loaded && (u.persistent || def.container != "" && def.install) {
				d.launch(name, def, u)
			}
		}
		d.firewall = topology.FirewallState{}
		d.host.Transient = cmp.Or(d.host.Static, "localhost")
	})
}
