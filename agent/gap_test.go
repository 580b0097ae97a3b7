package agent_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/topology"
)

// slow is Events that take a while to begin to see.
type slow struct {
	topology.Events
	takes time.Duration
}

func (s slow) Watch(ctx context.Context, res []topology.Resource, changed func(topology.Resource)) error {
	time.Sleep(s.takes)
	return s.Events.Watch(ctx, res, changed)
}

// What somebody changes between the look of a pass and the start of its watch is found as
// soon as the watch has begun, and not by the next full pass (H62).
func TestChangeBeforeTheWatchBegins(t *testing.T) {
	for _, takes := range []time.Duration{0, 100 * time.Millisecond, 10 * time.Second} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			_, f, h, _ := r.running(func(c *agent.Config) { c.Events = slow{r.dev.Events(), takes} })
			offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"))))
			for c, _ := r.dev.Read("/etc/a"); c != "1"; c, _ = r.dev.Read("/etc/a") {
				time.Sleep(time.Millisecond)
			}
			synctest.Wait()
			r.dev.Put("/etc/a", "x")
			time.Sleep(takes + time.Second)
			synctest.Wait()
			if c, _ := r.dev.Read("/etc/a"); c != "1" {
				t.Errorf("watch that takes %s: a change before it was not found", takes)
			}
			if st := f.last(); len(st.Problems) > 0 {
				t.Errorf("problems %+v", st.Problems)
			}
		})
	}
}
