package memory_test

import (
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// timeHands are the hands of the suite.
type timeHands struct{ d *memory.Device }

func (h timeHands) Edit() error {
	h.d.Clock(func(st *topology.TimeState) { st.Altered = true })
	return nil
}

func (h timeHands) Delete() error {
	h.d.Clock(func(st *topology.TimeState) { st.Written, st.Choice = false, topology.TimeServers{} })
	return nil
}

func (h timeHands) Restarts() (string, error) { return "", nil } // nothing in memory runs by being looked at
