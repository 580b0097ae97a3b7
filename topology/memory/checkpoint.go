package memory

import (
	"context"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// checkpoint holds what a part of the device was like. It is open until it is ended, or
// until its window is over.
type checkpoint struct {
	d       *Device
	res     topology.Resource
	restore func() // under the lock
	timer   *time.Timer
}

// checkpoint makes one; there is one of each resource at a time. The lock is held.
func (d *Device) checkpoint(res topology.Resource, window time.Duration, restore func()) *checkpoint {
	if before := d.open[res]; before != nil {
		before.timer.Stop()
	}
	c := &checkpoint{d: d, res: res, restore: restore}
	c.timer = time.AfterFunc(window, func() { d.hands(func() { c.end(true) }) })
	d.open[res] = c
	return c
}

// end ends c, and reports whether it was open. The lock is held.
func (c *checkpoint) end(back bool) bool {
	if c.d.open[c.res] != c {
		return false
	}
	delete(c.d.open, c.res)
	c.timer.Stop()
	if back {
		c.restore()
		c.d.changed(c.res)
	}
	return true
}

func (c *checkpoint) Commit(ctx context.Context) error {
	if err := c.d.control.call(ctx, OpCommitFirewall, c.res); err != nil {
		return err
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if !c.end(false) {
		return topology.Faultf(topology.CodeConnectivity, "the window is over, and the change was taken back")
	}
	return nil
}

func (c *checkpoint) Rollback(ctx context.Context) error {
	if err := c.d.control.call(ctx, OpRollbackFirewall, c.res); err != nil {
		return err
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.end(true)
	return nil
}

// recoverFirewall rolls back the checkpoint of the firewall, if one is open. The lock is held.
func (d *Device) recoverFirewall() []topology.Resource {
	if c := d.open[firewallResource]; c != nil && c.end(true) {
		return []topology.Resource{c.res}
	}
	return nil
}
