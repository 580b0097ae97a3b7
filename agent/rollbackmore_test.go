package agent_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// bad makes a score fail at once, in a way that is its own fault.
func (r *rig) bad(path string) {
	r.dev.Fail(memory.OpWriteFile, topology.Resource("file:"+path), topology.Faultf(topology.CodeInvalid, "no"))
}

func (r *rig) gone(path string) {
	r.t.Helper()
	if c, there := r.dev.Read(path); there {
		r.t.Errorf("%s is there: %q", path, c)
	}
}

func twice(n uint64, content string, more ...score.Score) score.Manifest {
	return version(n, manifest("m", append([]score.Score{file("a", "/etc/a", content), file("b", "/etc/b", content, "a")}, more...)...))
}

// The good version cannot be made true either: that is said, tried again with pauses, and never a loop (X61).
func TestGoodVersionFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		offer(t, h, intent(1, twice(1, "1")))
		later(time.Minute)
		r.bad("/etc/b")
		offer(t, h, intent(2, twice(2, "2", file("new", "/etc/new", "2", "a"))))
		later(time.Second)
		r.bad("/etc/a") // so cannot the way back be gone
		rec := r.dev.Record()
		r.dev.Put("/etc/a", "drift")
		later(time.Hour)
		st := f.last()
		if m := st.Manifests[0]; m.RolledBack == nil || st.State == interpret.StateConverged || st.ConvergedAt(1) {
			t.Errorf("%s, state %s, %+v", outcomes(st), st.State, m.RolledBack)
		}
		if p := h.Pulse(); p.State == interpret.StateConverged {
			t.Errorf("pulse %+v", p)
		}
		if n := count(rec, memory.OpWriteFile, "file:/etc/a"); n < 2 || n > 30 {
			t.Errorf("tried %d times in an hour", n)
		}
		r.dev.Heal()
		later(10 * time.Minute)
		r.content("/etc/a", "1")
		r.content("/etc/b", "1")
		r.gone("/etc/new")
		if st := f.last(); st.State != interpret.StateRolledBack || st.ConvergedAt(2) || h.Pulse().State != interpret.StateRolledBack {
			t.Errorf("at the end: %s, state %s, pulse %+v", outcomes(st), st.State, h.Pulse())
		}
	})
}

// The agent dies in the middle of the way back: the next one finishes it (X77, G41).
func TestRestartWhileRollingBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, _, h, stop := r.running()
		offer(t, h, intent(1, twice(1, "1")))
		later(time.Minute)
		r.bad("/etc/z")
		back := false
		r.dev.Before(func(ctx context.Context, c memory.Call) error { // the power fails when a is written the second time
			if c.Op != memory.OpWriteFile || c.Resource != "file:/etc/b" {
				return nil
			}
			if !back {
				back = true
				return nil
			}
			r.disk = r.disk.Crash(store.LoseAll)
			<-ctx.Done()
			return ctx.Err()
		})
		offer(t, h, intent(2, twice(2, "2", file("new", "/etc/new", "2"), file("z", "/etc/z", "2", "b"))))
		later(time.Second)
		stop()
		r.dev.Before(nil)
		r.start()
		_, f, _, _ := r.running()
		later(time.Minute)
		r.content("/etc/a", "1")
		r.content("/etc/b", "1")
		r.gone("/etc/new")
		if st := f.last(); st.State != interpret.StateRolledBack || st.Manifests[0].RolledBack.Score != "z" {
			t.Errorf("%s %+v", outcomes(st), st.Manifests[0].RolledBack)
		}
	})
}

// Two manifests fail in one generation, and a third does not: each goes its own way.
func TestTwoManifestsRollBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		all := func(n uint64, c string) agent.Intent {
			return intent(n, version(n, manifest("l", file("a", "/etc/l", c))), version(n, manifest("m", file("a", "/etc/m", c), file("x", "/etc/mx"+c, c))), manifest("n", file("a", "/etc/n", c)))
		}
		offer(t, h, all(1, "1"))
		later(time.Minute)
		r.bad("/etc/l")
		r.bad("/etc/m")
		offer(t, h, all(2, "2"))
		later(time.Minute)
		r.content("/etc/l", "1")
		r.content("/etc/m", "1")
		r.content("/etc/n", "2")
		r.content("/etc/mx1", "1")
		r.gone("/etc/mx2")
		st := f.last()
		if st.Manifests[0].RolledBack == nil || st.Manifests[1].RolledBack == nil || st.Manifests[2].RolledBack != nil {
			t.Errorf("%s", outcomes(st))
		}
	})
}

// What the bad version only took over from another manifest, or from what was left over, it did not make: it is not
// removed as if it had. What it overwrote with consent comes back (X78).
func TestRollBackRemovesOnlyWhatItMade(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		pol := rollsBack
		pol.Preset = score.Guarded
		m := func(n uint64, scores ...score.Score) score.Manifest {
			x := under(pol, manifest("m", append(scores, file("b", "/etc/b", "1"))...))
			x.Metadata.Generation = n
			return x
		}
		r.dev.Put("/etc/theirs", "theirs")
		other := preset(score.Guarded, manifest("o", file("k", "/etc/k", "1"), file("moved", "/etc/moved", "1")))
		offer(t, h, intent(1, m(1, file("left", "/etc/left", "1")), other))
		later(time.Minute)
		other = preset(score.Guarded, manifest("o", file("k", "/etc/k", "1")))
		other.Metadata.Generation = 2
		offer(t, h, intent(2, m(2), other, preset(score.Guarded, manifest("p", file("moved", "/etc/moved", "1")))))
		later(time.Minute)
		if st := f.last(); !st.ConvergedAt(2) || len(st.Orphans) != 1 {
			t.Fatalf("%s %+v", outcomes(st), st.Orphans)
		}
		r.bad("/etc/z")
		in := intent(3, m(3, file("left", "/etc/left", "1"), file("moved", "/etc/moved", "1"), file("new", "/etc/new", "3"), file("theirs", "/etc/theirs", "ours"), file("z", "/etc/z", "3", "theirs")), other)
		offer(t, h, in)
		later(time.Minute)
		plan := f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
		f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: plan.ID})
		later(time.Minute)
		if st := f.last(); st.Manifests[0].RolledBack == nil {
			t.Fatalf("%s", outcomes(st))
		}
		r.content("/etc/left", "1")
		r.content("/etc/moved", "1")
		r.content("/etc/theirs", "theirs")
		r.gone("/etc/new")
	})
}

// While a version is rolled back, drift is corrected as its policy says; the next version may say that it holds, or come
// while the way back is under way.
func TestAfterARollBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		offer(t, h, intent(1, twice(1, "1")))
		later(time.Minute)
		r.bad("/etc/z")
		bad := twice(2, "2", file("z", "/etc/z", "2", "b"))
		offer(t, h, intent(2, bad))
		later(time.Minute)
		r.content("/etc/a", "1")
		r.dev.Put("/etc/a", "drift")
		later(time.Minute)
		r.content("/etc/a", "1")
		if s, _ := scoreOf(f.last(), "m", "a"); s.Cause != interpret.CauseDrift {
			t.Errorf("drift was corrected because of %s", s.Cause)
		}
		bad.Metadata.Generation, bad.Spec.Policy.OnFailure = 3, score.FailureHold
		offer(t, h, intent(3, bad)) // the same, but it stays
		later(time.Hour)
		r.content("/etc/a", "2")
		if st := f.last(); st.Manifests[0].RolledBack != nil || st.State != interpret.StatePartial {
			t.Errorf("held: %s %s", outcomes(st), st.State)
		}
		r.dev.Before(func(_ context.Context, c memory.Call) error { // the way back takes its time
			if c.Op == memory.OpWriteFile && c.Resource == "file:/etc/a" {
				time.Sleep(time.Minute)
			}
			return nil
		})
		offer(t, h, intent(4, twice(4, "4", file("z", "/etc/z", "4", "b"))))
		later(61 * time.Second)
		synctest.Wait()
		offer(t, h, intent(5, twice(5, "5")))
		later(10 * time.Minute)
		r.dev.Before(nil)
		r.content("/etc/a", "5")
		if st := f.last(); !st.ConvergedAt(5) {
			t.Errorf("the next one: %s", outcomes(st))
		}
	})
}

// Nobody confirms a rollback, not even under reviewed, if the manifest asks for it in words: it belongs to what was
// confirmed. What has to be restarted for it is. The word of a device or of a score counts against it (K9).
func TestReviewedRollsBackWhole(t *testing.T) {
	for _, ceiling := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			if ceiling {
				r.runner.Ceiling.Policy = &score.Policy{OnFailure: score.FailureHold}
			}
			_, f, h, _ := r.running()
			v := func(n uint64, conf string, more ...score.Score) score.Manifest {
				m := under(score.Policy{Preset: score.Reviewed, OnFailure: score.FailureRollBack},
					manifest("m", append(more, file("conf", "/etc/conf", conf), service("app", "app.service", "conf"))...))
				m.Metadata.Generation = n
				return m
			}
			confirm := func() {
				later(time.Second)
				plan := f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
				f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: plan.ID})
				later(time.Minute)
			}
			offer(t, h, intent(1, v(1, "1")))
			confirm()
			r.content("/etc/conf", "1")
			r.bad("/etc/z")
			offer(t, h, intent(2, v(2, "2", file("z", "/etc/z", "2", "app"))))
			rec := r.dev.Record()
			confirm()
			if ceiling {
				r.content("/etc/conf", "2")
				return
			}
			r.content("/etc/conf", "1")
			if n := count(rec, memory.OpRestart, "unit:app.service"); n != 2 {
				t.Errorf("restarted %d times: %s", n, outcomes(f.last()))
			}
			if st := f.last(); st.State != interpret.StateRolledBack {
				t.Errorf("%s %s", outcomes(st), st.State)
			}
		})
	}
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
