package score

import (
	"slices"
	"strings"
)

// Pull says when the registry is asked for an image.
type Pull string

// Pull policies.
const (
	PullMissing Pull = "missing"
	PullAlways  Pull = "always"
	PullNever   Pull = "never"
)

// Registry is how the registry of an image is asked, if it wants to know who asks.
type Registry struct {
	// Username at the registry, or what the registry wants in its place, such as the name of a token.
	Username string `json:"username" jsonschema:"maxLength=255,example=pi-fleet"`
	// Password or token, by the name of a secret of the device.
	Password SecretRef `json:"password"`
}

func (l Registry) check(r *Report) {
	if l.Username == "" || len(l.Username) > 255 || strings.ContainsAny(l.Username, ":\x00\n") {
		r.At("username").Errorf("username %q must be 1 to 255 characters without ':', NUL and line breaks", l.Username)
	}
	l.Password.check(r.At("password"))
}

// SameRegistry reports whether two images come from one registry.
func SameRegistry(a, b string) bool {
	x, _, _ := strings.Cut(a, "/")
	y, _, _ := strings.Cut(b, "/")
	return x == y
}

// Follows reports whether the image of c is asked for again while nothing about c is new:
// a tag that may stand for another image tomorrow.
func (c Container) Follows() bool {
	return c.Pull == PullAlways && !strings.Contains(c.Image, "@")
}

func (c Container) checkPull(r *Report) {
	policies := []string{string(PullMissing), string(PullAlways), string(PullNever)}
	switch {
	case c.Pull != "" && !slices.Contains(policies, string(c.Pull)):
		r.At("pull").Errorf("unknown pull %q%s", c.Pull, didYouMean(string(c.Pull), policies))
	case c.Pull == PullAlways && strings.HasPrefix(c.Image, "localhost/"):
		r.At("pull").Errorf("image %q comes from no registry, which could be asked always", c.Image)
	case c.Pull == PullAlways && strings.Contains(c.Image, "@"):
		r.At("pull").Warnf("image %q is named by its digest and never becomes another: its registry is not asked again", c.Image)
	}
	if c.Registry != nil {
		c.Registry.check(r.At("registry"))
		if c.Pull == PullNever {
			r.At("registry").Errorf("the registry is never asked: pull is never")
		}
	}
}
