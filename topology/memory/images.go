package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/topology"
)

// An Image is what containers are made from.
type Image struct {
	Digest  string  // sha256:…; empty: one made from the reference
	Program Program // what a container of it does
	Health  string  // what a container of it says of itself; empty: it has no health check
	Init    Step    // what an init container of it does
	// Username and Password without which the registry does not hand it out.
	Username, Password string
}

func imageResource(ref string) topology.Resource { return topology.Resource("image:" + ref) }

func (c containers) Image(ctx context.Context, image string) (string, error) {
	if err := c.d.control.enter(ctx, Call{OpImage, imageResource(image), false}); err != nil {
		return "", err
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if !c.d.hasImage(image) {
		return "", nil
	}
	return c.d.images[image].Digest, nil
}

func (c containers) EnsureImage(ctx context.Context, r topology.ImageRequest) (string, error) {
	ask := r.Ask && !strings.Contains(r.Image, "@")
	c.d.mu.Lock()
	here := c.d.hasImage(r.Image)
	c.d.mu.Unlock()
	if err := c.d.control.enter(ctx, Call{OpEnsureImage, imageResource(r.Image), !here || ask}); err != nil {
		return "", err
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	now, here := c.d.images[r.Image]
	if here && !ask {
		return now.Digest, nil
	}
	got, err := c.d.fetch(r)
	switch {
	case err != nil && here:
		return now.Digest, topology.Faultf(topology.CodeImageCheck, "cannot check image %s: %v; %s stays in use", r.Image, err, now.Digest)
	case err != nil:
		return "", topology.Faultf(topology.CodeImage, "cannot fetch %s: %v", r.Image, err)
	}
	if !here {
		got = c.d.store(r.Image, got)
	}
	if !here || got.Digest != now.Digest {
		c.d.fetched[r.Image+" "+got.Digest] = true
	}
	if ask {
		c.d.newest[r.Image] = got
	}
	return got.Digest, nil
}

// DamageImage damages an image that is here, as a power cut does. It is found out when a container is to be made of it.
func (d *Device) DamageImage(image string) {
	d.hands(func() { d.damaged[image] = true })
}

// renew fetches again what a container is made from and is damaged.
func (d *Device) renew(cfg topology.ContainerConfig) error {
	for _, image := range cfg.Images() {
		if cfg.Stopped || !d.damaged[image] {
			continue
		}
		r, err := cfg.Request(image)
		if err != nil {
			return err
		}
		got, err := d.fetch(r)
		if err != nil {
			return topology.Faultf(topology.CodeImageStore, "the image store is damaged, and %s cannot be fetched again: %v", image, err)
		}
		d.store(image, got)
		delete(d.damaged, image)
	}
	return nil
}

// fetch asks the registry.
func (d *Device) fetch(r topology.ImageRequest) (Image, error) {
	im, known := d.registry[r.Image]
	switch {
	case d.offline:
		return Image{}, topology.Faultf(topology.CodeImage, "the registry does not answer")
	case known && im == nil:
		return Image{}, topology.Faultf(topology.CodeImage, "the registry does not have it")
	case !known:
		im = &Image{}
	case im.Username != r.Username || im.Password != string(r.Password):
		return Image{}, topology.Faultf(topology.CodeImage, "the registry wants another user name and password")
	}
	out := *im
	out.Digest = cmp.Or(out.Digest, "sha256:"+sum(r.Image))
	return out, nil
}

func (c containers) UseNewest(ctx context.Context, image string) error {
	if err := c.d.control.call(ctx, OpUseNewest, imageResource(image)); err != nil {
		return err
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	newest, asked := c.d.newest[image]
	now, here := c.d.images[image]
	if !asked || now.Digest == newest.Digest {
		return nil
	}
	if here && c.d.fetched[image+" "+now.Digest] {
		c.d.replaced = append(c.d.replaced, now)
	}
	c.d.replaced = slices.DeleteFunc(c.d.replaced, func(im Image) bool { return im.Digest == newest.Digest })
	c.d.images[image] = newest
	return nil
}

func (c containers) CollectImages(ctx context.Context, keep []string) ([]string, error) {
	if err := c.d.control.call(ctx, OpCollectImages, ""); err != nil {
		return nil, err
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	d := c.d
	used := map[string]bool{}
	for _, k := range d.containers {
		if k.state != "absent" {
			used[k.digest] = true
		}
	}
	var gone []string
	d.replaced = slices.DeleteFunc(d.replaced, func(im Image) bool {
		if !used[im.Digest] {
			gone = append(gone, im.Digest)
		}
		return !used[im.Digest]
	})
	for _, ref := range slices.Sorted(maps.Keys(d.images)) {
		if im := d.images[ref]; !slices.Contains(keep, ref) && !used[im.Digest] && d.fetched[ref+" "+im.Digest] {
			delete(d.images, ref)
			delete(d.newest, ref)
			gone = append(gone, ref)
		}
	}
	return gone, nil
}

func (d *Device) hasImage(ref string) bool { _, ok := d.images[ref]; return ok }

// store keeps an image on the device.
func (d *Device) store(ref string, im Image) Image {
	if _, digest, ok := strings.Cut(ref, "@"); ok {
		im.Digest = digest
	}
	im.Digest = cmp.Or(im.Digest, "sha256:"+sum(ref))
	d.images[ref] = im
	return im
}

// The methods below act on images as somebody else would.

// Publish puts an image into the registry. The registry has a plain image for every
// other reference, until Unpublish or Offline.
func (d *Device) Publish(ref string, im Image) { d.hands(func() { d.registry[ref] = &im }) }

// Unpublish takes an image out of the registry.
func (d *Device) Unpublish(ref string) { d.hands(func() { d.registry[ref] = nil }) }

// Offline makes the registry unreachable, or reachable again.
func (d *Device) Offline(on bool) { d.hands(func() { d.offline = on }) }

// LoadImage puts an image on the device.
func (d *Device) LoadImage(ref string, im Image) { d.hands(func() { d.store(ref, im) }) }

// RemoveImage takes an image off the device.
func (d *Device) RemoveImage(ref string) { d.hands(func() { delete(d.images, ref) }) }

// Digests lists the digests of all images on the device, sorted, each once.
func (d *Device) Digests() (out []string) {
	d.hands(func() {
		for _, im := range slices.Concat(slices.Collect(maps.Values(d.images)), slices.Collect(maps.Values(d.newest)), d.replaced) {
			out = append(out, im.Digest)
		}
	})
	slices.Sort(out)
	return slices.Compact(out)
}
