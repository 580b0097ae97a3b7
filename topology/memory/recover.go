package memory

import (
	"context"

	"github.com/continuo-fleet/continuo/topology"
)

// Recover rolls back the checkpoints that a program which is gone left open.
func (d *Device) Recover(context.Context) (of []topology.Resource, err error) {
	d.hands(func() { of = append(of, append(d.recoverFirewall(), d.recoverNetwork()...)...) })
	return of, nil
}
