package score

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

func init() {
	Register(Definition[Container]{
		Doc:   "A container kept in a given state by the service manager.",
		Needs: []Capability{CapContainers},
		Sample: Container{
			Name: "web", Image: "registry.example.org/web:1.4", Command: []string{"serve", "--quiet"},
			Env: map[string]string{"TZ": "UTC"}, Ports: []Port{{Host: 8080, Container: 80}},
			Volumes: []Volume{{Source: "/srv/web", Target: "/data", ReadOnly: true}}, Restart: RestartAlways,
		},
	})
}

// KindContainer is the kind of Container.
const KindContainer Kind = "container"

// Restart says when a container that ended is started again.
type Restart string

// Restart policies.
const (
	RestartNever   Restart = "never"
	RestartFailure Restart = "on-failure"
	RestartAlways  Restart = "always"
)

// Container is a container that runs. What is left out is the image's choice.
type Container struct {
	// Name of the container, and of its unit, NAME.service.
	Name string `json:"name" effect:"remove" jsonschema:"maxLength=63,pattern=^[a-z0-9][a-z0-9_.-]*$,example=web"`
	// Image is a full reference with its registry, by tag or by digest.
	Image string `json:"image" effect:"disrupt" jsonschema:"example=registry.example.org/web:1.4"`
	// Command replaces the command of the image: a list of arguments, without a shell.
	Command []string `json:"command,omitempty" effect:"disrupt"`
	// Env is the environment. Values are text: quote numbers.
	Env map[string]string `json:"env,omitempty" effect:"disrupt"`
	// Ports are published on the device.
	Ports []Port `json:"ports,omitempty" effect:"disrupt"`
	// Volumes are directories of the device, or named volumes, seen in the container.
	Volumes []Volume `json:"volumes,omitempty" effect:"disrupt"`
	// Restart says when the container is started again after it ended.
	Restart Restart `json:"restart,omitempty" effect:"disrupt" jsonschema:"enum=never,enum=on-failure,enum=always,default=always"`
	// RestartOn lists scores whose change restarts the container, once per pass.
	RestartOn []ID `json:"restartOn,omitempty" effect:"disrupt"`
}

// Kind is KindContainer.
func (Container) Kind() Kind { return KindContainer }

// QuadletDir is where the definitions of containers live.
const QuadletDir = "/etc/containers/systemd/"

// Claims is the container, its unit, the file it is defined in, and its ports.
func (c Container) Claims() []Resource {
	out := []Resource{
		Resource("container:" + c.Name),
		Resource("unit:" + c.Name + ".service"),
		fileResource(QuadletDir + c.Name + ".container"),
	}
	for _, p := range c.Ports {
		out = append(out, p.claims()...)
	}
	return out
}

// hexRE matches what podman takes for the beginning of an id.
var hexRE = regexp.MustCompile(`^[0-9a-f]+$`)

// RestartTriggers is RestartOn.
func (c Container) RestartTriggers() []ID { return c.RestartOn }

func (c Container) withTriggers(rename func([]ID) []ID) Spec {
	c.RestartOn = rename(c.RestartOn)
	return c
}

// AddContainer adds a container to a draft.
func AddContainer[P Containers](d *Draft[P], id ID, c Container) Ref[Container] { return add(d, id, c) }

var (
	containerRE = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}$`)
	imageRE     = regexp.MustCompile(`^((localhost|[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+)(:[0-9]+)?|[a-zA-Z0-9-]+:[0-9]+)(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)+(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)
	envRE       = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Check refuses what podman would refuse, or read otherwise than it is written.
func (c Container) Check(r *Report) {
	if !containerRE.MatchString(c.Name) {
		r.At("name").Errorf("name %q must be lower-case letters, digits, '_', '.' and '-', at most 63", c.Name)
	}
	if hexRE.MatchString(c.Name) {
		r.At("name").Errorf("name %q has hexadecimal digits only: podman would take it for the beginning of the id of another container, and replace that; add another character, such as %q", c.Name, c.Name+"-1")
	}
	if c.Name == "continuo-agent" {
		r.At("name").Errorf("continuo-agent is the agent itself")
	}
	if !imageRE.MatchString(c.Image) {
		r.At("image").Errorf("image %q must be a full reference with its registry, such as docker.io/library/nginx:1.27", c.Image)
	} else if !strings.Contains(c.Image, "@") && !strings.Contains(c.Image[strings.LastIndexByte(c.Image, '/'):], ":") {
		r.At("image").Errorf("image %q has no tag and no digest: which one runs would be a guess", c.Image)
	}
	if policies := []string{string(RestartNever), string(RestartFailure), string(RestartAlways)}; c.Restart != "" && !slices.Contains(policies, string(c.Restart)) {
		r.At("restart").Errorf("unknown restart %q%s", c.Restart, didYouMean(string(c.Restart), policies))
	}
	for _, k := range slices.Sorted(maps.Keys(c.Env)) {
		v := c.Env[k]
		if !envRE.MatchString(k) {
			r.At("env", k).Errorf("%q is no name of an environment variable", k)
		}
		if strings.ContainsAny(v, "\x00\n") {
			r.At("env", k).Errorf("the value of %s has a line break or a NUL byte", k)
		}
	}
	for i, a := range c.Command {
		if strings.ContainsRune(a, 0) {
			r.At("command", i).Errorf("argument has a NUL byte")
		}
	}
	for i, p := range c.Ports {
		p.check(r.At("ports", i))
		for j, q := range c.Ports[:i] {
			if p.overlaps(q) {
				r.At("ports", i).Errorf("port %s overlaps port %d, %s", p, j+1, q)
			}
		}
	}
	for i, v := range c.Volumes {
		v.check(r.At("volumes", i))
		for j, w := range c.Volumes[:i] {
			if v.Target == w.Target {
				r.At("volumes", i).Errorf("volume %d has the target %s too", j+1, v.Target)
			}
		}
	}
}
