package pi

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/topology"
)

// controllersFile lists what the kernel can limit.
const controllersFile = "/sys/fs/cgroup/cgroup.controllers"

// able reports what the device, or an image, lacks for a container. A limit that the kernel
// cannot hold would either be dropped or keep the container from starting.
func (c *containers) able(ctx context.Context, cfg topology.ContainerConfig) error {
	for _, n := range []struct {
		controller string
		needed     bool
		why        string
	}{
		{"memory", cfg.Memory > 0, "memory controller disabled (cmdline.txt): the kernel cannot limit the memory of container " + cfg.Name + "; add cgroup_enable=memory to /boot/firmware/cmdline.txt and reboot, or leave the limit out"},
		{"cpu", cfg.CPU > 0, "cpu controller disabled: the kernel cannot limit the processor share of container " + cfg.Name},
		{"pids", cfg.PIDs > 0, "pids controller disabled: the kernel cannot limit the processes of container " + cfg.Name},
	} {
		if !n.needed {
			continue
		}
		have, err := os.ReadFile(controllersFile)
		if err != nil || !slices.Contains(strings.Fields(string(have)), n.controller) {
			return topology.Faultf(topology.CodeUnavailable, "%s", n.why)
		}
	}
	if cfg.Stopped {
		return nil
	}
	for _, image := range cfg.Images() {
		digest, err := c.podman.digest(ctx, image, image)
		if err != nil {
			return err
		}
		if digest == "" {
			return topology.Faultf(topology.CodeImage, "the image %s is not here; it is fetched before the container is touched", image)
		}
	}
	if cfg.HealthCheck == nil || len(cfg.HealthCheck.Command) > 0 {
		return nil
	}
	checks, err := c.podman.checks(ctx, cfg.Image)
	if err == nil && !checks {
		err = topology.Faultf(topology.CodeUnavailable, "no health check in image %s (images in OCI format drop it): give healthCheck.command, or leave healthCheck out", cfg.Image)
	}
	return err
}

// checks reports whether an image has a health check.
func (p *podman) checks(ctx context.Context, image string) (bool, error) {
	var found struct {
		Config struct{ Healthcheck *struct{ Test []string } }
	}
	err := p.call(ctx, p.limit, request{method: "GET", path: "/images/" + image + "/json"}, into(&found))
	if err != nil {
		return false, podmanFault("inspect image "+image, err)
	}
	h := found.Config.Healthcheck
	return h != nil && len(h.Test) > 0 && h.Test[0] != "NONE" && h.Test[0] != "", nil
}
