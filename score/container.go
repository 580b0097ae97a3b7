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
			Env: map[string]Value{"TZ": Text("UTC")}, Ports: []Port{{Host: 8080, Container: 80}},
			Volumes: []Volume{{Source: "/srv/web", Target: "/data", ReadOnly: true}}, Restart: RestartAlways,
			Labels: map[string]string{"org.example.role": "front"},
			Init:   []InitContainer{{Name: "migrate", Command: []string{"migrate", "up"}, Env: map[string]Value{"TZ": Text("UTC")}}},
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

// Container is a container. What is left out is the image's choice, or that of the device:
// it is neither set nor compared.
type Container struct {
	// Name of the container, and of its unit, NAME.service.
	Name string `json:"name" effect:"remove" jsonschema:"maxLength=63,pattern=^[a-z0-9][a-z0-9_.-]*$,example=web"`
	// Image is a full reference with its registry, by tag or by digest.
	Image string `json:"image" effect:"disrupt" jsonschema:"example=registry.example.org/web:1.4"`
	// State says whether the container runs. One that is stopped is not started at boot either.
	State RunState `json:"state,omitempty" effect:"disrupt" jsonschema:"enum=running,enum=stopped,default=running"`
	// Pull says when the registry is asked for the image: missing, if it is not on the device; always, when the score is
	// new and then about once an hour, and another image that a tag stands for by then makes the container anew, once;
	// never, so that it has to be brought by other means.
	Pull Pull `json:"pull,omitempty" effect:"none" jsonschema:"enum=missing,enum=always,enum=never,default=missing,example=always"`
	// Registry is how the registry of the image is asked, if it wants to know who asks.
	Registry *Registry `json:"registry,omitempty" effect:"none"`
	// Entrypoint replaces the entrypoint of the image: a list of arguments, without a shell.
	Entrypoint []string `json:"entrypoint,omitempty" effect:"disrupt" jsonschema:"example=/usr/bin/web"`
	// Command replaces the command of the image: a list of arguments, without a shell.
	Command []string `json:"command,omitempty" effect:"disrupt" jsonschema:"example=serve"`
	// User that the program runs as: a name or number of the image, with a group behind ':' if it is another.
	User string `json:"user,omitempty" effect:"disrupt" jsonschema:"maxLength=65,example=1000:1000"`
	// WorkingDir is where the program starts: an absolute path in the container.
	WorkingDir string `json:"workingDir,omitempty" effect:"disrupt" jsonschema:"maxLength=4095,example=/srv"`
	// Hostname is the host name that the container sees.
	Hostname string `json:"hostname,omitempty" effect:"disrupt" jsonschema:"maxLength=63,example=web"`
	// Env is the environment: of each variable the text, or {secret: NAME}. Quote numbers.
	Env map[string]Value `json:"env,omitempty" effect:"disrupt"`
	// Secrets are files in the container with values that only the device has.
	Secrets []SecretFile `json:"secrets,omitempty" effect:"disrupt"`
	// Volumes are directories of the device, or named volumes, seen in the container.
	Volumes []Volume `json:"volumes,omitempty" effect:"disrupt"`
	// Tmpfs are directories in memory. What is in them is gone when the container ends.
	Tmpfs []Tmpfs `json:"tmpfs,omitempty" effect:"disrupt"`
	// Devices are nodes below /dev that the container may use.
	Devices []Device `json:"devices,omitempty" effect:"disrupt"`
	// Capabilities of the kernel that the container has beside the usual ones, or lacks.
	Capabilities *KernelCapabilities `json:"capabilities,omitempty" effect:"disrupt"`
	// ReadOnly makes the root file system of the container read-only; /tmp, /run and /var/tmp are in memory then.
	ReadOnly bool `json:"readOnly,omitzero" effect:"disrupt"`
	// Network is bridge (a network of its own, behind the device), host (that of the device), none, or the name of a network of containers.
	Network string `json:"network,omitempty" effect:"disrupt" jsonschema:"maxLength=63,default=bridge,example=host"`
	// Ports are published on the device.
	Ports []Port `json:"ports,omitempty" effect:"disrupt"`
	// Limits of what the container may use.
	Limits *ContainerLimits `json:"limits,omitempty" effect:"disrupt"`
	// HealthCheck says how the container finds out whether it works. If it is left out, the image decides; if nothing is in it, the image must have a check.
	HealthCheck *HealthCheck `json:"healthCheck,omitempty" effect:"disrupt"`
	// Log says where the output goes. If it is left out, to the journal.
	Log *ContainerLog `json:"log,omitempty" effect:"disrupt"`
	// Labels on the container.
	Labels map[string]string `json:"labels,omitempty" effect:"disrupt"`
	// StopSignal is what the program gets when it is to end: TERM, INT, QUIT, HUP. If it is left out, the image decides.
	StopSignal Signal `json:"stopSignal,omitempty" effect:"disrupt" jsonschema:"enum=TERM,enum=INT,enum=QUIT,enum=HUP,enum=USR1,enum=USR2,enum=WINCH,enum=KILL,example=INT"`
	// StopTimeout is how long the program may take to end before it is killed: whole seconds. If it is left out, 10s.
	StopTimeout Duration `json:"stopTimeout,omitzero" effect:"disrupt"`
	// Init are containers that run to completion, one after the other, before each start of this one.
	Init []InitContainer `json:"init,omitempty" effect:"disrupt"`
	// Restart says when the container is started again after it ended.
	Restart Restart `json:"restart,omitempty" effect:"disrupt" jsonschema:"enum=never,enum=on-failure,enum=always,default=always"`
	// RestartOn lists scores whose change restarts the container, once per pass.
	RestartOn []ID `json:"restartOn,omitempty" effect:"disrupt"`
	// ReloadOn lists scores whose change makes the program read its configuration again, by reloadSignal.
	ReloadOn []ID `json:"reloadOn,omitempty" effect:"disrupt"`
	// ReloadSignal is what the program gets to read its configuration again, also by systemctl reload. If it is left out and reloadOn is not, HUP.
	ReloadSignal Signal `json:"reloadSignal,omitempty" effect:"disrupt" jsonschema:"enum=HUP,enum=USR1,enum=USR2,enum=WINCH,example=HUP"`
}

// Kind is KindContainer.
func (Container) Kind() Kind { return KindContainer }

// QuadletDir is where the definitions of containers live.
const QuadletDir = "/etc/containers/systemd/"

// Claims is the container, its unit, the file it is defined in, its ports, and its init containers.
func (c Container) Claims() []Resource {
	out := []Resource{
		Resource("container:" + c.Name),
		Resource("unit:" + c.Name + ".service"),
		fileResource(QuadletDir + c.Name + ".container"),
	}
	for _, p := range c.Ports {
		out = append(out, p.claims()...)
	}
	for _, i := range c.Init {
		out = append(out, Resource("container:"+i.ContainerName(c)))
	}
	return out
}

// SecretNames lists the secrets of the environment and of files, with those of init containers, and the password of the
// registry.
func (c Container) SecretNames() []string {
	var out []string
	of := func(env map[string]Value) {
		for _, v := range env {
			if v.Secret != "" {
				out = append(out, v.Secret)
			}
		}
	}
	of(c.Env)
	for _, s := range c.Secrets {
		out = append(out, s.Secret)
	}
	for _, i := range c.Init {
		of(i.Env)
	}
	if c.Registry != nil {
		out = append(out, c.Registry.Password.Secret)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hexRE matches what podman takes for the beginning of an id.
var hexRE = regexp.MustCompile(`^[0-9a-f]+$`)

// RestartTriggers is RestartOn.
func (c Container) RestartTriggers() []ID { return c.RestartOn }

// ReloadTriggers is ReloadOn.
func (c Container) ReloadTriggers() []ID { return c.ReloadOn }

func (c Container) withTriggers(rename func([]ID) []ID) Spec {
	c.RestartOn, c.ReloadOn = rename(c.RestartOn), rename(c.ReloadOn)
	return c
}

// AddContainer adds a container to a draft.
func AddContainer[P Containers](d *Draft[P], id ID, c Container) Ref[Container] { return add(d, id, c) }

var (
	containerRE      = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}$`)
	imageRE          = regexp.MustCompile(`^((localhost|[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+)(:[0-9]+)?|[a-zA-Z0-9-]+:[0-9]+)(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)+(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)
	imageDigestRE    = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	envRE            = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	containerLabelRE = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$`)
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
	checkImage(r.At("image"), c.Image)
	c.checkPull(r)
	if policies := []string{string(RestartNever), string(RestartFailure), string(RestartAlways)}; c.Restart != "" && !slices.Contains(policies, string(c.Restart)) {
		r.At("restart").Errorf("unknown restart %q%s", c.Restart, didYouMean(string(c.Restart), policies))
	}
	c.checkState(r)
	c.checkProgram(r)
	c.checkNetwork(r)
	c.checkMounts(r)
	c.checkRights(r)
	for _, k := range slices.Sorted(maps.Keys(c.Labels)) {
		switch v := c.Labels[k]; {
		case !containerLabelRE.MatchString(k) || len(k) > 253:
			r.At("labels", k).Errorf("label %q must be letters, digits, '.', '_', '-' and '/'", k)
		case strings.HasPrefix(k, "continuo.") || strings.HasPrefix(k, "io.podman.") || k == "PODMAN_SYSTEMD_UNIT":
			r.At("labels", k).Errorf("label %s is not yours: the agent and podman keep their books in it", k)
		case strings.ContainsAny(v, "\x00\n\r"):
			r.At("labels", k).Errorf("the value of label %s has a line break or a NUL byte", k)
		}
	}
}

func checkImage(r *Report, image string) {
	if _, digest, by := strings.Cut(image, "@"); by && !imageDigestRE.MatchString(digest) {
		r.Errorf("image %q has a digest that is none: want sha256: and its 64 hexadecimal digits, in lower case", image)
	} else if !imageRE.MatchString(image) {
		r.Errorf("image %q must be a full reference with its registry, such as docker.io/library/nginx:1.27", image)
	} else if !strings.Contains(image, "@") && !strings.Contains(image[strings.LastIndexByte(image, '/'):], ":") {
		r.Errorf("image %q has no tag and no digest: which one runs would be a guess", image)
	} else if strings.HasSuffix(image, ".image") || strings.HasSuffix(image, ".build") {
		r.Errorf("image %q ends as podman's generator ends the names of its own files, and would be taken for one", image)
	}
}

func (c Container) checkState(r *Report) {
	switch states := []string{string(Running), string(Stopped)}; {
	case c.State == "" || c.State == Running:
	case c.State == RunState(Absent):
		r.At("state").Errorf("a container is not made absent by its state: write decommission: true beside its spec")
	case c.State != Stopped:
		r.At("state").Errorf("unknown state %q%s", c.State, didYouMean(string(c.State), states))
	case len(c.RestartOn) > 0:
		r.At("restartOn").Errorf("restartOn goes with state running")
	case len(c.ReloadOn) > 0:
		r.At("reloadOn").Errorf("reloadOn goes with state running")
	}
}

func (c Container) checkNetwork(r *Report) {
	own := c.Network != "host" && c.Network != "none"
	if c.Network != "" && !containerRE.MatchString(c.Network) || slices.Contains([]string{"private", "pasta", "slirp4netns", "default"}, c.Network) || strings.HasSuffix(c.Network, ".network") || strings.HasSuffix(c.Network, ".container") {
		r.At("network").Errorf("network %q must be bridge, host, none, or the name of a network of containers", c.Network)
	}
	if !own && len(c.Ports) > 0 {
		r.At("ports").Errorf("no port can be published on network %s: with host, the ports of the program are those of the device already; with none, it has none", c.Network)
	}
	if c.Hostname != "" && !labelRE.MatchString(c.Hostname) {
		r.At("hostname").Errorf("hostname %q must be lower-case letters, digits and '-', at most 63", c.Hostname)
	}
	for i, p := range c.Ports {
		p.check(r.At("ports", i))
		for j, q := range c.Ports[:i] {
			if p.overlaps(q) {
				r.At("ports", i).Errorf("port %s overlaps port %d, %s", p, j+1, q)
			}
		}
	}
}
