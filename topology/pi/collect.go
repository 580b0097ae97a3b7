package pi

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/topology"
)

// CollectImages removes images that were fetched for nothing that is left.
func (c *containers) CollectImages(ctx context.Context, keep []string) ([]string, error) {
	if err := c.available(ctx); err != nil {
		return nil, err
	}
	all, err := c.podman.imageList(ctx)
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, reference := range keep {
		wanted[reference], wanted[newestName(reference)] = true, true
	}
	var gone []string
	for _, im := range all {
		if !im.ours() || slices.ContainsFunc(im.RepoTags, func(name string) bool { return wanted[name] }) {
			continue
		}
		// Asked for each of them, last of all: who has just begun to use one keeps it.
		if users, err := c.podman.users(ctx, im.ID); err != nil {
			return gone, err
		} else if len(users) > 0 {
			continue
		}
		// Its real names go first: as long as one of ours is left it is known whose it is.
		kept := func(name string) bool { return strings.HasPrefix(name, keepPrefix) }
		names := slices.DeleteFunc(slices.Clone(im.RepoTags), kept)
		for _, name := range slices.Concat(names, slices.DeleteFunc(im.RepoTags, func(name string) bool { return !kept(name) })) {
			if err := c.podman.unname(ctx, name); err != nil {
				return gone, err
			}
		}
		gone = append(gone, cmp.Or(strings.Join(names, ", "), "sha256:"+im.ID))
	}
	return gone, nil
}

// ours reports whether an image was fetched by us, under each name that it has.
func (im imageSummary) ours() bool {
	fetched := false
	for _, name := range im.RepoTags {
		switch {
		case strings.HasPrefix(name, keepPrefix):
			fetched = fetched || strings.HasSuffix(name, ":"+im.ID)
		case !slices.Contains(im.RepoTags, keptName(name, im.ID)):
			return false
		}
	}
	return fetched
}

// users names the containers that are made from an image, whoever made them, those of
// builders as well.
func (p *podman) users(ctx context.Context, id string) ([]string, error) {
	var all []struct {
		ID, ImageID string
		Names       []string
	}
	err := p.call(ctx, p.limit, request{method: "GET", native: true, path: "/containers/json", query: url.Values{"all": {"true"}, "external": {"true"}}}, into(&all))
	if err != nil {
		return nil, podmanFault("list containers", err)
	}
	var out []string
	for _, c := range all {
		if strings.TrimPrefix(c.ImageID, "sha256:") == id {
			out = append(out, strings.Join(append(c.Names, c.ID[:min(12, len(c.ID))]), " "))
		}
	}
	return out, nil
}

// renew removes an image of a container that is damaged and fetches it again: once. Another container that
// was made from it is not touched for that.
func (p *podman) renew(ctx context.Context, cfg topology.ContainerConfig, reference string) error {
	r, err := cfg.Request(reference)
	if err != nil {
		return err
	}
	im, err := p.image(ctx, reference)
	if err != nil {
		return err
	}
	if im != nil { // by its id: under all its names
		users, err := p.users(ctx, im.ID)
		if err != nil {
			return err
		}
		if len(users) > 0 {
			return topology.Faultf(topology.CodeImageStore, "the image store is damaged, and %s cannot be removed from it, because other containers are made from it: %s; stop them, or run podman system check --repair",
				reference, strings.Join(users, ", "))
		}
		err = p.call(ctx, removeTimeout, request{method: "DELETE", path: "/images/" + im.ID, query: url.Values{"force": {"1"}}}, nil)
		if err != nil && !notFound(err) {
			return topology.Faultf(topology.CodeImageStore, "the image store is damaged, and %s cannot be removed from it: %v; podman system check --repair may help", reference, err)
		}
		p.damaged.mended(im.ID)
	}
	if _, err := p.fetch(ctx, r, nil); err != nil {
		return topology.Faultf(topology.CodeImageStore, "the image store is damaged, and %s cannot be fetched again: %v", reference, err)
	}
	return nil
}
