package agent_test

import (
	"context"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// A wish that failed is still a wish, and no drift, also after the agent was killed: where drift is only reported, it is made
// true all the same, and so is the way back to a good version. What was true once is drift, also when the failure had an effect,
// and when the books were lost since (G25, H56, H57).
func TestWishThatFailedIsNoDrift(t *testing.T) {
	pol := score.Policy{Preset: score.Converge, OnDrift: score.DriftReport, OnFailure: score.FailureRollBack}
	m := func(n uint64, content string) score.Manifest {
		v := under(pol, manifest("m", file("a", "/etc/a", content)))
		v.Metadata.Generation = n
		return v
	}
	fails := topology.Faultf(topology.CodeIO, "io")
	for name, between := range map[string]func(r *rig, stop func()){
		"alive": func(*rig, func()) {},
		"killed": func(r *rig, stop func()) {
			stop()
			r.restart()
			r.running()
		},
	} {
		for _, write := range []memory.Op{memory.OpWriteFile} {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				_, _, h, stop := r.running()
				offer(t, h, intent(1, m(1, "1")))
				later(time.Second)
				r.dev.Fail(write, "file:/etc/a", fails)
				offer(t, h, intent(2, m(2, "2")))
				later(time.Second)
				between(r, stop)
				later(time.Second)
				r.dev.Heal()
				later(time.Hour)
				r.content("/etc/a", "2")
				if e, _ := r.store.Owner("file:/etc/a"); e.LastChanged != 2 {
					t.Errorf("%s: last changed in generation %d", name, e.LastChanged)
				}
				r.dev.Put("/etc/a", "by hand")
				later(time.Hour)
				r.content("/etc/a", "by hand")
			})
		}
	}
	t.Run("with effect", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, 0)
			w.call = func(c memory.Call, after bool) error {
				if after {
					return fails
				}
				return nil
			}
			w.live()
			w.publish(intent(1, m(1, "1")))
			w.call = nil
			w.publish(intent(2, m(2, "1")))
			w.dev.Put("/etc/a", "by hand")
			w.rest(time.Hour)
			w.content("/etc/a", "by hand")
			if e, _ := w.store.Owner("file:/etc/a"); e.LastChanged != 1 {
				t.Errorf("last changed in generation %d", e.LastChanged)
			}
		})
	})
	t.Run("books were lost", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			_, _, h, stop := r.running()
			offer(t, h, intent(1, m(1, "1")))
			later(time.Second)
			stop()
			r.loseBooks()
			_, _, h, _ = r.running()
			offer(t, h, intent(1, m(1, "1")))
			later(time.Second)
			r.dev.Put("/etc/a", "by hand")
			later(time.Hour)
			r.content("/etc/a", "by hand")
		})
	})
	t.Run("the way back", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			r.dev.Program("/usr/bin/broken", memory.Program{Exits: true, Status: 3})
			_, _, h, stop := r.running()
			v := func(n uint64, s score.Score) score.Manifest {
				v := m(n, string('0'+rune(n)))
				v.Spec.Scores = append(v.Spec.Scores, s)
				return v
			}
			offer(t, h, intent(1, v(1, service("app", "app.service", "a"))))
			later(time.Minute)
			r.dev.Before(func() func(c context.Context, x memory.Call) error {
				writes := 0
				return func(_ context.Context, c memory.Call) error {
					if c.Op == memory.OpWriteFile && c.Resource == "file:/etc/a" {
						if writes++; writes > 1 { // the first is that of the bad version
							return fails
						}
					}
					return nil
				}
			}())
			offer(t, h, intent(2, v(2, brokenUnit("app", "app.service", "a"))))
			later(10 * time.Second)
			r.content("/etc/a", "2")
			stop()
			r.dev.Heal()
			r.restart()
			r.running()
			later(time.Hour)
			r.content("/etc/a", "1")
			if !r.active(t, "app.service") {
				t.Error("the service of the good version does not run")
			}
		})
	})
}
