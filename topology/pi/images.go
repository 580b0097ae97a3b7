package pi

import (
	"context"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// Image returns the digest of an image that is here.
func (c *containers) Image(ctx context.Context, image string) (string, error) {
	if err := c.available(ctx); err != nil {
		return "", err
	}
	return c.podman.digest(ctx, image, image)
}

// EnsureImage fetches an image that is not here, or looks whether there is a newer one.
func (c *containers) EnsureImage(ctx context.Context, r topology.ImageRequest) (string, error) {
	if err := c.available(ctx); err != nil {
		return "", err
	}
	end, err := c.podman.pulling.enter(ctx, r.Image) // two that want the same fetch it once
	if err != nil {
		return "", topology.FaultOf(err)
	}
	defer end()
	here, err := c.podman.image(ctx, r.Image)
	if err != nil {
		return "", err
	}
	if here != nil && (!r.Ask || strings.Contains(r.Image, "@")) {
		return here.digest(r.Image), nil
	}
	got, err := c.podman.fetch(ctx, r, here)
	switch {
	case err != nil && here != nil:
		return here.digest(r.Image), topology.Faultf(topology.CodeImageCheck, "cannot check image %s: %v; %s stays in use", r.Image, err, here.digest(r.Image))
	case err != nil:
		return "", err
	case r.Ask:
		c.forgetLooks()
	}
	return got.digest(r.Image), nil
}

// UseNewest gives an image the name under which the registry had it.
func (c *containers) UseNewest(ctx context.Context, image string) error {
	if err := c.available(ctx); err != nil {
		return err
	}
	newest, err := c.podman.image(ctx, newestName(image))
	if err != nil || newest == nil {
		return err
	}
	here, err := c.podman.image(ctx, image)
	if err != nil || here != nil && here.ID == newest.ID {
		return err
	}
	if err := c.podman.name(ctx, newest.ID, image); err != nil {
		return err
	}
	c.forgetLooks()
	return c.podman.flush(ctx)
}

// forgetLooks makes the next look at any container ask podman.
func (c *containers) forgetLooks() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.known)
}

// An image as podman tells of it.
type image struct {
	ID          string `json:"Id"`
	RepoDigests []string
}

// image returns an image by a reference or an id, or nil.
func (p *podman) image(ctx context.Context, reference string) (*image, error) {
	found := new(image)
	err := p.call(ctx, p.limit, request{method: "GET", path: "/images/" + reference + "/json"}, into(found))
	if notFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, podmanFault("inspect image "+reference, err)
	}
	found.ID = strings.TrimPrefix(found.ID, "sha256:")
	return found, nil
}

// digest returns that of an image, or "" if it is not here. The image is a reference or an
// id; reference is what was asked for, which tells one digest from another if the same image
// was fetched in several wrappings.
func (p *podman) digest(ctx context.Context, image, reference string) (string, error) {
	found, err := p.image(ctx, image)
	if err != nil || found == nil {
		return "", err
	}
	return found.digest(reference), nil
}

// digest is the one that the registry knows, or the id of an image that came from none.
func (im *image) digest(reference string) string {
	if d := registryDigest(im.RepoDigests, reference); d != "" {
		return d
	}
	return "sha256:" + im.ID
}

// registryDigest picks the digest of a reference: the one that it names, or the first of
// its repository, or of the name that we keep it under. What was built here has none.
func registryDigest(known []string, reference string) string {
	first, repository := "", repositoryOf(reference)
	_, named, _ := strings.Cut(reference, "@")
	for _, d := range known {
		repo, digest, _ := strings.Cut(d, "@")
		if repo != keptUnder(reference) && (repo != repository || strings.HasPrefix(repo, "localhost/")) {
			continue
		}
		if digest == named {
			return digest
		}
		if first == "" {
			first = digest
		}
	}
	return first
}

// repositoryOf returns an image reference without tag and digest.
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		image = image[:colon]
	}
	return image
}

// flush writes podman's storage to the disk.
func (p *podman) flush(ctx context.Context) error {
	var info struct{ DockerRootDir string }
	err := p.call(ctx, p.limit, request{method: "GET", path: "/info"}, into(&info))
	if err != nil {
		return err
	}
	d, err := os.Open(info.DockerRootDir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.Syncfs(int(d.Fd()))
}
