package agent_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// What cannot even be looked at is tried again with the same growing pauses as what cannot be changed.
func TestObserveFailsForLong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.dev.Fail(memory.OpFile, "file:/etc/a", topology.Faultf(topology.CodeIO, "io"))
		_, f, h, _ := r.running()
		rec := r.dev.Record()
		if err := h.Offer(intent(1, manifest("m", file("a", "/etc/a", "1")))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(rec.Calls()); n < 10 || n > 60 {
			t.Errorf("looked %d times in an hour", n)
		}
		if st := f.last(); st.State != interpret.StateFailed {
			t.Errorf("state %s", st.State)
		}
	})
}
