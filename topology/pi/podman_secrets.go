package pi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"

	"github.com/continuo-fleet/continuo/topology"
)

// containerLabel says, on a secret of podman's, which container it was made for.
const containerLabel = "continuo.container"

// secretID is the name under which podman has a secret of a container. It tells the container
// and the secret to people, and with another value it is another name: podman copies a value
// when it makes a container, and a value that changed in place would reach nobody. Podman 4
// takes 64 characters.
func secretID(container string, s topology.ContainerSecret) string {
	sum := sha256.Sum256([]byte(container + "\x00" + s.Name + "\x00" + s.Fingerprint))
	return container[:min(24, len(container))] + "-" + s.Name[:min(22, len(s.Name))] + "-" + hex.EncodeToString(sum[:8])
}

// maxSecret is what podman takes.
const maxSecret = 512000 - 1

// maxVariable is what the kernel takes of one variable, with its name, the sign between them and the byte behind it.
const maxVariable = 128<<10 - 2

// A keptSecret is a secret that podman has.
type keptSecret struct {
	ID   string
	Spec struct {
		Name   string
		Labels map[string]string
	}
}

func (p *podman) secrets(ctx context.Context) (all []keptSecret, err error) {
	err = p.call(ctx, p.limit, request{method: "GET", path: "/secrets"}, into(&all))
	if err != nil {
		return nil, podmanFault("list secrets", err)
	}
	return all, nil
}

// giveSecrets has podman keep the secrets of a container, before anything refers to them.
func (c *containers) giveSecrets(ctx context.Context, cfg topology.ContainerConfig) error {
	wanted := cfg.AllSecrets()
	if cfg.Stopped {
		wanted = slices.DeleteFunc(wanted, func(s topology.ContainerSecret) bool { return len(s.Value) == 0 })
	}
	if len(wanted) == 0 {
		return nil
	}
	for _, s := range wanted {
		if len(s.Value) == 0 || len(s.Value) > maxSecret {
			return topology.Faultf(topology.CodeSecret, "the secret %s has %d bytes, and a container takes 1 to %d", s.Name, len(s.Value), maxSecret)
		}
		if s.Env != "" && (bytes.IndexByte(s.Value, 0) >= 0 || len(s.Value) > maxVariable-len(s.Env)) {
			return topology.Faultf(topology.CodeSecret, "the secret %s cannot be the value of a variable: it has a NUL byte, or more than %d bytes; give it as a file, under secrets", s.Name, maxVariable)
		}
	}
	all, err := c.podman.secrets(ctx)
	if err != nil {
		return err
	}
	kept := map[string]keptSecret{}
	for _, s := range all {
		kept[s.Spec.Name] = s
	}
	for _, s := range wanted {
		id := secretID(cfg.Name, s)
		if old, is := kept[id]; is {
			if old.Spec.Labels[containerLabel] != cfg.Name {
				return topology.Faultf(topology.CodeForeign, "podman has a secret %s that somebody else made; podman secret rm %s removes it", id, id)
			}
			continue
		}
		body := struct {
			Name   string
			Data   []byte // as base64
			Labels map[string]string
		}{id, s.Value, map[string]string{ownerLabel: string(cfg.Mark), containerLabel: cfg.Name}}
		err := c.podman.call(ctx, c.podman.limit, request{method: "POST", path: "/secrets/create", body: body}, nil)
		if err != nil {
			return podmanFault("hand the secret "+s.Name+" to podman", err)
		}
		var made keptSecret
		made.Spec.Labels = body.Labels
		kept[id] = made
	}
	return nil
}

// dropSecrets removes what podman keeps for a container and its config does not name.
func (c *containers) dropSecrets(ctx context.Context, container string, cfg topology.ContainerConfig) error {
	all, err := c.podman.secrets(ctx)
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, s := range cfg.AllSecrets() {
		used[secretID(container, s)] = true
	}
	for _, s := range all {
		if s.Spec.Labels[containerLabel] != container || s.Spec.Labels[ownerLabel] == "" || used[s.Spec.Name] {
			continue
		}
		err := c.podman.call(ctx, c.podman.limit, request{method: "DELETE", path: "/secrets/" + url.PathEscape(s.Spec.Name)}, nil)
		if err != nil && !notFound(err) {
			return podmanFault("remove the secret "+s.Spec.Name, err)
		}
	}
	return nil
}
