package config

import (
	"regexp"
	"slices"

	"github.com/continuo-fleet/continuo/score"
)

// Registries is how this device asks the registries of images.
type Registries struct {
	// Plaintext are the registries, each HOST or HOST:PORT as in the names of images, that are asked without encryption.
	// Name them only on a network that is protected by other means: who can change what passes there chooses what this
	// device runs. All others are asked with encryption, whatever the configuration of the container runtime says.
	Plaintext []string `json:"plaintext,omitempty"`
}

var registryRE = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$`)

func (c Registries) check(r *score.Report) {
	for i, name := range c.Plaintext {
		switch {
		case !registryRE.MatchString(name):
			r.At("plaintext", i).Errorf("%q is not the host of a registry, such as 192.0.2.7:5000: it has no scheme and no path", name)
		case slices.Index(c.Plaintext, name) != i:
			r.At("plaintext", i).Errorf("the registry is listed twice")
		}
	}
}
