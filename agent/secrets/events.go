package secrets

import (
	"context"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/topology"
)

// resource begins the name of a secret as a resource.
const resource = "secret:"

// Events adds secrets to what can be watched: the resource "secret:NAME" may have changed when a file did that secrets
// come from. Credentials of systemd do not change while a service runs.
func (s *Store) Events(device topology.Events) topology.Events { return events{s, device} }

type events struct {
	s      *Store
	device topology.Events
}

func (e events) Watch(ctx context.Context, resources []topology.Resource, changed func(topology.Resource)) error {
	var secrets, rest []topology.Resource
	for _, r := range resources {
		if strings.HasPrefix(string(r), resource) {
			secrets = append(secrets, r)
		} else {
			rest = append(rest, r)
		}
	}
	if len(secrets) == 0 {
		return e.device.Watch(ctx, rest, changed)
	}
	asked := len(rest)
	source := map[topology.Resource]bool{}
	for _, path := range e.s.files {
		r := topology.Resource("file:" + path)
		source[r] = true
		if !slices.Contains(rest, r) {
			rest = append(rest, r)
		}
	}
	return e.device.Watch(ctx, rest, func(r topology.Resource) {
		if source[r] {
			for _, secret := range secrets {
				changed(secret)
			}
			if !slices.Contains(rest[:asked], r) {
				return
			}
		}
		changed(r)
	})
}
