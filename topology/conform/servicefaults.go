package conform

import (
	"context"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// serviceFaults are units that do not do as they are told.
var serviceFaults = []test[ServiceBench]{
	{"program that ends (50)", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "ends.service")
		b.define(t, u, ends)
		fails(t, b.Services.Start(t.Context(), u, false), topology.CodeExited)
		st := b.state(t, u)
		equal(t, "active", st.Active, "failed")
		equal(t, "result", st.Result, "exit-code")
		equal(t, "exit code", st.ExitCode, 1)
		fails(t, b.Services.Restart(t.Context(), u, false), topology.CodeExited)

		u = b.unit(t, "waits.service")
		b.define(t, u, waits)
		fails(t, b.Services.Start(t.Context(), u, false), topology.CodeExited)
		st = b.state(t, u)
		equal(t, "active", st.Active, "activating")
		equal(t, "sub", st.Sub, "auto-restart")
		ok(t, b.Services.Stop(t.Context(), u))
		equal(t, "active", b.state(t, u).Active, "inactive")
	}},
	{"oneshot that fails", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "oneshot.service")
		b.define(t, u, "[Service]\nType=oneshot\nExecStart=/bin/false\n")
		fails(t, b.Services.Start(t.Context(), u, false), topology.CodeJobFailed, topology.CodeExited)
		equal(t, "exit code", b.state(t, u).ExitCode, 1)
		b.define(t, u, "[Service]\nType=oneshot\nExecStart=/bin/true\n")
		ok(t, b.Services.Start(t.Context(), u, true))
		equal(t, "active", b.state(t, u).Active, "inactive")
		equal(t, "result", b.state(t, u).Result, "success")
	}},
	{"stopped while it starts (51)", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "slow.service")
		b.define(t, u, slow)
		done := make(chan error, 1)
		ctx := t.Context()
		go func() { done <- b.Services.Start(ctx, u, false) }()
		b.until(t, u, "the start", func(st topology.ServiceState) bool { return st.Active == "activating" })
		ok(t, b.Services.Stop(t.Context(), u))
		equal(t, "active", b.state(t, u).Active, "inactive")
		select {
		case err := <-done:
			if err == nil {
				t.Error("a start that was stopped has succeeded")
			}
		case <-time.After(patience):
			t.Fatal("a start that was stopped never returns")
		}

		short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		fails(t, b.Services.Start(short, u, false), topology.CodeTimeout)
		ok(t, b.Services.Stop(t.Context(), u))
		equal(t, "active", b.state(t, u).Active, "inactive")
	}},
	{"start limit (54)", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "loops.service")
		b.define(t, u, loops)
		fails(t, b.Services.Start(t.Context(), u, false), topology.CodeExited, topology.CodeStartLimit)
		st := b.until(t, u, "the start limit", func(st topology.ServiceState) bool { return st.Active == "failed" })
		if st.Restarts == 0 {
			t.Errorf("no restart was counted: %+v", st)
		}
		fails(t, b.Services.Start(t.Context(), u, false), topology.CodeStartLimit)
		b.define(t, u, loops[:len(loops)-len("/bin/false\n")]+"/bin/sleep 86400\n")
		ok(t, b.Services.Start(t.Context(), u, true))
		st = b.state(t, u)
		equal(t, "active", st.Active, "active")
		equal(t, "result", st.Result, "success")
	}},
	{"killed from outside (H25)", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "killed.service")
		b.define(t, u, runs)
		b.start(t, u)
		hands(t, b.Hands.Kill(u))
		st := b.until(t, u, "the end", func(st topology.ServiceState) bool { return st.Active == "failed" })
		equal(t, "main pid", st.MainPID, 0)

		u = b.unit(t, "revived.service")
		b.define(t, u, runs+"Restart=always\nRestartSec=50ms\n")
		before := b.start(t, u)
		hands(t, b.Hands.Kill(u))
		b.until(t, u, "the restart", func(st topology.ServiceState) bool {
			return st.Active == "active" && st.Restarts > 0 && st.Invocation != before.Invocation
		})
	}},
	{"masked (57)", func(t *testing.T, b ServiceBench) {
		u := b.system(t, "masked.service", runs+install)
		hands(t, b.Hands.Mask(u))
		for range 2 {
			equal(t, "load", b.state(t, u).Load, topology.Masked)
			fails(t, b.Services.Start(t.Context(), u, true), topology.CodeMasked)
			fails(t, b.Services.Restart(t.Context(), u, true), topology.CodeMasked)
			fails(t, b.Services.SetEnabled(t.Context(), u, true), topology.CodeMasked)
			fails(t, b.Services.Define(t.Context(), topology.Definition{Unit: u, Text: []byte(runs), Mark: "m/s"}), topology.CodeMasked, topology.CodeSymlink)
		}
		hands(t, b.Hands.Unmask(u))
		equal(t, "load", b.state(t, u).Load, topology.Loaded)
		b.start(t, u)
	}},
	{"definition that is none", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "bad.service")
		b.define(t, u, "[Service]\nType=simple\n")
		fails(t, b.Services.Start(t.Context(), u, false), topology.CodeDefinition)
		if st := b.state(t, u); st.Load == topology.Loaded || st.Load == topology.NotFound {
			t.Errorf("got %+v", st)
		}
		b.define(t, u, runs)
		b.start(t, u)
	}},
	{"empty definition (35)", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "zero.service")
		b.define(t, u, "")
		st := b.state(t, u)
		equal(t, "type of the definition", st.Definition.Type, topology.Regular)
		equal(t, "size of the definition", st.Definition.Size, 0)
		b.define(t, u, runs)
		equal(t, "load", b.state(t, u).Load, topology.Loaded)
		b.start(t, u)
	}},
}
