package memory

import (
	"context"
	"reflect"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// A netCheckpoint is the network as it was.
type netCheckpoint struct {
	d     *Device
	kept  map[string]profile
	links map[string]netif
	timer *time.Timer
}

// windowMargin is what the timer leaves to whoever proves, so that the two do not race.
const windowMargin = time.Second

func (n network) Checkpoint(ctx context.Context, window time.Duration) (topology.Checkpoint, error) {
	if err := n.d.control.call(ctx, OpCheckpointNetwork, "network"); err != nil {
		return nil, err
	}
	for {
		n.d.mu.Lock()
		if n.d.net.open == nil {
			break
		}
		n.d.mu.Unlock()
		select {
		case <-n.d.net.free:
		case <-ctx.Done():
			return nil, topology.FaultOf(ctx.Err())
		}
	}
	defer n.d.mu.Unlock()
	cp := &netCheckpoint{d: n.d, kept: map[string]profile{}, links: map[string]netif{}}
	for name, p := range n.d.net.kept {
		cp.kept[name] = p
	}
	for name, l := range n.d.net.links {
		cp.links[name] = *l
	}
	n.d.net.open = cp
	cp.timer = time.AfterFunc(window+windowMargin, func() { n.d.hands(cp.restore) })
	return cp, nil
}

// restore brings back what was there. The lock is held.
func (cp *netCheckpoint) restore() {
	cs := &cp.d.net
	if cs.open != cp {
		return
	}
	for name, p := range cs.kept {
		if q, was := cp.kept[name]; !was || q.durable != p.durable || p.hidden {
			cp.d.changed(connectionResource(name))
		}
	}
	cs.kept = cp.kept
	cs.links = map[string]*netif{}
	for name, l := range cp.links {
		cs.links[name] = &l
	}
	cp.close()
}

func (cp *netCheckpoint) close() {
	cp.timer.Stop()
	cp.d.net.open = nil
	select {
	case cp.d.net.free <- struct{}{}:
	default:
	}
}

func (cp *netCheckpoint) Commit(ctx context.Context) error {
	if err := cp.d.control.call(ctx, OpCommitNetwork, "network"); err != nil {
		return err
	}
	cp.d.mu.Lock()
	defer cp.d.mu.Unlock()
	cs := &cp.d.net
	if cs.open != cp {
		return topology.Faultf(topology.CodeConnectivity, "the time for the proof is over, and what was there before is there again")
	}
	for name, p := range cs.kept {
		if p.hidden {
			delete(cs.kept, name)
			continue
		}
		p.durable = true
		cs.kept[name] = p
	}
	cp.close()
	return nil
}

func (cp *netCheckpoint) Rollback(ctx context.Context) error {
	if err := cp.d.control.call(ctx, OpRollbackNetwork, "network"); err != nil {
		return err
	}
	cp.d.hands(cp.restore)
	return nil
}

// recoverNetwork rolls back what a program that is gone left open. The lock is held.
func (d *Device) recoverNetwork() []topology.Resource {
	cp := d.net.open
	if cp == nil {
		return nil
	}
	var of []topology.Resource
	for name, p := range d.net.kept {
		if was, there := cp.kept[name]; !there || !reflect.DeepEqual(p, was) {
			of = append(of, connectionResource(name))
		}
	}
	cp.restore()
	return of
}
