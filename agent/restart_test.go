package agent_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

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
