package conform

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

// A ServiceBench is a service manager to test.
type ServiceBench struct {
	Services topology.Services
	// Prefix starts the name of every unit that the suite makes.
	Prefix string
	// Writes is a command, for ExecStart, that writes "the words of the unit" and ends with status 3.
	Writes string
	// User is a user whose service manager runs.
	User  string
	Hands ServiceHands
}

// ServiceHands act on the services of a device as an administrator at a terminal.
type ServiceHands interface {
	// Install puts a unit on the device as the system's packages do, not where the definitions
	// of manifests live. Uninstall takes it away, also one that was not installed.
	Install(unit, text string) error
	Uninstall(unit string) error
	Mask(unit string) error
	Unmask(unit string) error
	// EnableRuntime enables a unit until the next boot.
	EnableRuntime(unit string) error
	// Override adds a drop-in to a unit, and lets the service manager know. It goes with Uninstall.
	Override(unit, text string) error
	// Kill kills the main process of a unit with signal 9.
	Kill(unit string) error
}

// Definitions of units, as short as they can be. The last line of each sleeps, fails or ends.
const (
	runs    = "[Service]\nExecStart=/bin/sleep 86400\n"
	ends    = "[Service]\nExecStart=/bin/false\n"
	loops   = "[Unit]\nStartLimitIntervalSec=60\nStartLimitBurst=3\n[Service]\nRestart=always\nRestartSec=50ms\nExecStart=/bin/false\n"
	waits   = "[Service]\nRestart=always\nRestartSec=30s\nExecStart=/bin/false\n"
	slow    = "[Service]\nExecStartPre=/bin/sleep 999\nExecStart=/bin/sleep 86400\nTimeoutStartSec=600\n"
	remains = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n"
	install = "\n[Install]\nWantedBy=multi-user.target\n"
)

// unit returns the name of a unit of the suite, which is gone when the test is over.
func (b ServiceBench) unit(t *testing.T, name string) string {
	unit := b.Prefix + name
	after(t, func(ctx context.Context) {
		_ = b.Services.Undefine(ctx, unit)
		_ = b.Services.Stop(ctx, unit)
	})
	return unit
}

// system returns the name of a unit that comes with the system.
func (b ServiceBench) system(t *testing.T, name, text string) string {
	t.Helper()
	unit := b.Prefix + name
	after(t, func(ctx context.Context) {
		_ = b.Hands.Unmask(unit)
		_ = b.Services.Stop(ctx, unit)
		_ = b.Services.SetEnabled(ctx, unit, false)
		if err := b.Hands.Uninstall(unit); err != nil {
			t.Errorf("hands: %v", err)
		}
	})
	hands(t, b.Hands.Install(unit, text))
	return unit
}

func (b ServiceBench) state(t *testing.T, unit string) topology.ServiceState {
	t.Helper()
	st, err := b.Services.Service(t.Context(), unit)
	ok(t, err)
	return st
}

func (b ServiceBench) define(t *testing.T, unit, text string) {
	t.Helper()
	ok(t, b.Services.Define(t.Context(), topology.Definition{Unit: unit, Text: []byte(text), Mark: "m/s"}))
}

func (b ServiceBench) start(t *testing.T, unit string) topology.ServiceState {
	t.Helper()
	ok(t, b.Services.Start(t.Context(), unit, false))
	st := b.state(t, unit)
	equal(t, "active", st.Active, "active")
	return st
}

// until asks for the state of a unit until it is good.
func (b ServiceBench) until(t *testing.T, unit, what string, good func(topology.ServiceState) bool) topology.ServiceState {
	t.Helper()
	return eventually(t, what, func(ctx context.Context) (topology.ServiceState, error) { return b.Services.Service(ctx, unit) }, good)
}

// Services is the suite of a service manager.
func Services(t *testing.T, bench func(*testing.T) ServiceBench) {
	suite(t, bench, slices.Concat(serviceTests, serviceFaults, unitParts, unitRuns))
}

var serviceTests = []test[ServiceBench]{
	{"absent", func(t *testing.T, b ServiceBench) {
		st := b.state(t, b.Prefix+"no.service")
		equal(t, "load", st.Load, topology.NotFound)
		equal(t, "active", st.Active, "inactive")
		equal(t, "enabled", st.Enabled, "")
		equal(t, "definition", st.Definition.Type, topology.Absent)
		ok(t, b.Services.Undefine(t.Context(), b.Prefix+"no.service"))
		if b.Services.Start(t.Context(), b.Prefix+"no.service", false) == nil {
			t.Error("a unit that does not exist was started")
		}
		if b.Services.SetEnabled(t.Context(), b.Prefix+"no.service", true) == nil {
			t.Error("a unit that does not exist was enabled")
		}
	}},
	{"life of a unit (H51, H59)", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "life.service")
		b.define(t, u, runs)
		st := b.state(t, u)
		equal(t, "load", st.Load, topology.Loaded)
		equal(t, "active", st.Active, "inactive")
		equal(t, "type", st.Type, "simple")
		equal(t, "type of the definition", st.Definition.Type, topology.Regular)
		equal(t, "sha256 of the definition", st.Definition.SHA256, sum(runs))
		equal(t, "mode of the definition", st.Definition.Mode, 0o644)
		equal(t, "mark of the definition", st.Definition.Mark, "m/s")

		first := b.start(t, u)
		equal(t, "sub", first.Sub, "running")
		if first.MainPID == 0 || first.Invocation == "" || first.Since.IsZero() {
			t.Errorf("a running unit has no process, invocation or time: %+v", first)
		}
		again := b.start(t, u)
		equal(t, "invocation after a second start", again.Invocation, first.Invocation)
		equal(t, "since after a second start", again.Since, first.Since)

		ok(t, b.Services.Restart(t.Context(), u, false))
		if st := b.state(t, u); st.Invocation == first.Invocation || st.Active != "active" {
			t.Errorf("got %+v after a restart", st)
		}
		for range 2 {
			ok(t, b.Services.Stop(t.Context(), u))
			st = b.state(t, u)
			equal(t, "active", st.Active, "inactive")
			equal(t, "main pid", st.MainPID, 0)
		}
		ok(t, b.Services.Restart(t.Context(), u, false)) // of a unit that is stopped
		equal(t, "active", b.state(t, u).Active, "active")

		for range 2 { // while it runs
			ok(t, b.Services.Undefine(t.Context(), u))
			st = b.state(t, u)
			equal(t, "load", st.Load, topology.NotFound)
			equal(t, "active", st.Active, "inactive")
			equal(t, "definition", st.Definition.Type, topology.Absent)
		}
	}},
	{"definition that changes (55)", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "change.service")
		b.define(t, u, runs)
		before := b.start(t, u)
		b.define(t, u, runs+"RemainAfterExit=yes\n")
		st := b.state(t, u)
		equal(t, "remain, as it is on disk now", st.Remain, true)
		equal(t, "invocation, which nobody asked to change", st.Invocation, before.Invocation)
		hands(t, b.Hands.Override(u, "[Service]\nRemainAfterExit=no\n"))
		after(t, func(context.Context) { _ = b.Hands.Uninstall(u) })
		ok(t, b.Services.Restart(t.Context(), u, false))
		st = b.state(t, u)
		equal(t, "number of drop-ins", len(st.DropIns), 1)
	}},
	{"enabled", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "enabled.service")
		b.define(t, u, runs+install)
		equal(t, "enabled", b.state(t, u).Enabled, "disabled")
		for range 2 {
			ok(t, b.Services.SetEnabled(t.Context(), u, true))
			equal(t, "enabled", b.state(t, u).Enabled, "enabled")
		}
		equal(t, "active, which nobody asked for", b.state(t, u).Active, "inactive")
		for range 2 {
			ok(t, b.Services.SetEnabled(t.Context(), u, false))
			equal(t, "enabled", b.state(t, u).Enabled, "disabled")
		}
		ok(t, b.Services.SetEnabled(t.Context(), u, true))
		ok(t, b.Services.Undefine(t.Context(), u))
		b.define(t, u, runs+install)
		equal(t, "enabled, of a unit that was removed before", b.state(t, u).Enabled, "disabled")
		b.define(t, u, runs)
		equal(t, "enabled", b.state(t, u).Enabled, "static")
		fails(t, b.Services.SetEnabled(t.Context(), u, true), topology.CodeInvalid)
	}},
	{"enabled until the next boot (59)", func(t *testing.T, b ServiceBench) {
		u := b.system(t, "runtime.service", runs+install)
		for _, want := range []bool{false, true} {
			hands(t, b.Hands.EnableRuntime(u))
			equal(t, "enabled", b.state(t, u).Enabled, "enabled-runtime")
			ok(t, b.Services.SetEnabled(t.Context(), u, want))
			equal(t, "enabled", b.state(t, u).Enabled, map[bool]string{true: "enabled", false: "disabled"}[want])
			ok(t, b.Services.SetEnabled(t.Context(), u, false))
		}
	}},
	{"templates and odd names (61, 66)", func(t *testing.T, b ServiceBench) {
		b.system(t, "tpl@.service", runs)
		seen := map[string]bool{}
		for _, name := range []string{"tpl@one.service", `tpl@a\x2db.service`, "tpl@x:1.service", "tpl@account_db.service"} {
			u := b.unit(t, name)
			seen[b.start(t, u).Invocation] = true
		}
		equal(t, "number of instances", len(seen), 4)
		for _, name := range []string{"account_db.service", "a.b-c.service", `a\x2db.service`} {
			u := b.unit(t, name)
			b.define(t, u, runs)
			b.start(t, u)
			ok(t, b.Services.Stop(t.Context(), u))
			ok(t, b.Services.Undefine(t.Context(), u))
		}
	}},
	{"active without a process (62)", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "remains.service")
		b.define(t, u, remains)
		st := b.start(t, u)
		equal(t, "sub", st.Sub, "exited")
		equal(t, "main pid", st.MainPID, 0)
		equal(t, "type", st.Type, "oneshot")
		equal(t, "remain", st.Remain, true)
	}},
	{"not a service", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "clock.timer")
		b.define(t, b.unit(t, "clock.service"), "[Service]\nType=oneshot\nExecStart=/bin/true\n")
		b.define(t, u, "[Timer]\nOnBootSec=1000d\n"+install)
		equal(t, "type", b.state(t, u).Type, "")
		b.start(t, u)
		ok(t, b.Services.Stop(t.Context(), u))
	}},
	{"canceled (64)", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "canceled.service")
		b.define(t, u, runs)
		b.start(t, u)
		ok(t, b.Services.Stop(t.Context(), u))
		before := runtime.NumGoroutine()
		for range 50 {
			_, err := b.Services.Service(canceled(t), u)
			fails(t, err, topology.CodeCanceled)
			fails(t, b.Services.Start(canceled(t), u, false), topology.CodeCanceled)
			fails(t, b.Services.Stop(canceled(t), u), topology.CodeCanceled)
		}
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel() // somewhere in the middle
				_ = b.Services.Start(ctx, u, false)
				_ = b.Services.Stop(ctx, u)
			})
		}
		wg.Wait()
		b.start(t, u)
		eventually(t, "the end of all goroutines", func(context.Context) (int, error) { return runtime.NumGoroutine(), nil },
			func(n int) bool { return n <= before+4 })
	}},
}
