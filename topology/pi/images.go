package pi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// pullTimeout bounds one pull; slow links and large images are ordinary.
const pullTimeout = 2 * time.Hour

// Image returns the digest of an image that is here.
func (c *containers) Image(ctx context.Context, image string) (string, error) {
	if err := c.available(ctx); err != nil {
		return "", err
	}
	return c.podman.digest(ctx, image, image)
}

// EnsureImage fetches an image that is not here.
func (c *containers) EnsureImage(ctx context.Context, image string) (string, error) {
	if digest, err := c.Image(ctx, image); err != nil || digest != "" {
		return digest, err
	}
	return c.podman.pull(ctx, image)
}

// digest returns that of an image, or "" if it is not here: the digest that the registry
// knows, or the id of an image that came from none. The image is a reference or an id;
// reference is what was asked for, which tells one digest from another if the same image
// was fetched in several wrappings.
func (p *podman) digest(ctx context.Context, image, reference string) (string, error) {
	var found struct {
		ID          string `json:"Id"`
		RepoDigests []string
	}
	err := p.call(ctx, p.limit, request{method: "GET", path: "/images/" + image + "/json"}, into(&found))
	if notFound(err) {
		return "", nil
	}
	if err != nil {
		return "", podmanFault("inspect image "+image, err)
	}
	if d := registryDigest(found.RepoDigests, reference); d != "" {
		return d, nil
	}
	return "sha256:" + strings.TrimPrefix(found.ID, "sha256:"), nil
}

// registryDigest picks the digest of a reference: the one that it names, or the first of
// its repository. What was built here has none.
func registryDigest(known []string, reference string) string {
	first, repository := "", repositoryOf(reference)
	_, named, _ := strings.Cut(reference, "@")
	for _, d := range known {
		repo, digest, _ := strings.Cut(d, "@")
		if repo != repository || strings.HasPrefix(repo, "localhost/") {
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

// pull fetches an image and flushes the storage: a power cut just afterwards would leave
// an image that is listed and cannot run.
func (p *podman) pull(ctx context.Context, image string) (string, error) {
	// Of a tag and a digest the digest counts; podman takes one of them.
	from := repositoryOf(image)
	tag := strings.TrimPrefix(strings.TrimPrefix(image, from), ":")
	if _, digest, ok := strings.Cut(tag, "@"); ok {
		tag = digest
	}
	query := url.Values{"fromImage": {from}, "tag": {cmp.Or(tag, "latest")}}
	err := p.call(ctx, pullTimeout, request{method: "POST", path: "/images/create", query: query}, progress)
	if err != nil {
		f := podmanFault("fetch "+image, err).(*topology.Fault)
		if f.Code == topology.CodeUnknown || notFound(err) {
			f.Code = topology.CodeImage
		}
		return "", f
	}
	if err := p.flush(ctx); err != nil {
		return "", topology.Faultf(topology.FaultOf(err).Code, "cannot store %s durably: %v", image, err)
	}
	digest, err := p.digest(ctx, image, image)
	if err == nil && digest == "" {
		err = topology.Faultf(topology.CodeImage, "%s was fetched and is not here", image)
	}
	return digest, err
}

// progress reads what podman tells about a pull to its end: a failure is told there, too.
func progress(r io.Reader) error {
	for d := json.NewDecoder(r); ; {
		var said struct {
			Error       string
			ErrorDetail struct{ Message string }
		}
		if err := d.Decode(&said); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("podman's answer makes no sense: %w", err)
		}
		if text := cmp.Or(said.ErrorDetail.Message, said.Error); text != "" {
			return errors.New(text)
		}
	}
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

// renew removes an image that is damaged and fetches it again: once.
func (p *podman) renew(ctx context.Context, image string) error {
	err := p.call(ctx, removeTimeout, request{method: "DELETE", path: "/images/" + image, query: url.Values{"force": {"1"}}}, nil)
	if err != nil && !notFound(err) {
		return topology.Faultf(topology.CodeImageStore, "the image store is damaged, and %s cannot be removed from it: %v; podman system check --repair may help", image, err)
	}
	if _, err := p.pull(ctx, image); err != nil {
		return topology.Faultf(topology.CodeImageStore, "the image store is damaged, and %s cannot be fetched again: %v", image, err)
	}
	return nil
}
