package pi

import (
	"context"
	"errors"
	"net/url"

	"github.com/continuo-fleet/continuo/topology"
)

// recover finds out why podman did not start a container, cures what can be cured
// without asking anybody, and tries once more.
func (c *containers) recover(ctx context.Context, cfg topology.ContainerConfig, failure error) error {
	unit, checked := unitOf(cfg.Name), ""
	left, err := c.podman.inspect(ctx, cfg.Name)
	if err != nil {
		return errors.Join(failure, err)
	}
	if left != nil {
		// One that hangs between two states: stop, start and kill are all refused.
		if left.Config.Labels[ownerLabel] == "" {
			return failure
		}
		if err := c.podman.removeContainer(ctx, left.ID); err != nil {
			return topology.Faultf(topology.FaultOf(err).Code, "%v; the old container is stuck (%s): %v", failure, left.State.Status, err)
		}
	} else {
		why := c.podman.try(ctx, cfg.Image)
		if why == nil || topology.FaultOf(why).Code != topology.CodeImageStore {
			return failure
		}
		checked = c.podman.check(ctx) // before anything is taken away
		if err := c.podman.renew(ctx, cfg, cfg.Image); err != nil {
			return topology.Faultf(topology.FaultOf(err).Code, "%v; %s", err, checked)
		}
	}
	err = c.launch(ctx, "start", unit, restart, true, "")
	if err != nil && left == nil {
		if why := c.podman.try(ctx, cfg.Image); why != nil {
			return topology.Faultf(topology.CodeImageStore, "the image store is damaged; %s was removed and fetched again, and still: %v; before that: %s; podman system check --repair may help", cfg.Image, why, checked)
		}
	}
	return err
}

// try makes a container of an image, looks into it, which mounts its layers, and removes
// it again. It returns what podman has against it.
func (p *podman) try(ctx context.Context, image string) error {
	var made struct {
		ID string `json:"Id"`
	}
	err := p.call(ctx, p.limit, request{method: "POST", path: "/containers/create", body: map[string]any{"Image": image, "Cmd": []string{"/"}}}, into(&made))
	if err == nil {
		err = p.call(ctx, p.limit, request{method: "HEAD", path: "/containers/" + made.ID + "/archive", query: url.Values{"path": {"/"}}}, nil)
		if rerr := p.removeContainer(ctx, made.ID); err == nil {
			err = rerr
		}
	}
	if err != nil {
		return podmanFault("use image "+image, err)
	}
	return nil
}
