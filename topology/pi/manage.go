package pi

import (
	"context"

	"github.com/continuo-fleet/continuo/topology"
)

// Each call goes to the manager that has the unit.

func (m *managers) Define(ctx context.Context, d topology.Definition) error {
	s, unit, err := m.of(d.Unit)
	if err != nil {
		return err
	}
	d.Unit = unit
	return s.Define(ctx, d)
}

func (m *managers) Service(ctx context.Context, unit string) (topology.ServiceState, error) {
	s, unit, err := m.of(unit)
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
	s, unit, err := m.of(unit)
	if err != nil {
		return err
	}
	return s.Undefine(ctx, unit)
}

func (m *managers) RemoveDropIn(ctx context.Context, unit, name string) error {
	s, unit, err := m.of(unit)
	if err != nil {
		return err
	}
	return s.RemoveDropIn(ctx, unit, name)
}

func (m *managers) Unmask(ctx context.Context, unit string) error {
	s, unit, err := m.of(unit)
	if err != nil {
		return err
	}
	return s.Unmask(ctx, unit)
}

func (m *managers) SetEnabled(ctx context.Context, unit string, on bool) error {
	s, unit, err := m.of(unit)
	if err != nil {
		return err
	}
	return s.SetEnabled(ctx, unit, on)
}

func (m *managers) Start(ctx context.Context, unit string, reset bool) error {
	s, unit, err := m.of(unit)
	if err != nil {
		return err
	}
	return s.Start(ctx, unit, reset)
}

func (m *managers) Stop(ctx context.Context, unit string) error {
	s, unit, err := m.of(unit)
	if err != nil {
		return err
	}
	return s.Stop(ctx, unit)
}

func (m *managers) Restart(ctx context.Context, unit string, reset bool) error {
	s, unit, err := m.of(unit)
	if err != nil {
		return err
	}
	return s.Restart(ctx, unit, reset)
}

func (m *managers) Reload(ctx context.Context, unit string) error {
	s, unit, err := m.of(unit)
	if err != nil {
		return err
	}
	return s.Reload(ctx, unit)
}

func (m *managers) RunOnce(ctx context.Context, unit, digest string) error {
	s, unit, err := m.of(unit)
	if err != nil {
		return err
	}
	return s.RunOnce(ctx, unit, digest)
}
