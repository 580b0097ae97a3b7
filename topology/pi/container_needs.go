package pi

import (
	"context"

	"github.com/continuo-fleet/continuo/topology"
)

// able reports what the device, or an image, lacks for a container. A limit that the kernel
// cannot hold would either be dropped or keep the container from starting.
func (c *containers) able(ctx context.Context, cfg topology.ContainerConfig) error {
	if err := c.bounds(cfg); err != nil {
		return err
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

// bounds reports a controller that the limits of a container need and the kernel does not have.
func (c *containers) bounds(cfg topology.ContainerConfig) error {
	needs := cfg.Controllers()
	if len(needs) == 0 {
		return nil
	}
	have, err := controllers(c.cgroup)
	if err != nil {
		return err
	}
	for _, need := range needs {
		if err := topology.CheckController(have, need); err != nil {
			return err
		}
	}
	return nil
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
