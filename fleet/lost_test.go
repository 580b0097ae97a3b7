package fleet_test

import (
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// The alive bucket is in memory, and gone after a restart of a single server. The control service makes it again, as it
// was, and nothing else.
func TestAliveBucketIsMadeAgain(t *testing.T) {
	r := newRig(t, pi1)
	r.serve(fleet.ServeOptions{Interval: 200 * time.Millisecond})
	js := r.js()
	for _, name := range []string{wire.StreamAlive, wire.StreamJournal} {
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(patience); ; {
		if _, err := js.Stream(t.Context(), wire.StreamAlive); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody made it again")
		}
	}
	if s, err := r.Setup(t.Context(), 1); err != nil || len(s.Created) != 1 || s.Created[0] != wire.StreamJournal || len(s.Differences) > 0 {
		t.Errorf("got %+v, %v", s, err)
	}
	nc := r.srv.ConnectDevice(pi1)
	for r.tryBeat(nc, "a") != nil {
	}
	r.until(pi1, "heard of", func(s fleet.DeviceState) bool { return s.Liveness == fleet.Live })
}
