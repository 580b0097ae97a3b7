package agent_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
)

// facts looks at a device in memory and lets a test change what it is.
func (r *rig) facts(change func(*topology.Facts)) {
	f, err := r.dev.Facts().Facts(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	f.Disks = slices.Clone(f.Disks)
	change(&f)
	r.dev.SetFacts(f)
}

func withFacts(r *rig) func(*agent.Config) {
	return func(c *agent.Config) { c.Self = &agent.Self{Facts: r.dev.Facts(), Tools: r.dev.Tools()} }
}

// informed gives what was sent since it was asked last.
func informed(f *fleetSide) (out []interpret.DeviceInfo) {
	synctest.Wait()
	for len(f.informed) > 0 {
		out = append(out, <-f.informed)
	}
	return out
}

// problemNow is what the last report says under a code.
func problemNow(f *fleetSide, code interpret.Code, last *interpret.DeviceStatus) (interpret.Problem, bool) {
	synctest.Wait()
	for len(f.reported) > 0 {
		*last = <-f.reported
	}
	i := slices.IndexFunc(last.Problems, func(p interpret.Problem) bool { return p.Code == code })
	if i < 0 {
		return interpret.Problem{}, false
	}
	return last.Problems[i], true
}

// TestInfoIsSentWhenItChanges: what a device is is told when that changes; what moves all the time is told rarely, and
// what nobody would notice is not told at all.
func TestInfoIsSentWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.facts(func(f *topology.Facts) { f.Temperature = new(50.0) })
		_, f, _, _ := r.running(withFacts(r))
		first := informed(f)
		if len(first) != 1 || first[0].Kind != interpret.InfoKind || first[0].Device != "pi-1" || first[0].Facts.Serial == "" || first[0].Facts.Hostname != "raspberrypi" {
			t.Fatalf("got %+v", first)
		}
		steps := []struct {
			what   string
			change func(*topology.Facts)
			wait   time.Duration
			sent   int
		}{
			{"nothing", func(*topology.Facts) {}, time.Hour, 0},
			{"a little warmer", func(f *topology.Facts) { f.Temperature = new(52.0) }, time.Hour, 0},
			{"a little fuller", func(f *topology.Facts) { f.Disks[0].FreeMiB -= 50 }, time.Hour, 0},
			{"much warmer", func(f *topology.Facts) { f.Temperature = new(70.0) }, 2 * time.Minute, 1},
			{"cold at once", func(f *topology.Facts) { f.Temperature = new(20.0) }, 5 * time.Minute, 0},
			{"later", func(*topology.Facts) {}, 11 * time.Minute, 1},
			{"much fuller", func(f *topology.Facts) { f.Disks[0].FreeMiB -= 5000 }, time.Hour, 1},
			{"another kernel", func(f *topology.Facts) { f.Kernel = "6.12.99" }, 2 * time.Minute, 1},
			{"another address", func(f *topology.Facts) {
				f.Interfaces = []topology.Interface{{Name: "eth0", Addresses: []string{"192.0.2.8/24"}}}
			}, 2 * time.Minute, 1},
			{"podman is gone", func(*topology.Facts) { r.dev.SetTool("podman") }, 2 * time.Minute, 1}, // G08
			{"podman is back", func(*topology.Facts) {
				r.dev.SetTool("podman", topology.ToolCopy{Path: "/usr/bin/podman", Version: "5.4.2", Works: true})
			}, 2 * time.Minute, 1},
			{"no sensor", func(f *topology.Facts) { f.Temperature = nil }, 2 * time.Minute, 1},
			{"the same for a day", func(*topology.Facts) {}, 24 * time.Hour, 4},
		}
		for _, s := range steps {
			r.facts(s.change)
			time.Sleep(s.wait) // of the bubble
			if got := informed(f); len(got) != s.sent {
				t.Errorf("%s: sent %d times, want %d", s.what, len(got), s.sent)
			}
		}
	})
}

// TestRebootRequired: a marker that a package left is told in the info and as a problem, until it is gone (X39).
func TestRebootRequired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running(withFacts(r))
		offer(t, h, intent(1))
		informed(f)
		var last interpret.DeviceStatus
		if p, ok := problemNow(f, agent.CodeReboot, &last); ok {
			t.Fatalf("got %+v", p)
		}
		r.facts(func(f *topology.Facts) { f.RebootRequired, f.RebootFor = true, []string{"linux-image-rpi-v8"} })
		time.Sleep(2 * time.Minute)
		if sent := informed(f); len(sent) != 1 || !sent[0].Facts.RebootRequired {
			t.Errorf("got %+v", sent)
		}
		if p, ok := problemNow(f, agent.CodeReboot, &last); !ok || !strings.Contains(p.Message, "linux-image-rpi-v8") {
			t.Errorf("got %+v", last.Problems)
		}
		offer(t, h, intent(2)) // another intent does not boot the device
		if _, ok := problemNow(f, agent.CodeReboot, &last); !ok || last.Generation != 2 {
			t.Errorf("got %+v", last)
		}
		r.facts(func(f *topology.Facts) { f.RebootRequired, f.RebootFor = false, nil })
		time.Sleep(2 * time.Minute)
		if p, ok := problemNow(f, agent.CodeReboot, &last); ok {
			t.Errorf("got %+v", p)
		}
	})
}

// TestClockOffset: a clock that is wrong is told of once, and not for every second that it moves (X45).
func TestClockOffset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running(withFacts(r))
		offer(t, h, intent(1))
		informed(f)
		var last interpret.DeviceStatus
		const within = 600 * time.Millisecond
		for _, s := range []struct {
			ahead time.Duration
			want  string // "" no problem
			sent  int
		}{
			{200 * time.Millisecond, "", 1}, // the first measurement
			{500 * time.Millisecond, "", 0},
			{29 * time.Second, "", 1},
			{-90 * time.Second, "1m30s behind", 1},
			{-91 * time.Second, "1m30s behind", 0},
			{-25 * time.Second, "25s behind", 1},
			{90*time.Minute + time.Second, "1h30m0s ahead of", 1},
			{time.Second, "", 1},
		} {
			h.Clock(s.ahead, within)
			p, ok := problemNow(f, agent.CodeClock, &last)
			if ok != (s.want != "") || !strings.Contains(p.Message, s.want) {
				t.Errorf("%s: got %q, want %q", s.ahead, p.Message, s.want)
			}
			sent := informed(f)
			if len(sent) != s.sent || s.sent > 0 && *sent[0].Clock.AheadSeconds != s.ahead.Seconds() {
				b, _ := json.Marshal(sent)
				t.Errorf("%s: sent %s, want %d", s.ahead, b, s.sent)
			}
		}
	})
}
