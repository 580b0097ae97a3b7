package standard_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/service"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// reload makes a spec true after a score that makes it read again has changed.
func (r rig) reload(s score.Spec) interpret.ScoreStatus {
	r.Helper()
	return r.with(s, &open{}, &interpret.Change{Field: interpret.FieldReload, Have: "a", Want: "b", Effect: interpret.Mutate})
}

const envText = "[Service]\nEnvironment=A=b\n"

func TestUnitParts(t *testing.T) { // cases 54, 55, 61, 67: each thing once, in order
	with := func(change func(*score.Service)) score.Service {
		s := kiosk()
		change(&s)
		return s
	}
	dropIns := with(func(s *score.Service) { s.DropIns = map[string]string{"10-env": envText} })
	limits := with(func(s *score.Service) { s.Limits = &score.Limits{Memory: 256 << 20, CPU: 50} })
	reloads := with(func(s *score.Service) {
		s.UnitFile = strings.Replace(unitText, "ExecStart", "ExecReload=/bin/x\nExecStart", 1)
	})
	tests := []struct {
		name    string
		prepare func(rig)
		spec    score.Service
		play    func(rig, score.Spec) interpret.ScoreStatus
		fields  []string
		ops     []memory.Op
	}{
		{"drop-in for a unit of the system, running", func(r rig) { r.Install("ssh.service", unitText); r.StartUnit("ssh.service") },
			score.Service{Unit: "ssh.service", DropIns: map[string]string{"10-env": envText}}, rig.play,
			[]string{"dropIns/10-env disrupt"}, []memory.Op{memory.OpDefine, memory.OpRestart}},
		{"drop-in for a unit of the system, stopped", func(r rig) { r.Install("ssh.service", unitText) },
			score.Service{Unit: "ssh.service", DropIns: map[string]string{"10-env": envText}}, rig.play,
			[]string{"dropIns/10-env mutate"}, []memory.Op{memory.OpDefine}},
		{"unit file and drop-in restart once", func(r rig) { r.play(kiosk()) },
			with(func(s *score.Service) { s.UnitFile += "# new\n"; s.DropIns = map[string]string{"10-env": envText} }), rig.play,
			[]string{"unitFile disrupt", "dropIns/10-env disrupt"}, []memory.Op{memory.OpDefine, memory.OpDefine, memory.OpRestart}},
		{"drop-in that is taken out", func(r rig) { r.play(dropIns) }, kiosk(), rig.play,
			[]string{"dropIns/10-env disrupt"}, []memory.Op{memory.OpRemoveDropIn, memory.OpRestart}},
		{"drop-in that was edited", func(r rig) { r.play(dropIns); r.Put(unitPath+".d/10-env.conf", "[Service]\n") }, dropIns, rig.play,
			[]string{"dropIns/10-env disrupt"}, []memory.Op{memory.OpDefine, memory.OpRestart}},
		{"mode of a drop-in", func(r rig) { r.play(dropIns); r.Chmod(unitPath+".d/10-env.conf", 0o666) }, dropIns, rig.play,
			[]string{"dropInMode/10-env mutate"}, []memory.Op{memory.OpDefine}},
		{"limits hold without a restart", func(r rig) { r.play(kiosk()) }, limits, rig.play, []string{"limits mutate"}, []memory.Op{memory.OpDefine}},
		{"limits that are taken out", func(r rig) { r.play(limits) }, kiosk(), rig.play, []string{"limits mutate"}, []memory.Op{memory.OpRemoveDropIn}},
		{"mask", func(r rig) { r.Install("apt.timer", "[Timer]\nOnBootSec=1\n") }, score.Service{Unit: "apt.timer", Masked: new(true)}, rig.play,
			[]string{"masked mutate"}, []memory.Op{memory.OpDefine}},
		{"mask of a unit that is not there", func(rig) {}, score.Service{Unit: "apt.timer", Masked: new(true), State: score.Stopped}, rig.play,
			[]string{"masked mutate"}, []memory.Op{memory.OpDefine}},
		{"mask of ours that is no longer said", func(r rig) {
			r.Install("apt.timer", "[Timer]\nOnBootSec=1\n")
			r.play(score.Service{Unit: "apt.timer", Masked: new(true)})
		}, score.Service{Unit: "apt.timer", State: score.Running}, rig.play, []string{"masked mutate", "state mutate"}, []memory.Op{memory.OpUnmask, memory.OpStart}},
		{"mask of ours gives way to a unit file", func(r rig) { r.play(score.Service{Unit: "kiosk.service", Masked: new(true)}) }, kiosk(), rig.play,
			[]string{"unitFile mutate", "enabled mutate", "state mutate"}, []memory.Op{memory.OpDefine, memory.OpSetEnabled, memory.OpStart}},
		{"unit file of ours gives way to a mask", func(r rig) { r.play(kiosk()) }, score.Service{Unit: "kiosk.service", Masked: new(true), State: score.Stopped}, rig.play,
			[]string{"masked mutate", "state disrupt"}, []memory.Op{memory.OpStop, memory.OpDefine}},
		{"mask of an administrator that is to go", func(r rig) { r.Install("ssh.service", unitText); r.Mask("ssh.service") },
			score.Service{Unit: "ssh.service", Masked: new(false), State: score.Running}, rig.play,
			[]string{"masked mutate", "state mutate"}, []memory.Op{memory.OpUnmask, memory.OpStart}},
		{"mask of an administrator in the place of a unit file, to go", func(r rig) { r.Mask("kiosk.service") },
			with(func(s *score.Service) { s.Masked = new(false) }), rig.play,
			[]string{"masked mutate", "unitFile create", "enabled mutate", "state mutate"}, []memory.Op{memory.OpUnmask, memory.OpDefine, memory.OpSetEnabled, memory.OpStart}},
		{"reload", func(r rig) { r.play(reloads) }, reloads, rig.reload, []string{"reloadOn mutate"}, []memory.Op{memory.OpReload}},
		{"reload and a new unit file restart once", func(r rig) { r.play(kiosk()) }, reloads, rig.reload,
			[]string{"unitFile disrupt", "reloadOn mutate"}, []memory.Op{memory.OpDefine, memory.OpRestart}},
		{"reload of what does not run starts it", func(r rig) { r.play(reloads); r.StopUnit("kiosk.service") }, reloads, rig.reload,
			[]string{"state mutate", "reloadOn mutate"}, []memory.Op{memory.OpStart}},
		{"timer", func(rig) {}, score.Service{Unit: "b.timer", UnitFile: "[Timer]\nOnBootSec=1\n[Install]\nWantedBy=timers.target\n", Enabled: new(true), State: score.Running}, rig.play,
			[]string{"unitFile create", "enabled mutate", "state mutate"}, []memory.Op{memory.OpDefine, memory.OpSetEnabled, memory.OpStart}},
		{"unit of a user", func(r rig) { r.SetLingering("pi", true) }, with(func(s *score.Service) { s.User = "pi" }), rig.play,
			[]string{"unitFile create", "enabled mutate", "state mutate"}, []memory.Op{memory.OpDefine, memory.OpSetEnabled, memory.OpStart}},
		{"unit of a user who has to linger first", func(rig) {}, with(func(s *score.Service) { s.User, s.Linger = "pi", new(true) }), rig.play,
			[]string{"linger mutate", "unitFile create", "enabled mutate", "state mutate"}, []memory.Op{memory.OpSetLinger, memory.OpDefine, memory.OpSetEnabled, memory.OpStart}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			tt.prepare(r)
			rec := r.Record()
			st := tt.play(r, tt.spec)
			r.want(st, interpret.Changed, "")
			if got := fields(st); !slices.Equal(got, tt.fields) {
				t.Errorf("changes are %v, want %v", got, tt.fields)
			}
			if got := ops(rec); !slices.Equal(got, tt.ops) {
				t.Errorf("calls are %v, want %v", got, tt.ops)
			}
			r.settled(tt.spec)
			if _, err := r.table.Remove(t.Context(), score.Score{ID: "x", Spec: tt.spec}, interpret.CauseAbsent, &open{}); err != nil {
				t.Fatal(err)
			}
			for _, p := range slices.Concat(r.List("/etc/systemd/system"), r.List("/etc/systemd/user")) {
				if f, err := r.Files().File(t.Context(), p); err != nil || f.Mark == mark {
					t.Errorf("left behind: %s, %v", p, err)
				}
			}
		})
	}
}

func TestUnitObstacles(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(rig)
		spec    score.Service
		outcome interpret.Outcome
		code    topology.Code
		message string
	}{
		{"no memory controller (92)", func(r rig) { r.SetController("memory", false); r.Install("kiosk.service", unitText) },
			score.Service{Unit: "kiosk.service", Limits: &score.Limits{Memory: 1 << 20}}, interpret.Unsupported, topology.CodeNotSupported, "add cgroup_enable=memory to /boot/firmware/cmdline.txt"},
		{"no controller for tasks", func(r rig) { r.SetController("pids", false); r.Install("kiosk.service", unitText) },
			score.Service{Unit: "kiosk.service", Limits: &score.Limits{Tasks: 1}}, interpret.Unsupported, topology.CodeNotSupported, "does not bound tasks here"},
		{"unit file of somebody else in the place of the mask (67)", func(r rig) { r.Put(unitPath, unitText) },
			score.Service{Unit: "kiosk.service", Masked: new(true)}, interpret.Conflict, topology.CodeForeign, "is in the place of the mask"},
		{"link in the place of the mask", func(r rig) { r.Symlink("/opt/x.service", unitPath); r.Install("kiosk.service", unitText) },
			score.Service{Unit: "kiosk.service", Masked: new(true)}, interpret.Failed, topology.CodeSymlink, "is a symbolic link to /opt/x.service"},
		{"run of a unit that is no oneshot (53)", func(r rig) { r.Install("kiosk.service", unitText) },
			score.Service{Unit: "kiosk.service", Run: score.RunOnce}, interpret.Failed, topology.CodeInvalid, "cannot be run to its end"},
		{"reload of a unit of the system that cannot", func(r rig) { r.Install("kiosk.service", unitText); r.StartUnit("kiosk.service") },
			score.Service{Unit: "kiosk.service", State: score.Running, ReloadOn: []score.ID{"conf"}}, interpret.Failed, topology.CodeInvalid, "use restartOn"},
		{"user who does not linger", func(rig) {}, score.Service{Unit: "kiosk.service", User: "pi", State: score.Running}, interpret.Unsupported, topology.CodeUnavailable, "loginctl enable-linger pi"},
		{"no such user", func(rig) {}, score.Service{Unit: "kiosk.service", User: "bob", State: score.Running}, interpret.Failed, topology.CodeNoAccount, `no user "bob"`},
		{"no such unit of a user", func(r rig) { r.SetLingering("pi", true); r.Install("kiosk.service", unitText) },
			score.Service{Unit: "kiosk.service", User: "pi", State: score.Running}, interpret.Failed, topology.CodeInvalid, "no unit pi/kiosk.service"},
		{"generated, to be disabled (59)", func(r rig) {
			r.LoadImage("example.org/web:1", memory.Image{})
			if err := r.Containers().Run(r.Context(), topology.ContainerConfig{Name: "web", Image: "example.org/web:1", Mark: "m/web"}); err != nil {
				r.Fatal(err)
			}
		}, score.Service{Unit: "web.service", Enabled: new(false)}, interpret.Failed, topology.CodeInvalid, "a generator enables it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			tt.prepare(r)
			for range 2 {
				rec := r.Record()
				st := r.play(tt.spec)
				if strings.Contains(tt.name, "reload") {
					st = r.reload(tt.spec)
				}
				r.want(st, tt.outcome, tt.code)
				if !strings.Contains(st.Message, tt.message) {
					t.Errorf("message is %q, want …%s…", st.Message, tt.message)
				}
				if m := rec.Mutations(); len(m) > 0 {
					t.Errorf("calls are %v", m)
				}
			}
		})
	}
}

func TestRunOnce(t *testing.T) { // cases 53
	r := newRig(t)
	job := score.Service{Unit: "job.service", Run: score.RunOnce, UnitFile: "[Service]\nType=oneshot\nExecStart=/usr/bin/job\n"}
	rec := r.Record()
	r.want(r.play(job), interpret.Changed, "")
	if got := ops(rec); !slices.Equal(got, []memory.Op{memory.OpDefine, memory.OpRunOnce}) {
		t.Errorf("calls are %v", got)
	}
	for range 10 { // never one start per run
		r.settled(job)
	}
	r.Reboot()
	r.settled(job)
	o := read[service.Observed](t, r.settled(job))
	if o.Ran == nil || o.Ran.Result != "success" || o.Ran.ExitCode != 0 || o.Active != "inactive" {
		t.Errorf("got %+v", o)
	}
	rec = r.Record()
	r.want(r.restart(job), interpret.Changed, "") // a trigger runs it again
	if got := ops(rec); !slices.Equal(got, []memory.Op{memory.OpRunOnce}) {
		t.Errorf("calls are %v", got)
	}

	r.Program("/usr/bin/job", memory.Program{Exits: true, Status: 4, Output: "no such table\n"})
	job.DropIns = map[string]string{"10-env": envText} // what it runs is new
	st := r.play(job)
	r.want(st, interpret.Failed, topology.CodeExited)
	if o := read[service.Observed](t, st); o.Ran.ExitCode != 4 || o.Ran.Output != "no such table" || st.Conditions.Good() {
		t.Errorf("got %+v", o.Ran)
	}
	for range 3 { // it failed, and is left alone
		rec := r.Record()
		st := r.retry(job)
		r.want(st, interpret.Failed, topology.CodeExited)
		if !strings.Contains(st.Message, "exit code 4") || len(rec.Mutations()) > 0 {
			t.Errorf("got %q, %v", st.Message, rec.Mutations())
		}
	}
	quiet := job
	quiet.Log = score.NoLog
	if o := read[service.Observed](t, r.retry(quiet)); o.Ran.Output != "" {
		t.Errorf("the output is %q", o.Ran.Output)
	}
	r.Program("/usr/bin/job", memory.Program{Exits: true})
	r.want(r.play(job), interpret.Changed, "") // a new wish
	r.settled(job)
}

// TestLastWords: a unit that failed says why, once for each run, unless the score says that it must not (H43).
func TestLastWords(t *testing.T) {
	r := newRig(t)
	r.Program("/usr/bin/kiosk", memory.Program{Exits: true, Status: 7, Output: "\x1b[31mno display\x1b[0m\n"})
	for range 2 {
		if o := read[service.Observed](t, r.play(kiosk())); o.Log != "no display" {
			t.Errorf("got %q", o.Log)
		}
	}
	quiet := kiosk()
	quiet.Log = score.NoLog
	rec := r.Record()
	if o := read[service.Observed](t, r.play(quiet)); o.Log != "" {
		t.Errorf("got %q", o.Log)
	}
	for _, c := range rec.Calls() {
		if c.Op == memory.OpLog {
			t.Error("the journal was read")
		}
	}
	r.FailOnce(memory.OpLog, "", topology.Faultf(topology.CodeTimeout, "the journal is slow"))
	r.want(r.play(kiosk()), interpret.Failed, topology.CodeExited) // and no other failure
	r.Program("/usr/bin/kiosk", memory.Program{})
	rec = r.Record()
	r.play(kiosk())
	r.settled(kiosk())
	if slices.ContainsFunc(rec.Calls(), func(c memory.Call) bool { return c.Op == memory.OpLog && c.Mutates }) {
		t.Error("to read is no change")
	}
}

// TestSupervision: a drop-in of somebody else that overrides what the score says is told by name, and left alone; one that
// adds to it is listed (G50).
func TestSupervision(t *testing.T) {
	r := newRig(t)
	s := kiosk()
	s.Limits = &score.Limits{Memory: 256 << 20}
	r.play(s)
	r.settled(s)
	adds := r.DropIn("kiosk.service", "15-nice", "[Service]\nNice=5\n")
	o := read[service.Observed](t, r.settled(s))
	if len(o.Supervision) != 1 || o.Supervision[0].File != adds || len(o.Supervision[0].Overrides) > 0 {
		t.Errorf("got %+v", o.Supervision)
	}
	over := r.DropIn("kiosk.service", "90-admin", "[Service]\nExecStart=\nExecStart=/opt/other\nMemoryMax=1\n")
	for range 3 {
		rec := r.Record()
		st := r.play(s)
		r.want(st, interpret.Drifted, topology.Code(interpret.CodeSupervision))
		if want := over + " overrides Service.ExecStart, Service.MemoryMax"; !strings.Contains(st.Message, want) || st.Changes[0].Effect != interpret.Nothing {
			t.Errorf("got %q, %+v", st.Message, st.Changes)
		}
		if m := rec.Mutations(); len(m) > 0 {
			t.Errorf("calls are %v", m)
		}
		if st.Conditions.Effective == nil || *st.Conditions.Effective {
			t.Error("a limit that is overridden is said to be in force")
		}
	}
	r.StopUnit("kiosk.service") // what else differs is made right, once
	st := r.play(s)
	r.want(st, interpret.Changed, "")
	r.Delete(over)
	r.settled(s)

	// One that another score wrote is nobody else's.
	p := r.DropIn("kiosk.service", "95-ours", "[Service]\nExecStart=\nExecStart=/opt/other\n")
	r.SetMark(p, "test/other")
	r.settled(s)

	// A unit that the score brings nothing to has nothing that could be overridden.
	r.Install("ssh.service", unitText)
	r.DropIn("ssh.service", "90-admin", "[Service]\nExecStart=\nExecStart=/opt/other\n")
	r.play(score.Service{Unit: "ssh.service", State: score.Running})
	r.settled(score.Service{Unit: "ssh.service", State: score.Running})
}

// TestWhatWasSeenIsReplaced: a file that changes between the plan and the write is left as it is (G37).
func TestWhatWasSeenIsReplaced(t *testing.T) {
	for _, p := range []string{unitPath, unitPath + ".d/10-env.conf"} {
		r := newRig(t)
		s := kiosk()
		s.DropIns = map[string]string{"10-env": envText}
		r.play(s)
		s.UnitFile += "# new\n"
		s.DropIns = map[string]string{"10-env": envText + "# new\n"}
		g := &late{open: &open{}, act: func() { r.Put(p, "[Service]\n# by hand\n") }}
		r.want(r.with(s, g, nil), interpret.Failed, topology.CodeChanged)
		if text, _ := r.Read(p); text != "[Service]\n# by hand\n" {
			t.Errorf("%s is %q", p, text)
		}
		r.want(r.play(s), interpret.Changed, "")
	}
}

// late is a gate behind which somebody else acts.
type late struct {
	*open
	act func()
}

func (l *late) Admit(ctx context.Context, a interpret.Action) (interpret.Verdict, error) {
	l.act()
	return l.open.Admit(ctx, a)
}

// TestTriggeredUnit: what a timer starts is well while it does not run, and not when it has failed.
func TestTriggeredUnit(t *testing.T) {
	r := newRig(t)
	job := score.Service{Unit: "b.service", UnitFile: "[Service]\nType=oneshot\nExecStart=/usr/bin/job\n"}
	r.play(score.Service{Unit: "b.timer", UnitFile: "[Timer]\nOnBootSec=1\n", State: score.Running})
	r.play(job)
	o := read[service.Observed](t, r.settled(job))
	if !slices.Equal(o.TriggeredBy, []string{"b.timer"}) {
		t.Errorf("got %q", o.TriggeredBy)
	}
	r.Program("/usr/bin/job", memory.Program{Exits: true, Status: 2, Output: "disk is gone"})
	r.StartUnit("b.service")
	st := r.play(job)
	r.want(st, interpret.Unchanged, "")
	if o := read[service.Observed](t, st); st.Converged() || o.ExitCode != 2 || o.Log != "disk is gone" {
		t.Errorf("it failed, and %+v, %q", st.Conditions, o.Log)
	}
}
