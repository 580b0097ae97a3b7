package pi

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// Checkpoint makes a checkpoint of all connections.
func (n *network) Checkpoint(ctx context.Context, window time.Duration) (topology.Checkpoint, error) {
	m, err := n.manager(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-n.free:
	case <-ctx.Done():
		return nil, topology.FaultOf(ctx.Err())
	}
	cp := &netCheckpoint{n: n, manager: m, window: window}
	if cp.record, err = m.begin(ctx, window+activationPatience+windowMargin); err == nil {
		cp.record.Manager = m.name()
		if err = writeRecord(cp.record); err != nil {
			_ = m.restore(ctx, cp.record) // nothing was done yet, and the timer ends it otherwise
		}
	}
	if err != nil {
		n.free <- struct{}{}
		return nil, err
	}
	n.mu.Lock()
	n.open = cp
	n.mu.Unlock()
	// Whoever made it may forget it: its time is over once, and then there may be another one.
	cp.expiry = time.AfterFunc(2*(window+activationPatience+windowMargin), cp.end)
	return cp, nil
}

type netCheckpoint struct {
	n       *network
	manager netManager
	window  time.Duration
	record  netRecord
	expiry  *time.Timer
	once    sync.Once
}

// end lets the next checkpoint be made.
func (cp *netCheckpoint) end() {
	cp.once.Do(func() {
		cp.expiry.Stop()
		cp.n.mu.Lock()
		cp.n.open = nil
		cp.n.mu.Unlock()
		cp.n.free <- struct{}{}
	})
}

// Commit keeps what was done since.
func (cp *netCheckpoint) Commit(ctx context.Context) error {
	if err := cp.manager.keep(ctx, cp.record); err != nil {
		return err
	}
	_ = os.Remove(netRecordFile)
	cp.end()
	return nil
}

// Rollback brings back what was there before.
func (cp *netCheckpoint) Rollback(ctx context.Context) error {
	defer cp.end()
	if err := cp.manager.restore(ctx, cp.record); err != nil {
		return err
	}
	_ = os.Remove(netRecordFile)
	return nil
}

// recover rolls back the checkpoint that a process before this one left open.
func (n *network) recover(ctx context.Context) ([]topology.Resource, error) {
	data, err := os.ReadFile(netRecordFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var r netRecord
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil { // the timer of the manager takes it back
		_ = os.Remove(netRecordFile)
		return nil, topology.Faultf(topology.FaultOf(err).Code, "cannot read %s, which says what of the network was not confirmed: %v", netRecordFile, err)
	}
	for _, m := range n.managers {
		if m.name() == r.Manager {
			if err := m.restore(ctx, r); err != nil {
				return nil, err
			}
		}
	}
	_ = os.Remove(netRecordFile)
	var of []topology.Resource
	for _, name := range r.Names {
		of = append(of, topology.Resource("connection:"+name))
	}
	return of, nil
}

func writeRecord(r netRecord) error {
	data, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(path.Dir(netRecordFile), 0o755)
	}
	if err == nil {
		err = os.WriteFile(netRecordFile+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(netRecordFile+".new", netRecordFile)
	}
	if err != nil {
		return topology.Faultf(topology.FaultOf(err).Code, "cannot write down what is about to be tried with the network: %v", err)
	}
	return nil
}
