package container

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// config is the canonical form of s: what has no order is sorted, what was left out has
// its default. Equal wishes give equal configs, whatever their spelling.
func config(s score.Container, mark topology.Mark) topology.ContainerConfig {
	c := topology.ContainerConfig{
		Name: s.Name, Image: s.Image, Command: slices.Clone(s.Command),
		Restart: string(cmp.Or(s.Restart, score.RestartAlways)), SpecDigest: Digest(s), Mark: mark,
	}
	c.Env, c.Ports, c.Volumes = sets(s)
	return c
}

func sets(s score.Container) (env, ports, volumes []string) {
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, k+"="+s.Env[k])
	}
	for _, p := range s.Ports {
		ports = append(ports, p.String())
	}
	for _, v := range s.Volumes {
		volumes = append(volumes, v.String())
	}
	slices.Sort(ports)
	slices.Sort(volumes)
	return env, ports, volumes
}

// Digest is the sha256 of the canonical form of what a container is made from. Scores
// that ask for the same container have the same digest; fields that later versions add
// do not change it while they are left out.
func Digest(s score.Container) string {
	env, ports, volumes := sets(s)
	b, err := score.Encode(struct {
		Name    string   `json:"name"`
		Image   string   `json:"image"`
		Command []string `json:"command,omitempty"`
		Env     []string `json:"env,omitempty"`
		Ports   []string `json:"ports,omitempty"`
		Volumes []string `json:"volumes,omitempty"`
		Restart string   `json:"restart"`
	}{s.Name, s.Image, s.Command, env, ports, volumes, string(cmp.Or(s.Restart, score.RestartAlways))})
	if err != nil {
		panic(fmt.Sprintf("container: config of %q is not data: %v", s.Name, err))
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
