package agent_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// settled writes a status without what the moment of a look adds: what was changed is unchanged a look later.
func settled(st interpret.DeviceStatus) string {
	s := strings.ReplaceAll(outcomes(st), "=changed", "=unchanged")
	for _, o := range st.Orphans {
		s += fmt.Sprintf("left %s ", o.Resource) // why it stays is what the last pass over everything found
	}
	return s + string(st.State)
}

// A pass over a part leaves a device, and its status, as a pass over everything would: whatever is disturbed by hand, under
// whatever policies, and whatever is asked for in between.
func TestPartsAddUp(t *testing.T) {
	for seed := range uint64(40) {
		w := wilds{rand.New(rand.NewPCG(seed, 2))}
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			w.disturb(r)
			_, f, h, _ := r.running(func(c *agent.Config) { c.Relist = 240 * time.Hour })
			var last interpret.DeviceStatus
			see := func() string {
				later(time.Minute)
				if st := f.last(); st.Kind != "" {
					last = st
				}
				return settled(last)
			}
			for n := range uint64(3) {
				offer(t, h, intent(n+1, w.manifests(n+1)...))
				see()
				for range 4 {
					w.disturb(r)
					if w.IntN(3) == 0 {
						f.plan(t, h)
					}
					got := see()
					h.Control(agent.Control{Blocked: true}) // and back: two passes over everything
					later(time.Minute)
					h.Control(agent.Control{})
					if want := see(); got != want {
						t.Fatalf("seed %d: after parts: %s\nafter all:   %s", seed, got, want)
					}
				}
			}
		})
	}
}

// What an event leads to restarts what depends on it, looks at nothing else, and collects nothing.
func TestPartIsOnlyAPart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		offerAll := []score.Manifest{
			manifest("m", file("conf", "/etc/conf", "1"), service("app", "app.service", "conf"), file("far", "/etc/far", "1")),
			manifest("n", file("a", "/etc/a", "1"), file("b", "/etc/b", "1")),
		}
		r.apply(intent(1, offerAll...))
		r.dev.Fail(memory.OpFile, "file:/etc/far", topology.Faultf(topology.CodeIO, "io"))
		offerAll[1].Spec.Scores = offerAll[1].Spec.Scores[:1]
		_, f, h, _ := r.running(func(c *agent.Config) { c.Relist = 240 * time.Hour })
		offer(t, h, intent(2, offerAll...))
		later(time.Second)
		rec := r.dev.Record()
		for i := range 5 {
			r.dev.Put("/etc/conf", fmt.Sprint("drift ", i))
			later(100 * time.Millisecond)
		}
		if n := count(rec, memory.OpRestart, "unit:app.service"); n < 1 {
			t.Errorf("restarted %d times: %s", n, outcomes(f.last()))
		}
		if n := count(rec, memory.OpFile, "file:/etc/a"); n > 0 {
			t.Errorf("what has nothing to do with it was looked at %d times", n)
		}
		if _, there := r.dev.Read("/etc/b"); !there {
			t.Error("b was collected")
		}
	})
}
