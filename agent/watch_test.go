package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// deaf is Events that cannot be watched until they are mended.
type deaf struct {
	topology.Events
	mu      sync.Mutex
	broken  bool
	watched []topology.Resource
}

func (d *deaf) Watch(ctx context.Context, res []topology.Resource, changed func(topology.Resource)) error {
	d.mu.Lock()
	broken := d.broken
	d.watched = slices.Sorted(slices.Values(res))
	d.mu.Unlock()
	if broken {
		return errors.New("too many watches")
	}
	return d.Events.Watch(ctx, res, changed)
}

func (d *deaf) mend() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = false
}

// A device that cannot watch says so, finds drift by its full pass, tries again, and takes
// it back. What is watched is what the present plan claims.
func TestCannotWatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		ev := &deaf{Events: r.dev.Events(), broken: true}
		_, f, h, _ := r.running(func(c *agent.Config) { c.Events = ev })
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"))))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		st := f.last()
		if len(st.Problems) != 1 || st.Problems[0].Code != agent.CodeWatch || !strings.Contains(st.Problems[0].Message, "a full pass every 5m0s finds them: too many watches") {
			t.Errorf("problems %+v", st.Problems)
		}
		r.dev.Put("/etc/a", "x")
		time.Sleep(7 * time.Minute)
		if c, _ := r.dev.Read("/etc/a"); c != "1" {
			t.Error("drift was not found by the full pass")
		}
		ev.mend()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if st := f.last(); len(st.Problems) > 0 {
			t.Errorf("problems %+v", st.Problems)
		}
		offer(t, h, intent(2, manifest("m", file("b", "/etc/b", "1"))))
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []topology.Resource{"file:/etc/b"}; !slices.Equal(ev.watched, want) {
			t.Errorf("watched %v, want %v", ev.watched, want)
		}
		r.dev.Put("/etc/b", "x")
		time.Sleep(2 * time.Second)
		if c, _ := r.dev.Read("/etc/b"); c != "1" {
			t.Error("drift was not found by an event")
		}
	})
}

type broom struct{ swept [][]string }

func (b *broom) SweepTemp(dirs []string) error {
	b.swept = append(b.swept, dirs)
	return errors.New("it does not go away")
}

// The start clears away what a killed write left, once for each directory; that it cannot does not matter.
func TestSweepAtStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.apply(intent(1, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"), file("c", "/srv/c", "1"))))
		b := &broom{}
		_, f, h, _ := r.running(func(c *agent.Config) { c.Sweeper = b })
		synctest.Wait() // the link may run before the first pass begins
		if len(b.swept) != 1 || !slices.Equal(b.swept[0], []string{"/etc", "/srv"}) {
			t.Errorf("swept %v", b.swept)
		}
		offer(t, h, intent(2, manifest("m", file("a", "/etc/a", "1"))))
		time.Sleep(time.Second)
		synctest.Wait()
		if st := f.last(); st.State != interpret.StateConverged {
			t.Errorf("state %s", st.State)
		}
	})
}

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

// A secret that its owner rotates is seen at once: what uses it is played, and what does not is not even looked at.
func TestRotatedSecret(t *testing.T) { // G59
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.dev.SetSecret("db", "first")
		conf := score.Score{ID: "conf", Spec: score.File{Path: "/etc/conf", Mode: 0o600, Template: &score.Template{Text: `password = {{ secret "db" }}`}}}
		_, f, h, _ := r.running()
		offer(t, h, intent(1, manifest("m", conf, file("other", "/etc/other", "1"))))
		time.Sleep(time.Minute)
		synctest.Wait()
		calls := r.dev.Record()
		r.dev.SetSecret("db", "second")
		r.dev.SetSecret("unused", "x")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if c, _ := r.dev.Read("/etc/conf"); c != "password = second" {
			t.Errorf("the file has %q", c)
		}
		for _, c := range calls.Calls() {
			if c.Resource == "file:/etc/other" {
				t.Errorf("%s of what does not use it", c.Op)
			}
		}
		if st := f.last(); !st.ConvergedAt(1) {
			t.Errorf("the device is %s", st.State)
		}
	})
}
