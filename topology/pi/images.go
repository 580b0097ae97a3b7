package pi

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// pullTimeout bounds one pull; slow links and large images are ordinary.
const pullTimeout = 2 * time.Hour

// EnsureImage fetches an image that is not here.
func (c *containers) EnsureImage(ctx context.Context, image string) (string, error) {
	if err := c.available(ctx); err != nil {
		return "", err
	}
	if digest, err := c.podman.digest(ctx, image); err != nil || digest != "" {
		return digest, err
	}
	return c.podman.pull(ctx, image)
}

// digest returns that of an image, or "" if it is not here: the digest that the registry
// knows, or the id of an image that came from none.
func (p *podman) digest(ctx context.Context, image string) (string, error) {
	var digest string
	err := p.call(ctx, p.limit, func(ctx context.Context, api *client.Client) error {
		r, err := api.ImageInspect(ctx, image)
		if err != nil {
			return err
		}
		digest = r.ID
		if !strings.HasPrefix(digest, "sha256:") {
			digest = "sha256:" + digest
		}
		repository := repositoryOf(image)
		for i, d := range r.RepoDigests {
			repo, sum, ok := strings.Cut(d, "@")
			// An image that was asked for by its id has a digest of whatever repository.
			if ok && (repo == repository || repository == "" && i == 0) && !strings.HasPrefix(repo, "localhost/") {
				digest = sum
				break
			}
		}
		return nil
	})
	if errdefs.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", podmanFault("inspect image "+image, err)
	}
	return digest, nil
}

// repositoryOf returns an image reference without tag and digest; "" for an id.
func repositoryOf(image string) string {
	if strings.HasPrefix(image, "sha256:") {
		return ""
	}
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		image = image[:colon]
	}
	return image
}

// pull fetches an image and flushes the storage: a power cut just afterwards would leave
// an image that is listed and cannot run.
func (p *podman) pull(ctx context.Context, image string) (string, error) {
	err := p.call(ctx, pullTimeout, func(ctx context.Context, api *client.Client) error {
		progress, err := api.ImagePull(ctx, image, client.ImagePullOptions{})
		if err != nil {
			return err
		}
		defer progress.Close()
		return progress.Wait(ctx)
	})
	if err != nil {
		f := podmanFault("fetch "+image, err).(*topology.Fault)
		if f.Code == topology.CodeUnknown || errdefs.IsNotFound(err) {
			f.Code = topology.CodeImage
		}
		return "", f
	}
	if err := p.flush(ctx); err != nil {
		return "", topology.Faultf(topology.FaultOf(err).Code, "cannot store %s durably: %v", image, err)
	}
	digest, err := p.digest(ctx, image)
	if err == nil && digest == "" {
		err = topology.Faultf(topology.CodeImage, "%s was fetched and is not here", image)
	}
	return digest, err
}

// flush writes podman's storage to the disk.
func (p *podman) flush(ctx context.Context) error {
	var dir string
	err := p.call(ctx, p.limit, func(ctx context.Context, api *client.Client) error {
		r, err := api.Info(ctx, client.InfoOptions{})
		dir = r.Info.DockerRootDir
		return err
	})
	if err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.Syncfs(int(d.Fd()))
}

// renew removes an image that is damaged and fetches it again: once.
func (p *podman) renew(ctx context.Context, image string) error {
	err := p.call(ctx, removeTimeout, func(ctx context.Context, api *client.Client) error {
		_, err := api.ImageRemove(ctx, image, client.ImageRemoveOptions{Force: true, PruneChildren: true})
		return err
	})
	if err != nil && !errdefs.IsNotFound(err) {
		return topology.Faultf(topology.CodeImageStore, "the image store is damaged, and %s cannot be removed from it: %v; podman system check --repair may help", image, err)
	}
	if _, err := p.pull(ctx, image); err != nil {
		return topology.Faultf(topology.CodeImageStore, "the image store is damaged, and %s cannot be fetched again: %v", image, err)
	}
	return nil
}
