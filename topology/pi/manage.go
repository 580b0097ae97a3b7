package pi

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/topology"
)

// Each call goes to the manager that has the unit.

// agentUnit is the unit of the agent, which may run as another one.
const agentUnit = "continuo-agent.service"

// touch is of for calls that change a unit. That of the agent is left alone, under every name that it has: a unit can have
// others, which only the service manager knows.
func (m *managers) touch(ctx context.Context, ref string) (*services, string, error) {
	s, unit, err := m.files(ref)
	if err != nil || s.user != "" || s.bus.below {
		return s, unit, err
	}
	own := func(name string) bool { return name == agentUnit || name == m.self }
	if own(unit) {
		return nil, "", topology.Faultf(topology.CodeForeign, "%s is the agent itself", unit)
	}
	if checkUnit(unit) != nil {
		return s, unit, nil // it is refused by all of them
	}
	u, err := s.ask(ctx, unit)
	if err != nil {
		return nil, "", err
	}
	if i := slices.IndexFunc(u.names, own); i >= 0 {
		return nil, "", topology.Faultf(topology.CodeForeign, "%s is another name of %s, the agent itself", unit, u.names[i])
	}
	return s, unit, nil
}

// unitOfSelf is the unit that this process runs in; empty: in none.
func unitOfSelf() string {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	return serviceOf(string(text))
}

// serviceOf finds the service of the system in what the kernel says of the control groups of a process.
func serviceOf(text string) string {
	for line := range strings.Lines(text) {
		group, unified := strings.CutPrefix(strings.TrimSpace(line), "0::/system.slice/")
		if !unified {
			continue
		}
		for part := range strings.SplitSeq(group, "/") {
			if strings.HasSuffix(part, ".service") {
				return part
			}
		}
	}
	return ""
}

func (m *managers) Define(ctx context.Context, d topology.Definition) error {
	s, unit, err := m.touch(ctx, d.Unit)
	if err != nil {
		return err
	}
	d.Unit = unit
	return s.Define(ctx, d)
}

func (m *managers) Service(ctx context.Context, unit string) (topology.ServiceState, error) {
	s, unit, err := m.files(unit)
	if err != nil {
		return topology.ServiceState{}, err
	}
	return s.Service(ctx, unit)
}

func (m *managers) Log(ctx context.Context, unit, invocation string) (string, error) {
	s, unit, err := m.of(unit)
	if err != nil {
		return "", err
	}
	return s.Log(ctx, unit, invocation)
}

func (m *managers) Controllers(ctx context.Context, unit string) ([]string, error) {
	s, unit, err := m.of(unit)
	if err != nil {
		return nil, err
	}
	return s.Controllers(ctx, unit)
}

func (m *managers) Undefine(ctx context.Context, unit string) error {
	s, unit, err := m.touch(ctx, unit)
	if err != nil {
		return err
	}
	return s.Undefine(ctx, unit)
}

func (m *managers) RemoveDropIn(ctx context.Context, unit, name string) error {
	s, unit, err := m.touch(ctx, unit)
	if err != nil {
		return err
	}
	return s.RemoveDropIn(ctx, unit, name)
}

func (m *managers) Unmask(ctx context.Context, unit string) error {
	s, unit, err := m.touch(ctx, unit)
	if err != nil {
		return err
	}
	return s.Unmask(ctx, unit)
}

func (m *managers) SetEnabled(ctx context.Context, unit string, on bool) error {
	s, unit, err := m.touch(ctx, unit)
	if err != nil {
		return err
	}
	return s.SetEnabled(ctx, unit, on)
}

func (m *managers) Start(ctx context.Context, unit string, reset bool) error {
	s, unit, err := m.touch(ctx, unit)
	if err != nil {
		return err
	}
	return s.Start(ctx, unit, reset)
}

func (m *managers) Stop(ctx context.Context, unit string) error {
	s, unit, err := m.touch(ctx, unit)
	if err != nil {
		return err
	}
	return s.Stop(ctx, unit)
}

func (m *managers) Restart(ctx context.Context, unit string, reset bool) error {
	s, unit, err := m.touch(ctx, unit)
	if err != nil {
		return err
	}
	return s.Restart(ctx, unit, reset)
}

func (m *managers) Reload(ctx context.Context, unit string) error {
	s, unit, err := m.touch(ctx, unit)
	if err != nil {
		return err
	}
	return s.Reload(ctx, unit)
}

func (m *managers) RunOnce(ctx context.Context, unit, digest string) error {
	s, unit, err := m.touch(ctx, unit)
	if err != nil {
		return err
	}
	return s.RunOnce(ctx, unit, digest)
}
