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

var rollsBack = score.Policy{Preset: score.Converge, OnFailure: score.FailureRollBack, Deadline: score.Duration(5 * time.Minute), MinReady: 1}

// version is the manifest m in its n-th version.
func version(n uint64, m score.Manifest) score.Manifest {
	m.Metadata.Generation = n
	return under(rollsBack, m)
}

func brokenUnit(id score.ID, unit string, restartOn ...score.ID) score.Score {
	s := service(id, unit, restartOn...)
	spec := s.Spec.(score.Service)
	spec.UnitFile = strings.ReplaceAll(spec.UnitFile, "/usr/bin/"+unit, "/usr/bin/broken")
	s.Spec = spec
	return s
}

func scoreOf(st interpret.DeviceStatus, manifest string, id score.ID) (interpret.ScoreStatus, bool) {
	for _, m := range st.Manifests {
		for _, s := range m.Scores {
			if m.Name == manifest && s.ID == id {
				return s, true
			}
		}
	}
	return interpret.ScoreStatus{}, false
}

// A generation that fails goes back as a whole: what was changed is as it was, what only it made is gone, and the status
// names the score and why. It is not tried again, also not after a restart, until its content is another (G13, G41, X36,
// X59, X102).
func TestRollBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.dev.Program("/usr/bin/broken", memory.Program{Exits: true, Status: 3})
		_, f, h, stop := r.running()
		conf, app := file("conf", "/etc/conf", "1"), service("app", "app.service", "conf")
		offer(t, h, intent(1, version(1, manifest("m", conf, app)), manifest("other", file("x", "/etc/x", "1"))))
		later(time.Minute)
		if st := f.last(); !st.ConvergedAt(1) {
			t.Fatalf("the good one: %s", outcomes(st))
		}

		bad := version(2, manifest("m", file("conf", "/etc/conf", "2"), file("extra", "/etc/extra", "2"), brokenUnit("app", "app.service", "conf")))
		offer(t, h, intent(2, bad, manifest("other", file("x", "/etc/x", "2"))))
		later(time.Minute)
		back := func() {
			t.Helper()
			st := f.last()
			m := st.Manifests[0]
			if st.State != interpret.StateRolledBack || st.ConvergedAt(2) || m.RolledBack == nil || m.RolledBack.Generation != 2 || m.RolledBack.To != 1 || m.RolledBack.Score != "app" {
				t.Fatalf("%s: %s %+v", st.State, outcomes(st), m.RolledBack)
			}
			r.want(st, "m/app=rolled_back/exited m/conf=unchanged other/x=unchanged")
			if s, _ := scoreOf(st, "m", "app"); !strings.Contains(s.Message, "generation 2 is undone") {
				t.Errorf("message %q", s.Message)
			}
			r.content("/etc/conf", "1")
			r.content("/etc/x", "2") // another manifest is not concerned
			if _, there := r.dev.Read("/etc/extra"); there || !r.active(t, "app.service") {
				t.Errorf("what only the bad one made is there: %v, the service runs: %v", there, r.active(t, "app.service"))
			}
		}
		back()
		rec := r.dev.Record()
		later(24 * time.Hour)
		if n := rec.Mutations(); len(n) > 0 {
			t.Errorf("tried again: %v", n)
		}
		stop()
		r.restart()
		_, f, h, _ = r.running()
		rec = r.dev.Record()
		later(time.Hour)
		if n := rec.Mutations(); len(n) > 0 {
			t.Errorf("tried again after a restart: %v", n)
		}
		back()
		bad.Metadata.Generation = 3 // the same content as before
		offer(t, h, intent(3, bad, manifest("other", file("x", "/etc/x", "2"))))
		later(time.Hour)
		if n := rec.Mutations(); len(n) > 0 {
			t.Errorf("the same content was tried again: %v", n)
		}
		offer(t, h, intent(4, version(4, manifest("m", file("conf", "/etc/conf", "4"), app)), manifest("other", file("x", "/etc/x", "2"))))
		later(time.Minute)
		if st := f.last(); !st.ConvergedAt(4) || st.Manifests[0].RolledBack != nil {
			t.Errorf("the next one: %s", outcomes(st))
		}
		r.content("/etc/conf", "4")
	})
}

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

// What has nothing to do with the version is tried again, and condemns nothing; hold and rollForward stay where they
// are; without an earlier good version there is nothing to go back to.
func TestNoRollBack(t *testing.T) {
	for _, tt := range []struct {
		name string
		pol  score.Policy
		good bool
		code topology.Code
	}{
		{"a full disk", rollsBack, true, topology.CodeNoSpace},
		{"nobody knows what", rollsBack, true, topology.CodeUnknown},
		{"hold", score.Policy{Preset: score.Converge, OnFailure: score.FailureHold}, true, topology.CodeInvalid},
		{"roll forward", score.Policy{Preset: score.Converge, OnFailure: score.FailureRollForward}, true, topology.CodeInvalid},
		{"nothing was good", rollsBack, false, topology.CodeInvalid},
	} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			_, f, h, _ := r.running()
			fails := func() { r.dev.Fail(memory.OpWriteFile, "file:/etc/b", topology.Faultf(tt.code, "no")) }
			if !tt.good {
				fails()
			}
			offer(t, h, intent(1, under(tt.pol, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1")))))
			later(time.Hour)
			fails()
			offer(t, h, intent(2, under(tt.pol, manifest("m", file("a", "/etc/a", "2"), file("b", "/etc/b", "2")))))
			later(time.Hour)
			st := f.last()
			r.content("/etc/a", "2")
			if st.Manifests[0].RolledBack != nil || st.State != interpret.StatePartial {
				t.Errorf("%s: %s %+v", tt.name, outcomes(st), st.Manifests[0].RolledBack)
			}
			r.dev.Heal()
			later(time.Hour)
			if st := f.last(); !st.ConvergedAt(2) {
				t.Errorf("%s: at the end %s", tt.name, outcomes(st))
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

// A rollback whose target is gone is found before it is needed (X61).
func TestRollbackCheck(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		check := func() interpret.Receipt {
			return f.ask(t, h, interpret.Operation{Verb: interpret.VerbRollbackCheck})
		}
		r.dev.Publish("localhost/app:1", memory.Image{})
		offer(t, h, intent(1, version(1, manifest("m", container("web", "web")))))
		later(time.Second)
		if got := check(); got.Result != interpret.ResultDone {
			t.Fatalf("all is there: %+v", got)
		}
		r.dev.RemoveImage("localhost/app:1")
		got := check()
		if got.Result != interpret.ResultFailed || got.Code != agent.CodeNoRollback || !strings.Contains(got.Actions[0].Message, "localhost/app:1") {
			t.Errorf("the image is gone: %+v", got)
		}
	})
}
