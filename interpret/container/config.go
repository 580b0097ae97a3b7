package container

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// config is the canonical form of s: what has no order is sorted, what was left out and is
// not left to the image or the device has its default. Equal wishes give equal configs,
// whatever their spelling.
func config(s score.Container, have secrets, mark topology.Mark) topology.ContainerConfig {
	c := topology.ContainerConfig{
		Name: s.Name, Image: s.Image, Stopped: s.State == score.Stopped, Restart: string(cmp.Or(s.Restart, score.RestartAlways)),
		Entrypoint: slices.Clone(s.Entrypoint), Command: slices.Clone(s.Command),
		User: s.User, WorkingDir: s.WorkingDir, Hostname: s.Hostname, ReadOnly: s.ReadOnly,
		Volumes: texts(s.Volumes), Devices: texts(s.Devices), Ports: texts(s.Ports), Labels: pairs(s.Labels),
		StopSignal: string(s.StopSignal), StopTimeout: time.Duration(s.StopTimeout), ReloadSignal: string(s.ReloadSignal), Mark: mark,
	}
	if s.Network != "bridge" {
		c.Network = s.Network
	}
	if len(s.ReloadOn) > 0 {
		c.ReloadSignal = cmp.Or(c.ReloadSignal, "HUP")
	}
	c.Env, c.Secrets = environment(s.Env, have)
	for _, f := range s.Secrets {
		c.Secrets = append(c.Secrets, have.as(topology.ContainerSecret{
			Name: f.Secret, Target: f.Target, Mode: uint32(cmp.Or(f.Mode, score.DefaultSecretMode)), UID: f.UID, GID: f.GID,
		}))
	}
	slices.SortFunc(c.Secrets, inOrder)
	for _, t := range s.Tmpfs {
		c.Tmpfs = append(c.Tmpfs, topology.ContainerTmpfs{Target: t.Target, Size: uint64(t.Size)})
	}
	slices.SortFunc(c.Tmpfs, func(a, b topology.ContainerTmpfs) int { return strings.Compare(a.Target, b.Target) })
	if k := s.Capabilities; k != nil {
		c.CapAdd, c.CapDrop = slices.Sorted(slices.Values(k.Add)), slices.Sorted(slices.Values(k.Drop))
	}
	if l := s.Limits; l != nil {
		c.Memory, c.CPU, c.PIDs = uint64(l.Memory), uint32(l.CPU), l.PIDs
	}
	if h := s.HealthCheck; h != nil {
		c.HealthCheck = &topology.ContainerHealthCheck{
			Command: slices.Clone(h.Command), Interval: time.Duration(h.Interval), Timeout: time.Duration(h.Timeout),
			StartPeriod: time.Duration(h.StartPeriod), Retries: h.Retries,
		}
	}
	if l := s.Log; l != nil {
		if c.LogDriver = string(l.Driver); l.Driver == score.LogFile {
			c.LogSize = uint64(cmp.Or(l.MaxSize, score.DefaultLogSize))
		}
	}
	for _, i := range s.Init {
		in := topology.InitContainer{
			Name: i.ContainerName(s), Image: cmp.Or(i.Image, s.Image), Entrypoint: slices.Clone(i.Entrypoint), Command: slices.Clone(i.Command),
			User: i.User, Volumes: texts(i.Volumes), Timeout: time.Duration(cmp.Or(i.Timeout, score.DefaultInitTimeout)),
		}
		in.Env, in.Secrets = environment(i.Env, have)
		c.Init = append(c.Init, in)
	}
	c.SpecDigest = digest(c)
	return c
}

// environment tells variables with a text from those with a secret.
func environment(env map[string]score.Value, have secrets) (texts []string, hidden []topology.ContainerSecret) {
	for _, k := range slices.Sorted(maps.Keys(env)) {
		if v := env[k]; v.Secret != "" {
			hidden = append(hidden, have.as(topology.ContainerSecret{Name: v.Secret, Env: k}))
		} else {
			texts = append(texts, k+"="+v.Text)
		}
	}
	slices.SortFunc(hidden, inOrder)
	return texts, hidden
}

func inOrder(a, b topology.ContainerSecret) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Env, b.Env), strings.Compare(a.Target, b.Target))
}

// texts are the canonical texts of things that have no order.
func texts[T fmt.Stringer](in []T) []string {
	var out []string
	for _, v := range in {
		out = append(out, v.String())
	}
	slices.Sort(out)
	return out
}

func pairs(m map[string]string) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return out
}

// canonical is what the digest of a container is made of. Fields that later versions add do
// not change it while they are left out: they come behind, and are omitted.
type canonical struct {
	Name         string    `json:"name"`
	Image        string    `json:"image"`
	Command      []string  `json:"command,omitempty"`
	Env          []string  `json:"env,omitempty"`
	Ports        []string  `json:"ports,omitempty"`
	Volumes      []string  `json:"volumes,omitempty"`
	Restart      string    `json:"restart"`
	Stopped      bool      `json:"stopped,omitzero"`
	Entrypoint   []string  `json:"entrypoint,omitempty"`
	User         string    `json:"user,omitempty"`
	WorkingDir   string    `json:"workingDir,omitempty"`
	Hostname     string    `json:"hostname,omitempty"`
	Secrets      []secret  `json:"secrets,omitempty"`
	Tmpfs        []tmpfs   `json:"tmpfs,omitempty"`
	Devices      []string  `json:"devices,omitempty"`
	CapAdd       []string  `json:"capAdd,omitempty"`
	CapDrop      []string  `json:"capDrop,omitempty"`
	ReadOnly     bool      `json:"readOnly,omitzero"`
	Network      string    `json:"network,omitempty"`
	Memory       uint64    `json:"memory,omitzero"`
	CPU          uint32    `json:"cpu,omitzero"`
	PIDs         int       `json:"pids,omitzero"`
	HealthCheck  *check    `json:"healthCheck,omitempty"`
	LogDriver    string    `json:"logDriver,omitempty"`
	LogSize      uint64    `json:"logSize,omitzero"`
	Labels       []string  `json:"labels,omitempty"`
	StopSignal   string    `json:"stopSignal,omitempty"`
	StopTimeout  string    `json:"stopTimeout,omitempty"`
	Init         []initial `json:"init,omitempty"`
	ReloadSignal string    `json:"reloadSignal,omitempty"`
}

type secret struct {
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"` // never the value
	Env         string `json:"env,omitempty"`
	Target      string `json:"target,omitempty"`
	Mode        uint32 `json:"mode,omitzero"`
	UID         uint32 `json:"uid,omitzero"`
	GID         uint32 `json:"gid,omitzero"`
}

type tmpfs struct {
	Target string `json:"target"`
	Size   uint64 `json:"size,omitzero"`
}

type check struct {
	Command     []string `json:"command,omitempty"`
	Interval    string   `json:"interval,omitempty"`
	Timeout     string   `json:"timeout,omitempty"`
	StartPeriod string   `json:"startPeriod,omitempty"`
	Retries     int      `json:"retries,omitzero"`
	OfImage     bool     `json:"ofImage,omitzero"`
}

type initial struct {
	Name       string   `json:"name"`
	Image      string   `json:"image"`
	Entrypoint []string `json:"entrypoint,omitempty"`
	Command    []string `json:"command,omitempty"`
	User       string   `json:"user,omitempty"`
	Env        []string `json:"env,omitempty"`
	Secrets    []secret `json:"secrets,omitempty"`
	Volumes    []string `json:"volumes,omitempty"`
	Timeout    string   `json:"timeout"`
}

// digest is the sha256 of the canonical form of what a container is made from. Scores that
// ask for the same container have the same digest.
func digest(c topology.ContainerConfig) string {
	in := canonical{
		Name: c.Name, Image: c.Image, Command: c.Command, Env: c.Env, Ports: c.Ports, Volumes: c.Volumes, Restart: c.Restart,
		Stopped: c.Stopped, Entrypoint: c.Entrypoint, User: c.User, WorkingDir: c.WorkingDir, Hostname: c.Hostname,
		Secrets: fingerprinted(c.Secrets), Devices: c.Devices, CapAdd: c.CapAdd, CapDrop: c.CapDrop, ReadOnly: c.ReadOnly,
		Network: c.Network, Memory: c.Memory, CPU: c.CPU, PIDs: c.PIDs, LogDriver: c.LogDriver, LogSize: c.LogSize, Labels: c.Labels,
		StopSignal: c.StopSignal, StopTimeout: span(c.StopTimeout), ReloadSignal: c.ReloadSignal,
	}
	for _, t := range c.Tmpfs {
		in.Tmpfs = append(in.Tmpfs, tmpfs{t.Target, t.Size})
	}
	if h := c.HealthCheck; h != nil {
		in.HealthCheck = &check{h.Command, span(h.Interval), span(h.Timeout), span(h.StartPeriod), h.Retries, len(h.Command) == 0}
	}
	for _, i := range c.Init {
		in.Init = append(in.Init, initial{i.Name, i.Image, i.Entrypoint, i.Command, i.User, i.Env, fingerprinted(i.Secrets), i.Volumes, span(i.Timeout)})
	}
	b, err := score.Encode(in)
	if err != nil {
		panic(fmt.Sprintf("container: config of %q is not data: %v", c.Name, err))
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func fingerprinted(in []topology.ContainerSecret) (out []secret) {
	for _, s := range in {
		out = append(out, secret{s.Name, s.Fingerprint, s.Env, s.Target, s.Mode, s.UID, s.GID})
	}
	return out
}

func span(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return score.Duration(d).String()
}
