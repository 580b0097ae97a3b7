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
		if s, _ := scoreOf(f.last(), "m", "app"); !strings.Contains(s.Message, "generation 3 is undone") || !strings.Contains(s.Message, "the content of 3 failed, and is not tried again unchanged: ") {
			t.Errorf("message %q", s.Message)
		}
		offer(t, h, intent(4, version(4, manifest("m", file("conf", "/etc/conf", "4"), app)), manifest("other", file("x", "/etc/x", "2"))))
		later(time.Minute)
		if st := f.last(); !st.ConvergedAt(4) || st.Manifests[0].RolledBack != nil {
			t.Errorf("the next one: %s", outcomes(st))
		}
		r.content("/etc/conf", "4")
	})
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

// Of a manifest that is gone, and of which nothing is left, the books keep nothing.
func TestGoodVersionsGo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, _, h, _ := r.running()
		offer(t, h, intent(1, version(1, manifest("m", file("a", "/etc/a", "1"))), manifest("n", file("b", "/etc/b", "1"))))
		later(time.Minute)
		if got := r.store.Goods(); len(got) != 1 {
			t.Fatalf("good versions of %v", got)
		}
		offer(t, h, intent(2, manifest("n", file("b", "/etc/b", "1"))))
		later(time.Hour)
		notes := r.store.Notes("policy/")
		if got := r.store.Goods(); len(got) > 0 || len(notes) != 1 || len(r.store.Notes("trial/"))+len(r.store.Notes("condemned/")) > 0 {
			t.Errorf("good versions of %v, notes %v", got, notes)
		}
	})
}
