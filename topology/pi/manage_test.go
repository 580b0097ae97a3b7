package pi

import (
	"context"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

func TestServiceOf(t *testing.T) {
	for text, want := range map[string]string{
		"0::/system.slice/continuo-agent.service\n":      "continuo-agent.service",
		"0::/system.slice/my-agent.service/init\n":       "my-agent.service",
		"0::/system.slice/system-a.slice/a@1.service\n":  "a@1.service",
		"1:name=systemd:/system.slice/b.service\n0::/\n": "",
		"0::/user.slice/user-0.slice/session-1.scope\n":  "",
		"0::/user.slice/user-1.slice/user@1.service/x\n": "",
		"": "",
	} {
		if got := serviceOf(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestAgentsUnitIsLeftAlone: by its name not even a bus is asked; for other names see the device suite.
func TestAgentsUnitIsLeftAlone(t *testing.T) {
	m := newManagers(&services{bus: newBus(t.Context(), false)})
	m.self = "my-agent.service"
	for _, unit := range []string{"continuo-agent.service", "my-agent.service"} {
		for verb, do := range touching(t.Context(), m, unit) {
			if err := do(); err == nil || topology.FaultOf(err).Code != topology.CodeForeign {
				t.Errorf("%s of %s: %v", verb, unit, err)
			}
		}
	}
}

// touching is every call that changes a unit. Its keys are no part of the texts: they name the call that was not refused.
func touching(ctx context.Context, s topology.ServiceWriter, unit string) map[string]func() error {
	return map[string]func() error{
		"Define": func() error {
			return s.Define(ctx, topology.Definition{Unit: unit, DropIn: "x", Text: []byte("[Unit]\n"), Mark: "m/s"})
		},
		"Undefine":     func() error { return s.Undefine(ctx, unit) },
		"RemoveDropIn": func() error { return s.RemoveDropIn(ctx, unit, "x") },
		"Unmask":       func() error { return s.Unmask(ctx, unit) },
		"SetEnabled":   func() error { return s.SetEnabled(ctx, unit, false) },
		"Start":        func() error { return s.Start(ctx, unit, true) },
		"Stop":         func() error { return s.Stop(ctx, unit) },
		"Restart":      func() error { return s.Restart(ctx, unit, true) },
		"Reload":       func() error { return s.Reload(ctx, unit) },
		"RunOnce":      func() error { return s.RunOnce(ctx, unit, "d") },
	}
}
