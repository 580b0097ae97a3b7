package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// A version is good when it was ready for long enough: what fails before that takes it back, what fails later is drift.
func TestReadinessWindow(t *testing.T) {
	for _, tt := range []struct {
		dies time.Duration // after the new version is there
		back bool
	}{{20 * time.Second, true}, {40 * time.Second, false}} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			_, f, h, _ := r.running()
			pol := rollsBack
			pol.MinReady = 0 // 30 s
			app := service("app", "app.service", "conf")
			offer(t, h, intent(1, under(pol, version(1, manifest("m", file("conf", "/etc/conf", "1"), app)))))
			later(time.Minute)
			offer(t, h, intent(2, under(pol, version(2, manifest("m", file("conf", "/etc/conf", "2"), app)))))
			later(tt.dies)
			m := f.last().Manifests[0]
			if on := m.State == interpret.StateConverging && !m.GoodAt.IsZero(); on != tt.back {
				t.Fatalf("after %s it is %s, good at %s", tt.dies, m.State, m.GoodAt)
			}
			r.dev.Program("/usr/bin/app.service", memory.Program{Exits: true, Status: 1})
			r.dev.Kill("app.service", 1)
			later(20 * time.Minute)
			if back := f.last().Manifests[0].RolledBack != nil; back != tt.back {
				t.Errorf("it ended after %s: rolled back %v: %s", tt.dies, back, outcomes(f.last()))
			}
		})
	}
}

// Readiness decides whether a generation is good; the time that it may take is counted from its first try, also over a
// restart (H64, cases 138).
func TestDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, stop := r.running()
		ready := func(content string) score.Manifest {
			s := service("app", "app.service", "conf")
			s.Health = &score.Health{Readiness: &score.Probe{TCP: &score.TCPProbe{Port: 80}, Period: score.Duration(10 * time.Second)}}
			return manifest("m", file("conf", "/etc/conf", content), s)
		}
		r.dev.Listen("127.0.0.1:80", memory.Endpoint{})
		offer(t, h, intent(1, version(1, ready("1"))))
		later(time.Minute)
		if st := f.last(); !st.ConvergedAt(1) {
			t.Fatalf("the good one: %s", outcomes(st))
		}
		r.dev.Unlisten("127.0.0.1:80")
		offer(t, h, intent(2, version(2, ready("2"))))
		later(3 * time.Minute)
		st := f.last()
		if s, _ := scoreOf(st, "m", "app"); st.State != interpret.StateConverging || s.Code != interpret.CodeUnhealthy && s.Code != interpret.CodeNotReady {
			t.Fatalf("before the time is over: %s", outcomes(st))
		}
		stop()
		r.restart()
		_, f, _, _ = r.running()
		later(time.Minute)
		r.content("/etc/conf", "2")
		later(2 * time.Minute)
		r.content("/etc/conf", "1")
		if b := f.last().Manifests[0].RolledBack; b == nil || b.Code != interpret.CodeDeadline || b.Score != "app" {
			t.Errorf("rolled back: %+v", b)
		}
	})
}

// A score that says so itself stays where it is and condemns nothing.
func TestScoreHolds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		v := func(n uint64, c string) score.Manifest {
			m := twice(n, c)
			m.Spec.Scores[1].Policy = &score.Policy{OnFailure: score.FailureHold}
			return m
		}
		offer(t, h, intent(1, v(1, "1")))
		later(time.Minute)
		r.bad("/etc/b")
		offer(t, h, intent(2, v(2, "2")))
		later(time.Hour)
		r.content("/etc/a", "2")
		if st := f.last(); st.Manifests[0].RolledBack != nil {
			t.Errorf("%s", outcomes(st))
		}
	})
}

// A generation that the device cannot or may not play whole is not ready when its time is over; one that was good once is
// not judged again.
func TestWhatCannotBePlayedIsNotReady(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		offer(t, h, intent(1, twice(1, "1")))
		later(time.Minute)
		r.bad("/etc/a")
		r.dev.Put("/etc/a", "drift")
		later(time.Hour)
		for _, p := range f.last().Problems {
			t.Errorf("of a version that was good: %+v", p)
		}
		r.dev.Heal()
		later(10 * time.Minute)
		offer(t, h, intent(2, twice(2, "2", score.Score{ID: "later", Spec: score.Opaque{Of: "hologram/v9", Raw: []byte(`{}`)}})))
		later(4 * time.Minute)
		r.content("/etc/a", "2")
		later(2 * time.Minute)
		r.content("/etc/a", "1")
		if b := f.last().Manifests[0].RolledBack; b == nil || b.Score != "later" || b.Code != interpret.CodeDeadline {
			t.Errorf("%+v", b)
		}
	})
}

// What failed is new until it was true for once, also after a restart: where drift is only reported, it is tried again.
func TestFailureIsNoDriftAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, _, h, stop := r.running()
		pol := score.Policy{Preset: score.Guarded, OnDrift: score.DriftReport}
		offer(t, h, intent(1, under(pol, manifest("m", file("a", "/etc/a", "1")))))
		later(time.Minute)
		r.dev.Fail(memory.OpWriteFile, "file:/etc/a", topology.Faultf(topology.CodeNoSpace, "no space left"))
		m := under(pol, manifest("m", file("a", "/etc/a", "2")))
		m.Metadata.Generation = 2
		offer(t, h, intent(2, m))
		later(time.Minute)
		stop()
		r.restart()
		r.dev.Heal()
		_, f, _, _ := r.running()
		later(time.Minute)
		r.content("/etc/a", "2")
		r.dev.Put("/etc/a", "drift")
		later(time.Minute)
		if r.content("/etc/a", "drift"); !strings.HasPrefix(outcomes(f.last()), "m/a=drifted/policy") {
			t.Errorf("%s", outcomes(f.last()))
		}
	})
}

// The time that a version may take begins when it waits for nobody any more, also over a restart.
func TestDeadlineBeginsWithConsent(t *testing.T) {
	for _, restart := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			_, f, h, stop := r.running()
			v := func(n uint64, conf string) agent.Intent {
				app := service("app", "app.service", "conf")
				app.Health = &score.Health{Readiness: &score.Probe{TCP: &score.TCPProbe{Port: 80}, Period: score.Duration(10 * time.Second)}}
				m := version(n, manifest("m", file("conf", "/etc/conf", conf), app))
				m.Spec.Policy.OnIntent = score.IntentConfirm
				return intent(n, m)
			}
			install := func() {
				later(time.Second)
				f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: f.plan(t, h).ID})
				later(time.Minute)
			}
			r.dev.Listen("127.0.0.1:80", memory.Endpoint{})
			offer(t, h, v(1, "1"))
			install()
			later(time.Minute)
			if st := f.last(); !st.ConvergedAt(1) {
				t.Fatalf("the good one: %s", outcomes(st))
			}
			offer(t, h, v(2, "2"))
			later(time.Hour) // nobody looks at it
			r.dev.Unlisten("127.0.0.1:80")
			install()
			if restart {
				stop()
				r.restart()
				_, f, h, _ = r.running()
				later(time.Second)
			}
			r.content("/etc/conf", "2")
			later(3 * time.Minute)
			r.content("/etc/conf", "2")
			later(2 * time.Minute)
			r.content("/etc/conf", "1")
		})
	}
}
