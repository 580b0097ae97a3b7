package score_test

import (
	"slices"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

// TestServiceProblems: cases 53, 61, 66, 67, and what else contradicts itself.
func TestServiceProblems(t *testing.T) {
	const text = "[Service]\nExecStart=/bin/x\n"
	const oneshot = "[Service]\nType=oneshot\nExecStart=/bin/x\n"
	dropIn := func(name, text string) score.Service {
		return score.Service{Unit: "a.service", DropIns: map[string]string{name: text}}
	}
	tests := []struct {
		spec score.Service
		want []string
	}{
		{score.Service{Unit: "a.service", UnitFile: text, Masked: new(true)},
			[]string{`/masked: unitFile and masked: true contradict each other: the mask is in the place of the unit file; leave one of them out`}},
		{score.Service{Unit: "a.service", Masked: new(true), State: score.Running},
			[]string{`/masked: masked: true contradicts a unit that is to be started: leave out state: running, run and enabled: true, or the mask`}},
		{score.Service{Unit: "a.service", Masked: new(true), Enabled: new(true)},
			[]string{`/masked: masked: true contradicts a unit that is to be started: leave out state: running, run and enabled: true, or the mask`}},
		{score.Service{Unit: "a.service", Masked: new(true), Limits: &score.Limits{Tasks: 1}},
			[]string{`/masked: nothing that is said of a masked unit is read: leave out dropIns and limits, or the mask`}},
		{score.Service{Unit: "a.service", Masked: new(true), Enabled: new(false), State: score.Stopped}, nil},
		{score.Service{Unit: "a.service", UnitFile: text, Masked: new(false)}, nil},

		{dropIn("10-env", "[Service]\nEnvironment=A=b\n"), nil},
		{dropIn("10-env.conf", text), []string{`/dropIns/10-env.conf: the name of drop-in "10-env.conf" is given without .conf`}},
		{dropIn("../x", text), []string{`/dropIns/..~1x: drop-in "../x" must be a name of letters, digits, '_', '.' and '-', such as 10-env`}},
		{dropIn("a/b", text), []string{`/dropIns/a~1b: drop-in "a/b" must be a name of letters, digits, '_', '.' and '-', such as 10-env`}},
		{dropIn("", text), []string{`/dropIns/: drop-in "" must be a name of letters, digits, '_', '.' and '-', such as 10-env`}},
		{dropIn("50-continuo-limits", text), []string{`/dropIns/50-continuo-limits: drop-in 50-continuo-limits is where limits are written: choose another name`}},
		{dropIn("x", "Environment=A=b\n"), []string{`/dropIns/x: drop-in has no section such as [Service]`}},
		{dropIn("x", "[Service]\nA=\x00\n"), []string{`/dropIns/x: drop-in has a NUL byte`}},
		{dropIn("x", "[Install]\nWantedBy=a.target\n"), []string{`/dropIns/x: [Install] has no effect in a drop-in: it belongs in unitFile`}},
		{score.Service{Unit: "continuo-.service", DropIns: map[string]string{"x": text}},
			[]string{`/unit: what is said of continuo-.service holds for the agent itself as well`}},

		{score.Service{Unit: "a.service", Limits: &score.Limits{Memory: 256 << 20, CPU: 50, Tasks: 10, IOWeight: 10000}}, nil},
		{score.Service{Unit: "a.service", Limits: &score.Limits{}}, []string{`/limits: limits bounds nothing: give memory, cpu, tasks or ioWeight, or leave it out`}},
		{score.Service{Unit: "a.service", Limits: &score.Limits{Memory: 1 << 10, IOWeight: 10001}},
			[]string{`/limits/memory: memory is 1Ki: want 1Mi or more, in whole Ki`, `/limits/ioWeight: ioWeight is 10001: want 1 to 10000`}},
		{score.Service{Unit: "a.timer", Limits: &score.Limits{Tasks: 1}}, []string{`/limits: limits go with a service, and a.timer is none`}},

		{score.Service{Unit: "a.service", UnitFile: oneshot, Run: "once"}, nil},
		{score.Service{Unit: "a.service", UnitFile: oneshot, Run: "once", RestartOn: []score.ID{"x"}}, nil},
		{score.Service{Unit: "a.service", Run: "once"}, nil},
		{score.Service{Unit: "a.service", UnitFile: oneshot, Run: "onec"}, []string{`/run: unknown run "onec", did you mean "once"?`}},
		{score.Service{Unit: "a.service", UnitFile: text, Run: "once"}, []string{`/run: run: once needs Type=oneshot: else nobody knows when it has ended`}},
		{score.Service{Unit: "a.service", UnitFile: oneshot + "RemainAfterExit=yes\n", Run: "once"},
			[]string{`/run: run: once and RemainAfterExit=yes contradict each other: leave one of them out`}},
		{score.Service{Unit: "a.service", UnitFile: oneshot, DropIns: map[string]string{"x": "[Service]\nRemainAfterExit=yes\n"}, State: score.Running}, nil},
		{score.Service{Unit: "a.service", Run: "once", State: score.Stopped},
			[]string{`/run: run and state contradict each other: what runs to its end is neither running nor stopped; leave state out`}},
		{score.Service{Unit: "a.timer", Run: "once"}, []string{`/run: run goes with a service, and a.timer is none`}},

		{score.Service{Unit: "a.service", UnitFile: text, State: score.Running, ReloadOn: []score.ID{"x"}},
			[]string{`/reloadOn: the unit does not say how it is reloaded: add ExecReload= or Type=notify-reload, or use restartOn`}},
		{score.Service{Unit: "a.service", UnitFile: text + "ExecReload=/bin/y\n", State: score.Running, ReloadOn: []score.ID{"x"}}, nil},
		{score.Service{Unit: "a.service", UnitFile: "[Service]\nType=notify-reload\n", State: score.Running, ReloadOn: []score.ID{"x"}}, nil},
		{score.Service{Unit: "a.service", State: score.Running, ReloadOn: []score.ID{"x"}}, nil}, // the device knows
		{score.Service{Unit: "a.service", Enabled: new(true), ReloadOn: []score.ID{"x"}}, []string{`/reloadOn: reloadOn goes with state running`}},

		{score.Service{Unit: "a.timer", UnitFile: "[Unit]\nDescription=x\n[Timer]\nOnBootSec=1\n", State: score.Running}, nil},
		{score.Service{Unit: "a.timer", UnitFile: text}, []string{`/unitFile: the unit file of a.timer has no section [Timer]`}},
		{score.Service{Unit: "a.socket", UnitFile: "[Unit]\nDescription=x\n"}, []string{`/unitFile: the unit file of a.socket has no section [Socket]`}},
		{score.Service{Unit: "a.target", UnitFile: "[Unit]\nDescription=x\n"}, nil},
		{score.Service{Unit: `foo@a\x2db.service`, State: score.Running}, nil}, {score.Service{Unit: "a.b-c@x:1.service", State: score.Running}, nil},
		{score.Service{Unit: "srv-data.mount", State: score.Running}, nil},

		{score.Service{Unit: "a.service", User: "pi", State: score.Running, Linger: new(true)}, nil},
		{score.Service{Unit: "a.service", User: "root", State: score.Running}, []string{`/user: units of root are those of the system: leave user out`}},
		{score.Service{Unit: "a.service", User: "../pi", State: score.Running}, []string{`/user: user "../pi" is no name of an account`}},
		{score.Service{Unit: "a.service", State: score.Running, Linger: new(true)}, []string{`/linger: linger goes with user`}},
		{score.Service{Unit: "a.service", State: score.Running, Log: "all"}, []string{`/log: unknown log "all"`}},
	}
	for _, tt := range tests {
		if got := checked(tt.spec); !slices.Equal(got, tt.want) {
			t.Errorf("%+.300v\ngot  %q\nwant %q", tt.spec, got, tt.want)
		}
	}
}

func TestServiceClaims(t *testing.T) { // cases 61: instances are resources of their own
	const text = "[Service]\nExecStart=/bin/x\n"
	tests := []struct {
		spec score.Service
		want []score.Resource
	}{
		{score.Service{Unit: "foo@eth0.service", State: score.Running}, []score.Resource{"unit:foo@eth0.service"}},
		{score.Service{Unit: "a.service", UnitFile: text, DropIns: map[string]string{"b": text, "a": text}, Limits: &score.Limits{Tasks: 1}}, []score.Resource{
			"unit:a.service", "file:/etc/systemd/system/a.service", "file:/etc/systemd/system/a.service.d/50-continuo-limits.conf",
			"file:/etc/systemd/system/a.service.d/a.conf", "file:/etc/systemd/system/a.service.d/b.conf"}},
		{score.Service{Unit: "a.service", Masked: new(true)}, []score.Resource{"unit:a.service", "file:/etc/systemd/system/a.service"}},
		{score.Service{Unit: "a.service", User: "pi", UnitFile: text, DropIns: map[string]string{"a": text}}, []score.Resource{
			"unit:pi/a.service", "file:/etc/systemd/user/a.service", "file:/etc/systemd/user/a.service.d/a.conf"}},
	}
	for _, tt := range tests {
		if got := tt.spec.Claims(); !slices.Equal(got, tt.want) {
			t.Errorf("got  %q\nwant %q", got, tt.want)
		}
	}
}

func TestLimitsAreADropIn(t *testing.T) {
	s := score.Service{Unit: "a.service", Limits: &score.Limits{Memory: 256 << 20, CPU: 50, Tasks: 10, IOWeight: 7}}
	want := "# Written by continuo; do not edit.\n[Service]\nMemoryMax=268435456\nCPUQuota=50%\nTasksMax=10\nIOWeight=7\n"
	if got := s.AllDropIns()["50-continuo-limits"]; got != want {
		t.Errorf("got %q", got)
	}
	if got := s.Written()["/etc/systemd/system/a.service.d/50-continuo-limits.conf"]; got != want {
		t.Errorf("got %q", got)
	}
}
