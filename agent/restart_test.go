package agent_test

import (
	"context"
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

// A change of a score restarts what asks for it, once, and also when the agent is
// killed between the change and the restart (G15).
func TestRestartOn(t *testing.T) {
	starts := func(r *rig) string {
		st, err := r.dev.Services().Service(t.Context(), "app.service")
		if err != nil {
			t.Fatal(err)
		}
		return st.Invocation
	}
	conf := func(content string) agent.Intent {
		return intent(1, manifest("m", file("conf", "/etc/app.conf", content), service("app", "app.service", "conf")))
	}
	t.Run("once per change", func(t *testing.T) {
		r := newRig(t)
		r.apply(conf("1"))
		first := starts(r)
		r.want(r.apply(conf("1")), "m/app=unchanged m/conf=unchanged")
		if starts(r) != first {
			t.Fatal("restarted without a change")
		}
		st := r.apply(conf("2"))
		r.want(st, "m/app=changed m/conf=changed")
		if s := st.Manifests[0].Scores[0]; s.Cause != interpret.CauseDependency {
			t.Errorf("cause is %s", s.Cause)
		}
		second := starts(r)
		if second == first {
			t.Fatal("not restarted after a change")
		}
		r.want(r.apply(conf("2")), "m/app=unchanged m/conf=unchanged")
		if starts(r) != second {
			t.Fatal("restarted twice for one change")
		}
	})
	t.Run("not in force before the restart", func(t *testing.T) { // G14
		r := newRig(t)
		r.apply(conf("1"))
		r.dev.FailOnce(memory.OpRestart, "unit:app.service", topology.Faultf(topology.CodeJobFailed, "no"))
		st := r.apply(conf("2"))
		r.want(st, "m/app=failed/job_failed m/conf=changed")
		if c := st.Manifests[0].Scores[1].Conditions; c.Effective == nil || *c.Effective || c.Written == nil || !*c.Written {
			t.Errorf("written and not read yet: %+v", c)
		}
		r.restart() // without its pause
		st = r.apply(conf("2"))
		r.want(st, "m/app=changed m/conf=unchanged")
		if c := st.Manifests[0].Scores[1].Conditions; !c.Good() {
			t.Errorf("read: %+v", c)
		}
	})
	t.Run("killed before the restart", func(t *testing.T) {
		r := newRig(t)
		r.apply(conf("1"))
		first := starts(r)
		r.dev.FailOnce(memory.OpRestart, "unit:app.service", topology.Faultf(topology.CodeCanceled, "killed"))
		r.want(r.apply(conf("2")), "m/app=failed/canceled m/conf=changed")
		r.restart()
		r.want(r.apply(conf("2")), "m/app=changed m/conf=unchanged")
		if starts(r) == first {
			t.Error("the restart was lost")
		}
	})
	t.Run("its own definition, killed before the restart", func(t *testing.T) {
		for _, crash := range []bool{true, false} {
			r := newRig(t)
			one := intent(1, manifest("m", service("app", "app.service")))
			r.apply(one)
			first := starts(r)
			s := service("app", "app.service")
			spec := s.Spec.(score.Service)
			spec.UnitFile += "# second\n"
			s.Spec = spec
			two := intent(2, manifest("m", s))
			if crash { // the process ends between the two
				r.dev.Before(func(_ context.Context, c memory.Call) error {
					if c.Op == memory.OpRestart {
						r.disk = r.disk.Crash(store.LoseNothing)
						return errKilled
					}
					return nil
				})
				_, _ = r.runner.Apply(t.Context(), two)
				r.dev.Heal()
				r.start()
			} else { // the restart fails, and the agent lives on
				r.dev.FailOnce(memory.OpRestart, "unit:app.service", topology.Faultf(topology.CodeTimeout, "no answer"))
				r.want(r.apply(two), "m/app=failed/timeout")
				r.restart()
			}
			r.want(r.apply(two), "m/app=changed")
			if starts(r) == first {
				t.Errorf("crash %v: it still runs by its old definition", crash)
			}
			r.want(r.apply(two), "m/app=unchanged")
		}
	})
	t.Run("a service that ran before", func(t *testing.T) {
		r := newRig(t)
		r.dev.Install("app.service", "[Service]\nExecStart=/usr/bin/app\n")
		r.dev.StartUnit("app.service")
		first := starts(r)
		in := intent(1, manifest("m", file("conf", "/etc/app.conf", "1"),
			score.Score{ID: "app", Spec: score.Service{Unit: "app.service", State: score.Running, RestartOn: []score.ID{"conf"}}}))
		r.want(r.apply(in), "m/app=changed m/conf=changed")
		if starts(r) == first {
			t.Error("it still runs with the configuration of before")
		}
		r.want(r.apply(in), "m/app=unchanged m/conf=unchanged")
	})
}

// A chain: a change of the first restarts the second, whose restart restarts the third, each once.
func TestRestartChain(t *testing.T) {
	r := newRig(t)
	in := func(content string) interpret.DeviceStatus {
		return r.apply(intent(1, manifest("m", file("a", "/etc/a", content), service("b", "b.service", "a"), service("c", "c.service", "b"))))
	}
	r.want(in("1"), "m/a=changed m/b=changed m/c=changed")
	r.want(in("1"), "m/a=unchanged m/b=unchanged m/c=unchanged")
	rec := r.dev.Record()
	r.want(in("2"), "m/a=changed m/b=changed m/c=changed")
	if b, c := count(rec, memory.OpRestart, "unit:b.service"), count(rec, memory.OpRestart, "unit:c.service"); b != 1 || c != 1 {
		t.Errorf("restarted b %d times, c %d times", b, c)
	}
	r.want(in("2"), "m/a=unchanged m/b=unchanged m/c=unchanged")
	// The middle one fails for a while: the last one waits, and is restarted when it is up again.
	r.dev.FailOnce(memory.OpRestart, "unit:b.service", topology.Faultf(topology.CodeJobFailed, "no"))
	rec.Reset()
	r.want(in("3"), "m/a=changed m/b=failed/job_failed m/c=waiting/dependency")
	r.restart()
	r.want(in("3"), "m/a=unchanged m/b=changed m/c=changed")
	if c := count(rec, memory.OpRestart, "unit:c.service"); c != 1 {
		t.Errorf("restarted c %d times", c)
	}
	r.want(in("3"), "m/a=unchanged m/b=unchanged m/c=unchanged")
}

// What crashes because of its configuration is started again as soon as the configuration
// is mended, although it waits for its next try and has hit its start limit (cases 54, 139).
func TestMendedConfigurationFreesACrashLoop(t *testing.T) {
	type wish = func(conf string) score.Manifest
	for name, m := range map[string]wish{
		"service": func(conf string) score.Manifest {
			app := service("app", "app.service", "conf")
			spec := app.Spec.(score.Service)
			spec.UnitFile = "[Service]\nExecStart=/usr/bin/app\nRestart=always\n\n[Install]\nWantedBy=multi-user.target\n"
			app.Spec = spec
			return manifest("m", file("conf", "/etc/app.conf", conf), app)
		},
		"container": func(conf string) score.Manifest {
			web := container("app", "app")
			spec := web.Spec.(score.Container)
			spec.RestartOn = []score.ID{"conf"}
			web.Spec = spec
			return manifest("m", file("conf", "/etc/app.conf", conf), web)
		},
	} {
		for _, sameGeneration := range []bool{false, true} {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				_, f, h, _ := r.running()
				good, bad := m("good"), m("bad")
				offer(t, h, intent(1, good))
				time.Sleep(time.Minute)
				program := func(p memory.Program) {
					r.dev.Program("/usr/bin/app", p)
					r.dev.LoadImage("localhost/app:1", memory.Image{Program: p})
				}
				program(memory.Program{Exits: true, Status: 1})
				offer(t, h, intent(2, bad))
				time.Sleep(20 * time.Minute)
				synctest.Wait()
				if st := f.last(); outcomes(st) != "m/app=failed/start_limit m/conf=unchanged " {
					t.Fatalf("%s: %s", name, outcomes(st))
				}
				program(memory.Program{})
				if !sameGeneration {
					good.Metadata.Generation = 3
				}
				offer(t, h, intent(3, good))
				time.Sleep(time.Second)
				synctest.Wait()
				if st := f.last(); !st.ConvergedAt(3) {
					t.Errorf("%s: %s", name, outcomes(st))
				}
			})
		}
	}
}

// A retry of a new wish is not drift, in the words of the status (H56).
func TestCauseOfARetry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"))))
		time.Sleep(time.Minute)
		r.dev.FailOnce(memory.OpWriteFile, "file:/etc/a", topology.Faultf(topology.CodeIO, "io"))
		m := manifest("m", file("a", "/etc/a", "2"))
		m.Metadata.Generation = 2
		offer(t, h, intent(2, m))
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := f.last().Manifests[0].Scores[0]; s.Outcome != interpret.Changed && s.Outcome != interpret.Unchanged || s.Cause != interpret.CauseIntent {
			t.Errorf("a new wish: %s, cause %s", s.Outcome, s.Cause)
		}
		r.dev.FailOnce(memory.OpWriteFile, "file:/etc/a", topology.Faultf(topology.CodeIO, "io"))
		r.dev.Put("/etc/a", "by hand")
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := f.last().Manifests[0].Scores[0]; s.Cause != interpret.CauseDrift {
			t.Errorf("by hand: %s, cause %s", s.Outcome, s.Cause)
		}
	})
}

// Two services that use one file are each restarted once when it changes, whatever else is changed with it (G15).
func TestFileOfTwoServices(t *testing.T) {
	r := newRig(t)
	m := func(g uint64, content string) agent.Intent {
		v := manifest("m", file("conf", "/etc/conf", content), file("more", "/etc/more", content), service("x", "x.service", "conf"), service("y", "y.service", "conf", "more"), service("z", "z.service"))
		v.Metadata.Generation = g
		return intent(g, v)
	}
	r.apply(m(1, "1"))
	rec := r.dev.Record()
	r.want(r.apply(m(2, "2")), "m/conf=changed m/more=changed m/x=changed m/y=changed m/z=unchanged")
	for unit, want := range map[topology.Resource]int{"unit:x.service": 1, "unit:y.service": 1, "unit:z.service": 0} {
		if n := count(rec, memory.OpRestart, unit) + count(rec, memory.OpStart, unit); n != want {
			t.Errorf("%s was restarted %d times", unit, n)
		}
	}
	rec.Reset()
	if r.apply(m(2, "2")); len(rec.Mutations()) > 0 {
		t.Errorf("once more: %v", rec.Mutations())
	}
}
