package memory

import (
	"context"
	"slices"

	"github.com/continuo-fleet/continuo/topology"
)

// plainTools are those of a fresh Raspberry Pi.
func plainTools() map[string][]topology.ToolCopy {
	return map[string][]topology.ToolCopy{
		topology.ToolAgent:          {{Path: "/usr/local/bin/continuo-agent", Version: "1.0.0", Works: true}},
		topology.ToolServiceManager: {{Path: "/usr/lib/systemd/systemd", Version: "257.8", Works: true}},
		"podman":                    {{Path: "/usr/bin/podman", Version: "5.4.2", Works: true}},
	}
}

type tools struct{ d *Device }

func (t tools) Tool(ctx context.Context, name string) (topology.ToolState, error) {
	if err := t.d.control.call(ctx, OpTool, topology.Resource("tool:"+name)); err != nil {
		return topology.ToolState{}, err
	}
	if err := topology.CheckTool(name); err != nil {
		return topology.ToolState{}, err
	}
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	if name == topology.ToolKernel {
		return topology.ToolState{Copies: []topology.ToolCopy{{Version: t.d.facts.Kernel, Works: true}}}, nil
	}
	return topology.ToolState{Copies: slices.Clone(t.d.tools[name])}, nil
}

// SetTool puts programs of one name on the search path, in this order; none takes them away.
func (d *Device) SetTool(name string, copies ...topology.ToolCopy) {
	d.hands(func() { d.tools[name] = copies })
}
