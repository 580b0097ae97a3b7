package container

import (
	"context"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// secretsOf returns the secrets of a topology. One that keeps none can run containers that need none.
func secretsOf(t any) topology.Secrets {
	if h, ok := t.(topology.HasSecrets); ok {
		return h.Secrets()
	}
	return topology.NoSecrets{}
}

// secrets are those that a score names, by their names.
type secrets map[string]value

type value struct {
	fingerprint string
	bytes       topology.SecretValue // empty where it is only looked at
}

// as fills in what is known of the value of s.
func (have secrets) as(s topology.ContainerSecret) topology.ContainerSecret {
	v := have[s.Name]
	s.Fingerprint, s.Value = v.fingerprint, v.bytes
	return s
}

// within names the secrets that are in the container, which that of the registry is not: it is
// asked for when an image is to be fetched.
func within(s score.Container) []string {
	s.Registry = nil
	return s.SecretNames()
}

// read asks the device for the secrets of s. Their values are kept only to be used at once. A
// container that is to be stopped needs none: one that is not here is left out of it.
func read(ctx context.Context, r topology.Secrets, s score.Container, use bool) (secrets, error) {
	have := secrets{}
	for _, name := range within(s) {
		b, err := r.Secret(ctx, name)
		if err != nil && s.State == score.Stopped && topology.FaultOf(err).Code == topology.CodeSecret {
			continue
		}
		if err != nil {
			return nil, err
		}
		v := value{fingerprint: r.Fingerprint(b)}
		if use {
			v.bytes = b
		}
		have[name] = v
	}
	return have, nil
}
