package container

import (
	"context"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// ensure has the images of s on the device. With ask the registry of its own image is asked
// even if that is here. Of images that are here no secret is needed.
func ensure(ctx context.Context, w writer, s score.Container, ask bool) error {
	for _, image := range score.TouchedBy(s).Images {
		r := topology.ImageRequest{Image: image, Ask: ask && image == s.Image}
		digest, err := w.Image(ctx, image)
		if err != nil {
			return err
		}
		if digest != "" && !r.Ask {
			continue
		}
		if s.Pull == score.PullNever {
			return topology.Faultf(topology.CodeImage, "the image %s is not on this device, and pull is never: bring it by other means, such as podman load", image)
		}
		if s.Registry != nil && score.SameRegistry(image, s.Image) {
			r.Username = s.Registry.Username
			if r.Password, err = w.Secret(ctx, s.Registry.Password.Secret); err != nil {
				return topology.Faultf(topology.FaultOf(err).Code, "cannot ask the registry of %s: %v", image, err)
			}
		}
		if _, err := w.EnsureImage(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// login is how the registry of s is asked again for an image that turns out to be damaged. Without its secret, as everybody
// may: what is whole needs none.
func login(ctx context.Context, r topology.Secrets, s score.Container) *topology.Login {
	if s.Registry == nil {
		return nil
	}
	password, err := r.Secret(ctx, s.Registry.Password.Secret)
	if err != nil {
		return nil
	}
	return &topology.Login{Username: s.Registry.Username, Password: password}
}

// prepare has here what s is made from. The registry of a tag was asked before, if it is to
// be followed; now, that the change is allowed, the tag stands for what it had.
func prepare(ctx context.Context, w writer, s score.Container, t interpret.Task) error {
	if err := ensure(ctx, w, s, false); err != nil {
		return err
	}
	if s.Follows() && (t.Has(fieldPresent) || t.Has(fieldSpec) || t.Has(fieldDigest)) {
		return w.UseNewest(ctx, s.Image)
	}
	return nil
}

// Prefetch fetches the images. Unless the tag is to be followed, one that is here is not asked
// for again: what runs is named by its digest in the status, and a digest in the score pins it.
func (interpreter) Prefetch(ctx context.Context, w writer, s score.Container) error {
	if s.State == score.Stopped {
		return nil
	}
	return ensure(ctx, w, s, s.Follows())
}

// Stocked reports an image that is not here.
func (interpreter) Stocked(ctx context.Context, r reader, s score.Container) error {
	if s.State == score.Stopped {
		return nil
	}
	for _, image := range score.TouchedBy(s).Images {
		digest, err := r.Image(ctx, image)
		if err == nil && digest == "" {
			err = topology.Faultf(topology.CodeImage, "the image %s is not on this device", image)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Follows reports whether s follows a tag.
func (interpreter) Follows(s score.Container) bool { return s.Follows() && s.State != score.Stopped }
