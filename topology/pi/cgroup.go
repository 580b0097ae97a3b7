package pi

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/continuo-fleet/continuo/topology"
)

// controllers are those that the kernel has for what is below a control group. A Raspberry Pi
// has none for memory unless its command line asks for it.
func controllers(cgroup string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(cgroup, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, topology.Faultf(topology.CodeNotSupported, "the device has no unified control groups at %s, so nothing can be bounded", cgroup)
	}
	if err != nil {
		return nil, topology.Faultf(topology.FaultOf(err).Code, "cannot read which controllers the kernel has: %v", err)
	}
	return strings.Fields(string(text)), nil
}

// Controllers lists what the kernel can bound.
func (s *services) Controllers(ctx context.Context, unit string) ([]string, error) {
	if err := checkUnit(unit); err != nil {
		return nil, err
	}
	if _, err := s.bus.link(ctx); err != nil {
		return nil, err
	}
	return controllers(s.cgroup)
}
