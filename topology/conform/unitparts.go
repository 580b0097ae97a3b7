package conform

import (
	"context"
	"slices"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

// dropIn is a definition of a drop-in of ours.
func dropIn(unit, name, text string) topology.Definition {
	return topology.Definition{Unit: unit, DropIn: name, Text: []byte(topology.DropInHeader + text), Mark: "m/s"}
}

// unitParts are what belongs to a unit beside its unit file: drop-ins, masks, limits, other units.
var unitParts = []test[ServiceBench]{
	{"drop-ins (55, G50)", func(t *testing.T, b ServiceBench) {
		u := b.system(t, "parts.service", remains[:len(remains)-len("ExecStart=/bin/true\n")]+"ExecStart=/bin/true\n")
		ok(t, b.Services.Define(t.Context(), dropIn(u, "20-b", "[Service]\nEnvironment=B=1\n")))
		ok(t, b.Services.Define(t.Context(), dropIn(u, "10-a", "[Service]\nRemainAfterExit=no\n[Unit]\nDescription=a\n")))
		st := b.state(t, u)
		equal(t, "definition, which is the system's", st.Definition.Type, topology.Absent)
		equal(t, "remain, as the drop-in has it", st.Remain, false)
		if len(st.DropIns) != 2 {
			t.Fatalf("got %+v", st.DropIns)
		}
		a := st.DropIns[0]
		equal(t, "name", a.Name, "10-a")
		equal(t, "path", a.Path, "/etc/systemd/system/"+u+".d/10-a.conf")
		equal(t, "mark", a.Mark, "m/s")
		equal(t, "mode", a.Mode, 0o644)
		equal(t, "sha256", a.SHA256, sum(topology.DropInHeader+"[Service]\nRemainAfterExit=no\n[Unit]\nDescription=a\n"))
		if want := []string{"Service.RemainAfterExit", "Unit.Description"}; !slices.Equal(a.Settings, want) {
			t.Errorf("settings are %q, want %q", a.Settings, want)
		}
		for range 2 {
			ok(t, b.Services.RemoveDropIn(t.Context(), u, "10-a"))
			st = b.state(t, u)
			equal(t, "remain, without the drop-in", st.Remain, true)
			equal(t, "number of drop-ins", len(st.DropIns), 1)
		}
		ok(t, b.Services.Undefine(t.Context(), u))
		equal(t, "number of drop-ins of a unit of the system that was undefined", len(b.state(t, u).DropIns), 0)
		equal(t, "load of a unit of the system that was undefined", b.state(t, u).Load, topology.Loaded)
	}},
	{"drop-in of somebody else (G50)", func(t *testing.T, b ServiceBench) {
		u := b.system(t, "theirs.service", runs)
		hands(t, b.Hands.Override(u, "[Service]\nExecStart=\nExecStart=/bin/sleep 86399\n"))
		st := b.state(t, u)
		if len(st.DropIns) != 1 || st.DropIns[0].Name != "" || st.DropIns[0].Path == "" || !slices.Equal(st.DropIns[0].Settings, []string{"Service.ExecStart"}) {
			t.Errorf("got %+v", st.DropIns)
		}
	}},
	{"only what was seen is replaced (G37)", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "seen.service")
		def := topology.Definition{Unit: u, Text: []byte(runs), Mark: "m/s", Replaces: topology.Sum(topology.Absent)}
		ok(t, b.Services.Define(t.Context(), def))
		def.Text = []byte(runs + "# new\n")
		fails(t, b.Services.Define(t.Context(), def), topology.CodeChanged)
		def.Replaces = sum("something else")
		fails(t, b.Services.Define(t.Context(), def), topology.CodeChanged)
		equal(t, "sha256", b.state(t, u).Definition.SHA256, sum(runs))
		def.Replaces = sum(runs)
		ok(t, b.Services.Define(t.Context(), def))

		in := dropIn(u, "10-a", "[Service]\nEnvironment=A=1\n")
		in.Replaces = sum("something else")
		fails(t, b.Services.Define(t.Context(), in), topology.CodeChanged)
		equal(t, "number of drop-ins", len(b.state(t, u).DropIns), 0)
		in.Replaces = topology.Sum(topology.Absent)
		ok(t, b.Services.Define(t.Context(), in))
		ok(t, b.Services.Undefine(t.Context(), u))
		st := b.state(t, u)
		equal(t, "load", st.Load, topology.NotFound)
		equal(t, "number of drop-ins", len(st.DropIns), 0)
	}},
	{"mask of ours (67)", func(t *testing.T, b ServiceBench) {
		u := b.system(t, "ourmask.service", runs+install)
		ok(t, b.Services.Define(t.Context(), topology.Definition{Unit: u, Mark: "m/s", Replaces: topology.Sum(topology.Absent)}))
		st := b.state(t, u)
		equal(t, "load", st.Load, topology.Masked)
		equal(t, "enabled", st.Enabled, "masked")
		equal(t, "type of the definition", st.Definition.Type, topology.Regular)
		equal(t, "mark of the definition", st.Definition.Mark, "m/s")
		fails(t, b.Services.Start(t.Context(), u, true), topology.CodeMasked)
		for range 2 {
			ok(t, b.Services.Unmask(t.Context(), u))
			equal(t, "load", b.state(t, u).Load, topology.Loaded)
		}
		b.start(t, u)
		hands(t, b.Hands.Mask(u)) // as an administrator
		equal(t, "load", b.state(t, u).Load, topology.Masked)
		ok(t, b.Services.Unmask(t.Context(), u))
		equal(t, "load", b.state(t, u).Load, topology.Loaded)
	}},
	{"limits", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "limits.service")
		b.define(t, u, runs)
		b.start(t, u)
		ok(t, b.Services.Define(t.Context(), dropIn(u, "50-l", "[Service]\nMemoryMax=268435456\nCPUQuota=50%\nTasksMax=100\nIOWeight=50\n")))
		equal(t, "limits", b.state(t, u).Limits, topology.UnitLimits{Memory: 256 << 20, CPU: 50, Tasks: 100, IOWeight: 50})
		ok(t, b.Services.RemoveDropIn(t.Context(), u, "50-l"))
		equal(t, "memory, without a limit", b.state(t, u).Limits.Memory, 0)
		if _, err := b.Services.Controllers(t.Context(), u); err != nil {
			t.Error(err)
		}
	}},
	{"timers, sockets and paths", func(t *testing.T, b ServiceBench) {
		for suffix, want := range map[string]struct{ text, sub string }{
			"timer":  {"[Timer]\nOnBootSec=1000d\n", "waiting"},
			"socket": {"[Socket]\nListenStream=/run/ct-conform.sock\n", "listening"},
			"path":   {"[Path]\nPathExists=/run/ct-conform-never\n", "waiting"},
		} {
			target := b.unit(t, "by-"+suffix+".service")
			b.define(t, target, runs)
			u := b.unit(t, "by-"+suffix+"."+suffix)
			b.define(t, u, want.text+install)
			ok(t, b.Services.SetEnabled(t.Context(), u, true))
			st := b.start(t, u)
			equal(t, "sub of a "+suffix, st.Sub, want.sub)
			equal(t, "enabled", st.Enabled, "enabled")
			equal(t, "type of a "+suffix, st.Type, "")
			if !slices.Equal(st.Triggers, []string{target}) {
				t.Errorf("a %s starts %q", suffix, st.Triggers)
			}
			st = b.state(t, target)
			equal(t, "what it starts, which nobody asked for yet", st.Active, "inactive")
			if !slices.Equal(st.TriggeredBy, []string{u}) {
				t.Errorf("%s is started by %q", target, st.TriggeredBy)
			}
			ok(t, b.Services.Stop(t.Context(), u))
			equal(t, "active", b.state(t, u).Active, "inactive")
		}
	}},
	{"instance of a template is enabled (61)", func(t *testing.T, b ServiceBench) {
		b.system(t, "tplon@.service", runs+install)
		u := b.unit(t, "tplon@one.service")
		equal(t, "enabled", b.state(t, u).Enabled, "disabled")
		ok(t, b.Services.SetEnabled(t.Context(), u, true))
		equal(t, "enabled", b.state(t, u).Enabled, "enabled")
		equal(t, "enabled, another instance", b.state(t, b.Prefix+"tplon@two.service").Enabled, "disabled")
		ok(t, b.Services.SetEnabled(t.Context(), u, false))
		equal(t, "enabled", b.state(t, u).Enabled, "disabled")
	}},
	{"unit of a user", func(t *testing.T, b ServiceBench) {
		on, err := b.Services.Lingers(t.Context(), b.User)
		ok(t, err)
		equal(t, "lingers", on, true)
		u := b.User + "/" + b.unit(t, "of-user.service")
		after(t, func(ctx context.Context) { _ = b.Services.Undefine(ctx, u) })
		b.define(t, u, runs+"\n[Install]\nWantedBy=default.target\n")
		ok(t, b.Services.Define(t.Context(), dropIn(u, "10-a", "[Service]\nEnvironment=A=1\n")))
		equal(t, "load, for the system", b.state(t, b.Prefix+"of-user.service").Load, topology.NotFound)
		ok(t, b.Services.SetEnabled(t.Context(), u, true))
		st := b.start(t, u)
		equal(t, "load", st.Load, topology.Loaded)
		equal(t, "enabled", st.Enabled, "enabled")
		equal(t, "source", st.Source, "/etc/systemd/user/"+b.Prefix+"of-user.service")
		equal(t, "mark of the definition", st.Definition.Mark, "m/s")
		equal(t, "number of drop-ins", len(st.DropIns), 1)
		if st.MainPID == 0 || st.Invocation == "" {
			t.Errorf("got %+v", st)
		}
		ok(t, b.Services.Restart(t.Context(), u, false))
		if now := b.state(t, u); now.Invocation == st.Invocation || now.Active != "active" {
			t.Errorf("got %+v after a restart", now)
		}
		for range 2 {
			ok(t, b.Services.Undefine(t.Context(), u))
			st = b.state(t, u)
			equal(t, "load", st.Load, topology.NotFound)
			equal(t, "active", st.Active, "inactive")
		}
		_, err = b.Services.Service(t.Context(), "ct-nobody/x.service")
		fails(t, err, topology.CodeNoAccount)
		for _, bad := range []string{"../x.service", b.User + "//x.service", "a/b/x.service", "/x.service"} {
			if _, err := b.Services.Service(t.Context(), bad); err == nil {
				t.Errorf("%q is taken for a unit", bad)
			}
		}
	}},
	{"unit of a user who is gone", func(t *testing.T, b ServiceBench) {
		// The files of all users are in one place, so one who never was stands for one who is gone.
		unit := b.unit(t, "of-nobody.service")
		u, gone := b.User+"/"+unit, "ct-nobody/"+unit
		after(t, func(ctx context.Context) { _ = b.Services.Undefine(ctx, u) })
		b.define(t, u, runs)
		for _, name := range []string{"10-a", "20-b"} {
			ok(t, b.Services.Define(t.Context(), dropIn(u, name, "[Service]\nEnvironment=A=1\n")))
		}
		see := func(dropIns int) topology.ServiceState {
			t.Helper()
			st, err := b.Services.Service(t.Context(), gone)
			fails(t, err, topology.CodeNoAccount)
			equal(t, "load", st.Load, topology.NotFound)
			equal(t, "number of drop-ins", len(st.DropIns), dropIns)
			return st
		}
		equal(t, "mark of the definition", see(2).Definition.Mark, "m/s")
		for name, err := range map[string]error{
			"define": b.Services.Define(t.Context(), topology.Definition{Unit: gone, Text: []byte(runs), Mark: "m/s"}),
			"enable": b.Services.SetEnabled(t.Context(), gone, true),
			"start":  b.Services.Start(t.Context(), gone, true),
			"stop":   b.Services.Stop(t.Context(), gone),
			"linger": b.Services.SetLinger(t.Context(), "ct-nobody", true),
		} {
			if err == nil {
				t.Errorf("%s did it for nobody", name)
				continue
			}
			fails(t, err, topology.CodeNoAccount)
		}
		_, err := b.Services.Lingers(t.Context(), "ct-nobody")
		fails(t, err, topology.CodeNoAccount)
		for range 2 {
			ok(t, b.Services.RemoveDropIn(t.Context(), gone, "10-a"))
			see(1)
		}
		for range 2 {
			ok(t, b.Services.Undefine(t.Context(), gone))
			equal(t, "type of the definition", see(0).Definition.Type, topology.Absent)
		}
		equal(t, "load, for the others", b.state(t, u).Load, topology.NotFound)
		ok(t, b.Services.Define(t.Context(), topology.Definition{Unit: u, Mark: "m/s"})) // a mask
		for range 2 {
			ok(t, b.Services.Unmask(t.Context(), gone))
			equal(t, "type of the definition", see(0).Definition.Type, topology.Absent)
		}
	}},
}
