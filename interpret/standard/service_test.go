package standard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/service"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

const (
	unitText = "[Service]\nExecStart=/usr/bin/kiosk\n\n[Install]\nWantedBy=multi-user.target\n"
	unitPath = "/etc/systemd/system/kiosk.service"
)

func kiosk() score.Service {
	return score.Service{Unit: "kiosk.service", UnitFile: unitText, Enabled: new(true), State: score.Running}
}

func TestServiceOrder(t *testing.T) { // H22: define, then enable, then start or restart, each once
	tests := []struct {
		name    string
		prepare func(rig)
		spec    score.Service
		restart bool
		fields  []string
		ops     []memory.Op
	}{
		{"from nothing", func(rig) {}, kiosk(), false,
			[]string{"unitFile create", "enabled mutate", "state mutate"}, []memory.Op{memory.OpDefine, memory.OpSetEnabled, memory.OpStart}},
		{"new unit file, running", func(r rig) { r.play(kiosk()) }, func() score.Service { s := kiosk(); s.UnitFile += "# new\n"; return s }(), false,
			[]string{"unitFile disrupt"}, []memory.Op{memory.OpDefine, memory.OpRestart}},
		{"new unit file and a trigger restart once", func(r rig) { r.play(kiosk()) }, func() score.Service { s := kiosk(); s.UnitFile += "# new\n"; return s }(), true,
			[]string{"unitFile disrupt", "restartOn disrupt"}, []memory.Op{memory.OpDefine, memory.OpRestart}},
		{"trigger, not running: started once", func(r rig) { r.play(kiosk()); r.StopUnit("kiosk.service") }, kiosk(), true,
			[]string{"state mutate", "restartOn disrupt"}, []memory.Op{memory.OpStart}},
		{"trigger alone", func(r rig) { r.play(kiosk()) }, kiosk(), true, []string{"restartOn disrupt"}, []memory.Op{memory.OpRestart}},
		{"new unit file, state not managed, running", func(r rig) { r.play(kiosk()) }, score.Service{Unit: "kiosk.service", UnitFile: unitText + "# new\n"}, false,
			[]string{"unitFile disrupt"}, []memory.Op{memory.OpDefine, memory.OpRestart}},
		{"new unit file, state not managed, stopped", func(r rig) { r.play(kiosk()); r.StopUnit("kiosk.service") }, score.Service{Unit: "kiosk.service", UnitFile: unitText + "# new\n"}, false,
			[]string{"unitFile mutate"}, []memory.Op{memory.OpDefine}},
		{"stopped before its definition changes", func(r rig) { r.play(kiosk()) },
			score.Service{Unit: "kiosk.service", UnitFile: unitText + "# new\n", Enabled: new(false), State: score.Stopped}, false,
			[]string{"unitFile mutate", "enabled mutate", "state disrupt"}, []memory.Op{memory.OpStop, memory.OpDefine, memory.OpSetEnabled}},
		{"mode of the unit file", func(r rig) { r.play(kiosk()); r.Chmod(unitPath, 0o777) }, kiosk(), false,
			[]string{"unitFileMode mutate"}, []memory.Op{memory.OpDefine}},
		{"only what differs", func(r rig) { r.play(kiosk()); r.Disable("kiosk.service") }, kiosk(), false,
			[]string{"enabled mutate"}, []memory.Op{memory.OpSetEnabled}},
		{"emptied by a power cut (35)", func(r rig) { r.play(kiosk()); r.Put(unitPath, ""); r.StopUnit("kiosk.service") }, kiosk(), false,
			[]string{"unitFile mutate", "enabled mutate", "state mutate"}, []memory.Op{memory.OpDefine, memory.OpSetEnabled, memory.OpStart}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			tt.prepare(r)
			rec := r.Record()
			var st interpret.ScoreStatus
			if tt.restart {
				st = r.restart(tt.spec)
			} else {
				st = r.play(tt.spec)
			}
			r.want(st, interpret.Changed, "")
			if got := fields(st); !slices.Equal(got, tt.fields) {
				t.Errorf("changes are %v, want %v", got, tt.fields)
			}
			if got := ops(rec); !slices.Equal(got, tt.ops) {
				t.Errorf("calls are %v, want %v", got, tt.ops)
			}
			r.settled(tt.spec)
		})
	}
}

func TestServiceObstacles(t *testing.T) {
	running := score.Service{Unit: "kiosk.service", State: score.Running}
	tests := []struct {
		name    string
		prepare func(rig)
		spec    score.Service
		outcome interpret.Outcome
		code    topology.Code
		message string
	}{
		{"masked, to run (57)", func(r rig) { r.Install("kiosk.service", unitText); r.Mask("kiosk.service") }, running,
			interpret.Conflict, topology.CodeMasked, "systemctl unmask kiosk.service"},
		{"masked, to be enabled (57)", func(r rig) { r.Install("kiosk.service", unitText); r.Mask("kiosk.service") },
			score.Service{Unit: "kiosk.service", Enabled: new(true)}, interpret.Conflict, topology.CodeMasked, "masked"},
		{"masked, with a unit file (57, 67)", func(r rig) { r.Mask("kiosk.service") }, kiosk(), interpret.Conflict, topology.CodeMasked, "masked"},
		{"masked is stopped and disabled", func(r rig) { r.Mask("kiosk.service") },
			score.Service{Unit: "kiosk.service", Enabled: new(false), State: score.Stopped}, interpret.Unchanged, "", ""},
		{"no such unit", func(rig) {}, running, interpret.Failed, topology.CodeInvalid, "the device has no unit kiosk.service: give its unitFile"},
		{"no such unit, to be stopped", func(rig) {}, score.Service{Unit: "kiosk.service", State: score.Stopped}, interpret.Failed, topology.CodeInvalid, "no unit"},
		{"link in the place of the unit file", func(r rig) { r.Symlink("/opt/kiosk.service", unitPath) }, kiosk(),
			interpret.Failed, topology.CodeSymlink, "is a symbolic link to /opt/kiosk.service"},
		{"pipe in the place of the unit file", func(r rig) { r.Special(unitPath) }, kiosk(), interpret.Failed, topology.CodeNotRegular, "is a special"},
		{"oneshot (53)", func(r rig) { r.Install("kiosk.service", "[Service]\nType=oneshot\nExecStart=/bin/true\n") }, running,
			interpret.Failed, topology.CodeInvalid, "does not stay running: leave state out and say run: once"},
		{"oneshot that remains", func(r rig) {
			r.Install("kiosk.service", "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n")
		}, running, interpret.Changed, "", ""},
		{"oneshot that gets another unit file", func(r rig) { r.Put(unitPath, "[Service]\nType=oneshot\nExecStart=/bin/true\n") }, kiosk(), interpret.Changed, "", ""},
		{"no [Install]", func(r rig) { r.Install("kiosk.service", "[Service]\nExecStart=/usr/bin/kiosk\n") },
			score.Service{Unit: "kiosk.service", Enabled: new(true)}, interpret.Failed, topology.CodeInvalid, "no [Install] section"},
		{"definition not accepted", func(rig) {}, score.Service{Unit: "kiosk.service", UnitFile: "[Service]\nRestart=always\n", State: score.Running},
			interpret.Failed, topology.CodeDefinition, "not accepted"},
		{"ends at once (50)", func(r rig) { r.Program("/usr/bin/kiosk", memory.Program{Exits: true, Status: 7}) }, kiosk(),
			interpret.Failed, topology.CodeExited, "status 7"},
		{"dead capability", func(r rig) { r.Unavailable(memory.Services, "the bus is gone") }, kiosk(),
			interpret.Unsupported, topology.CodeUnavailable, "the bus is gone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			tt.prepare(r)
			for range 2 { // the second run says the same
				st := r.play(tt.spec)
				if tt.outcome == interpret.Changed {
					r.want(st, tt.outcome, tt.code)
					r.settled(tt.spec)
					return
				}
				r.want(st, tt.outcome, tt.code)
				if !strings.Contains(st.Message, tt.message) {
					t.Errorf("message is %q, want …%s…", st.Message, tt.message)
				}
			}
		})
	}
}

// TestServiceLoop shows that a unit that starts again and again is never found running (50, 54).
func TestServiceLoop(t *testing.T) {
	r := newRig(t)
	r.Program("/usr/bin/kiosk", memory.Program{Exits: true, Status: 1})
	s := kiosk()
	s.UnitFile = "[Service]\nRestart=always\nRestartSec=5\nExecStart=/usr/bin/kiosk\n[Install]\nWantedBy=multi-user.target\n"
	for range 2 {
		st := r.play(s)
		r.want(st, interpret.Failed, topology.CodeExited)
		o := read[service.Observed](t, st)
		if o.Sub != "auto-restart" || o.Restarts == 0 || o.ExitCode != 1 || st.Conditions.Good() {
			t.Errorf("got %+v, %+v", o, st.Conditions)
		}
	}

	s.UnitFile = strings.Replace(s.UnitFile, "RestartSec=5\n", "", 1) // meets the start limit
	r.want(r.play(s), interpret.Failed, topology.CodeExited)
	r.want(r.retry(s), interpret.Failed, topology.CodeStartLimit)
	o := read[service.Observed](t, r.retry(s))
	if o.Active != "failed" || o.Result != "start-limit-hit" || o.Restarts == 0 { // H59
		t.Errorf("got %+v", o)
	}

	r.Program("/usr/bin/better", memory.Program{})
	s.UnitFile = strings.Replace(s.UnitFile, "/usr/bin/kiosk", "/usr/bin/better", 1)
	r.want(r.play(s), interpret.Changed, "") // reset once, because the wish is new
	r.settled(s)
}

func TestServiceEnabledUntilReboot(t *testing.T) { // cases 59
	for _, want := range []bool{true, false} {
		r := newRig(t)
		r.Install("kiosk.service", unitText)
		r.Enable("kiosk.service", true)
		s := score.Service{Unit: "kiosk.service", Enabled: new(want)}
		r.want(r.play(s), interpret.Changed, "")
		r.settled(s)
		r.Reboot()
		r.settled(s)
	}
}

func TestServiceActivatingIsStopped(t *testing.T) { // cases 51
	r := newRig(t)
	r.Install("kiosk.service", "[Service]\nExecStartPre=/bin/sleep 999\nExecStart=/usr/bin/kiosk\n")
	r.StartUnit("kiosk.service")
	s := score.Service{Unit: "kiosk.service", State: score.Stopped}
	st := r.play(s)
	r.want(st, interpret.Changed, "")
	if got := fields(st); !slices.Equal(got, []string{"state disrupt"}) {
		t.Errorf("changes are %v", got)
	}
	r.settled(s)
}

// TestServiceLoadedFromElsewhere: what runs is not what was written, and the status says so.
func TestServiceLoadedFromElsewhere(t *testing.T) {
	r := newRig(t)
	s := score.Service{Unit: "kiosk.service", UnitFile: unitText}
	r.play(s)
	r.settled(s)
	st, err := r.Services().Service(t.Context(), s.Unit)
	if err != nil {
		t.Fatal(err)
	}
	st.Source = "/run/systemd/system.control/kiosk.service"
	table := interpret.Bind(fixed{st}, service.Kind[fixed])
	got := table.Observe(t.Context(), interpret.Wish{Score: score.Score{ID: "x", Spec: s}})
	if c := got.Conditions; c.Written == nil || !*c.Written || c.Loaded == nil || *c.Loaded || got.Converged() {
		t.Errorf("got %s with written %v, loaded %v", got.Outcome, *c.Written, *c.Loaded)
	}
}

func TestServiceRemoved(t *testing.T) {
	r := newRig(t)
	s := kiosk()
	r.play(s)
	for range 2 {
		st, err := r.table.Remove(t.Context(), score.Score{ID: "x", Spec: s}, interpret.CauseAbsent, &open{})
		if err != nil {
			t.Fatal(err)
		}
		r.want(st, interpret.Changed, "")
	}
	if got := r.List("/etc/systemd/system"); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
	// A unit of the system stays as it is.
	r.Install("ssh.service", unitText)
	s = score.Service{Unit: "ssh.service", Enabled: new(true), State: score.Running}
	r.play(s)
	rec := r.Record()
	if _, err := r.table.Remove(t.Context(), score.Score{ID: "x", Spec: s}, interpret.CauseAbsent, &open{}); err != nil || len(rec.Mutations()) > 0 {
		t.Errorf("got %v, %v", err, rec.Mutations())
	}
	r.settled(s)
}

// TestServiceOwner: the gate is told whose the unit file is.
func TestServiceOwner(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(rig)
		found   bool
		mark    topology.Mark
	}{
		{"nothing there", func(rig) {}, false, ""},
		{"unit of the system is shadowed, not touched", func(r rig) { r.Install("kiosk.service", unitText) }, false, ""},
		{"unit file of somebody else", func(r rig) { r.Put(unitPath, "[Service]\nExecStart=/opt/other\n") }, true, ""},
		{"unit file of another manifest", func(r rig) { r.Put(unitPath, "x"); r.SetMark(unitPath, "other/kiosk") }, true, "other/kiosk"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			tt.prepare(r)
			g := &open{}
			r.want(r.with(kiosk(), g, nil), interpret.Changed, "")
			if a := g.actions[0]; a.Found != tt.found || a.FoundMark != tt.mark {
				t.Errorf("found %v %q, want %v %q", a.Found, a.FoundMark, tt.found, tt.mark)
			}
			if f, err := r.Files().File(t.Context(), unitPath); err != nil || f.Mark != mark {
				t.Errorf("the unit file has the mark %q, %v", f.Mark, err)
			}
		})
	}
}
