package pi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

// What is remembered of an image is a name on the image itself, which podman images shows:
// keptUnder(REFERENCE):ID on one that was fetched for a reference, and newestName(REFERENCE)
// on what the registry had when it was asked last. A name that is lost, by a crash or by
// hand, makes the image somebody else's, and it stays.
const keepPrefix = "localhost/continuo/"

// keptUnder is the repository of our names for what was fetched for a reference.
func keptUnder(reference string) string {
	sum := sha256.Sum256([]byte(reference))
	return keepPrefix + hex.EncodeToString(sum[:16])
}

func keptName(reference, id string) string { return keptUnder(reference) + ":" + id }
func newestName(reference string) string   { return keptUnder(reference) + ":newest" }

// name gives an image another name, which no other image has then.
func (p *podman) name(ctx context.Context, id, name string) error {
	repository := repositoryOf(name)
	tag := strings.TrimPrefix(strings.TrimPrefix(name, repository), ":")
	query := url.Values{"repo": {repository}, "tag": {tag}}
	if err := p.call(ctx, p.limit, request{method: "POST", path: "/images/" + id + "/tag", query: query}, nil); err != nil {
		return podmanFault("name an image "+name, err)
	}
	return nil
}

// unname takes a name off an image, which goes if it was its last and nothing uses it.
func (p *podman) unname(ctx context.Context, name string) error {
	err := p.call(ctx, removeTimeout, request{method: "DELETE", path: "/images/" + name}, nil)
	if err != nil && !notFound(err) {
		return podmanFault("remove image "+name, err)
	}
	return nil
}

// lookAtImages finds out about the image of a container, and about what could come in its place.
func (c *containers) lookAtImages(ctx context.Context, l *looked) error {
	reference := l.found.Config.Image
	runs, err := c.podman.image(ctx, l.found.Image)
	if err != nil {
		return err
	}
	if runs != nil {
		l.digest = runs.digest(reference)
	}
	for name, out := range map[string]*string{reference: &l.here, newestName(reference): &l.newest} {
		switch im, err := c.podman.image(ctx, name); {
		case err != nil:
			return err
		case im == nil:
		case runs != nil && im.ID == runs.ID:
			*out = l.digest
		default:
			*out = im.digest(reference)
		}
	}
	return nil
}

// An imageSummary is one line of the list of images.
type imageSummary struct {
	ID       string `json:"Id"`
	RepoTags []string
}

// imageList returns every image that has a name or is whole.
func (p *podman) imageList(ctx context.Context) ([]imageSummary, error) {
	var all []imageSummary
	if err := p.call(ctx, p.limit, request{method: "GET", path: "/images/json"}, into(&all)); err != nil {
		return nil, podmanFault("list images", err)
	}
	for i := range all {
		all[i].ID = strings.TrimPrefix(all[i].ID, "sha256:")
	}
	return all, nil
}
