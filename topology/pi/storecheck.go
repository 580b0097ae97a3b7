package pi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

const (
	// checkTimeout bounds the check of podman's storage when an image cannot be used. Podman 5.2 to 5.4
	// reads all contents for it, although it is called quick, and later ones do not.
	checkTimeout = 2 * time.Minute
	// bootCheckTimeout bounds the one after a power cut. Podman makes no container meanwhile, and the start of
	// a container that systemd has begun at boot may take 90 s.
	bootCheckTimeout = time.Minute
)

// A storeCheck is what podman says of its own storage.
type storeCheck struct {
	Errors                     bool
	Layers, Images, Containers map[string][]string // by id, what is wrong with it
}

// look has podman check its storage. It repairs nothing: what is damaged may be in use.
func (p *podman) look(ctx context.Context, limit time.Duration) (found storeCheck, err error) {
	err = p.call(ctx, limit, request{method: "POST", native: true, path: "/system/check", query: url.Values{"quick": {"true"}}}, into(&found))
	return found, err
}

// check has podman look at its own storage before that is blamed, and tells what it found. A podman that is too
// old to check, before 5.2, finds nothing.
func (p *podman) check(ctx context.Context) string {
	found, err := p.look(ctx, checkTimeout)
	switch {
	case err != nil:
		return "podman cannot check its storage: " + err.Error()
	case len(found.Layers)+len(found.Images)+len(found.Containers) > 0:
		return fmt.Sprintf("podman system check names %d layers, %d images and %d containers that are damaged", len(found.Layers), len(found.Images), len(found.Containers))
	case found.Errors:
		return "podman system check finds damage, and does not say where"
	}
	return "podman system check --quick finds nothing"
}

// damagedImages are those that the check after a power cut found, by id, with a name for people. The rest of what it may
// find is litter: layers that nobody has finished, and containers that are made anew when they are started.
type damagedImages struct {
	mu    sync.Mutex
	names map[string]string
}

const maxDamaged = 1000 // images that are remembered

func (d *damagedImages) set(found map[string][]string, all []imageSummary) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names = map[string]string{}
	for id := range found {
		id = strings.TrimPrefix(id, "sha256:")
		if len(d.names) == maxDamaged {
			return
		}
		d.names[id] = clip(id[:min(len(id), 12)])
		for _, im := range all {
			if named := slices.IndexFunc(im.RepoTags, func(n string) bool { return !strings.HasPrefix(n, keepPrefix) }); im.ID == id && named >= 0 {
				d.names[id] = im.RepoTags[named]
			}
		}
	}
}

func (d *damagedImages) has(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, damaged := d.names[id]
	return damaged
}

// mended is told of an image that was removed.
func (d *damagedImages) mended(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.names, id)
}

// list names them, not too many.
func (d *damagedImages) list() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := slices.Sorted(maps.Values(d.names))
	if more := len(names) - 5; more > 0 {
		names = append(names[:5], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// CheckStorage has podman look at all that it stores, which may take a minute, and names the images that are damaged. The
// image of a container that fails is fetched again if it is one of them; one that runs is left alone. A podman that
// cannot check, or is not there, finds nothing.
func (c *containers) CheckStorage(ctx context.Context) (damaged string, err error) {
	if c.available(ctx) != nil {
		return "", nil
	}
	found, err := c.podman.look(ctx, bootCheckTimeout)
	if notFound(err) {
		return "", nil
	}
	if err != nil {
		if topology.FaultOf(err).Code == topology.CodeTimeout {
			// Nobody hears it any more, and it would go on for as long as it takes.
			_ = c.job(ctx, "stop", podmanService, stop, "")
		}
		return "", podmanFault("check the storage of podman", err)
	}
	if len(found.Images) == 0 {
		c.podman.damaged.set(nil, nil)
		return "", nil
	}
	all, err := c.podman.imageList(ctx)
	if err != nil {
		all = nil // their ids name them, too
	}
	c.podman.damaged.set(found.Images, all)
	return c.Damaged(), nil
}

const podmanService = "podman.service"

// Damaged names the images that CheckStorage found, and that are still here.
func (c *containers) Damaged() string { return c.podman.damaged.list() }

// mend is told why a container did not start. If its image, or that of one of its steps, is damaged, that is to blame: it
// is fetched again, and the container started once more.
func (c *containers) mend(ctx context.Context, cfg topology.ContainerConfig, failure error) error {
	f, ok := errors.AsType[*topology.Fault](failure)
	if !ok || f.Code != topology.CodeJobFailed && f.Code != topology.CodeExited && f.Code != topology.CodeStartLimit {
		return failure
	}
	images := []string{cfg.Image}
	for _, step := range cfg.Init {
		images = append(images, step.Image)
	}
	mended := false
	for _, image := range images {
		im, err := c.podman.image(ctx, image)
		if err != nil || im == nil || !c.podman.damaged.has(im.ID) {
			continue
		}
		if _, err := cfg.Request(image); err != nil { // before anything is cleared away
			return topology.Faultf(topology.CodeImageStore, "%s; since a power cut %v", f.Text, err)
		}
		if err := c.clear(ctx, cfg.Name); err != nil {
			return err
		}
		if err := c.podman.renew(ctx, cfg, image); err != nil {
			return topology.Faultf(topology.FaultOf(err).Code, "%v; before that: %s", err, f.Text)
		}
		mended = true
	}
	if !mended {
		return failure
	}
	return c.launch(ctx, "start", unitOf(cfg.Name), restart, true, "")
}

// clear stops a container of ours and removes it: no image goes while one is made from it.
func (c *containers) clear(ctx context.Context, name string) error {
	if err := c.job(ctx, "stop", unitOf(name), stop, ""); err != nil {
		return err
	}
	left, err := c.podman.inspect(ctx, name)
	if err != nil || left == nil || left.Config.Labels[ownerLabel] == "" {
		return err
	}
	return c.podman.removeContainer(ctx, left.ID)
}

// CheckStorage looks at all that containers are made from, and names what is damaged.
func (d *Device) CheckStorage(ctx context.Context) (damaged string, err error) {
	return d.containers.CheckStorage(ctx)
}

// Damaged names what is left of what CheckStorage found.
func (d *Device) Damaged() string { return d.containers.Damaged() }
