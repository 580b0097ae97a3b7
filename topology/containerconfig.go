package topology

import (
	"fmt"
	"strings"
	"time"
)

// A ContainerConfig is what a container is made from. Slices are in canonical order
// where order has no meaning. What is zero is the choice of the image, or of the device.
type ContainerConfig struct {
	Name         string
	Image        string
	Stopped      bool // it is defined, does not run, and is not started at boot
	Entrypoint   []string
	Command      []string
	User         string
	WorkingDir   string
	Hostname     string
	Env          []string          // NAME=value, sorted
	Secrets      []ContainerSecret // sorted as by ContainerSecret.Compare
	Volumes      []string          // canonical text, sorted
	Tmpfs        []ContainerTmpfs  // sorted by target
	Devices      []string          // canonical text, sorted
	CapAdd       []string          // sorted
	CapDrop      []string          // sorted
	ReadOnly     bool
	Network      string   // host, none, the name of a network; empty: one of its own
	Ports        []string // canonical text, sorted
	Memory       uint64   // bytes
	CPU          uint32   // percent of one processor
	PIDs         int
	HealthCheck  *ContainerHealthCheck
	LogDriver    string
	LogSize      uint64   // bytes, of driver k8s-file
	Labels       []string // name=value, sorted
	StopSignal   string   // without SIG
	StopTimeout  time.Duration
	Init         []InitContainer
	Restart      string // never, on-failure, always
	ReloadSignal string // without SIG; empty: it cannot be reloaded
	SpecDigest   string // kept on the container, read back as ContainerState.SpecDigest
	Mark         Mark

	// Replaces is what Run replaces, as FileWrite.Replaces is of the definition. It is no part of what
	// a container is made from, and not read back.
	Replaces Sum
	// Login is how the registry of Image is asked, when an image turns out to be damaged and Run fetches it again; nil: as
	// everybody may. As Replaces, it is no part of what a container is made from, and not read back.
	Login *Login
	// Never says that its images are fetched by nobody: a damaged one stays. Like Login it is for Run alone.
	Never bool
}

// A Login is how a registry is asked by somebody it knows.
type Login struct {
	Username string
	Password SecretValue
}

// Request is how an image of it that is damaged is asked for again: the login is for the registry of its own image, and for no
// other. One that comes from no registry, or that nobody may fetch, is not taken away: a fault, CodeImageStore.
func (c ContainerConfig) Request(image string) (ImageRequest, error) {
	host, _, _ := strings.Cut(image, "/")
	why := ""
	switch {
	case host == "localhost":
		why = "as it comes from no registry"
	case c.Never:
		why = "as pull is never"
	}
	if why != "" {
		return ImageRequest{}, Faultf(CodeImageStore, "the image store is damaged, and %s is not fetched again, %s: bring it once more, or podman system check --repair removes it", image, why)
	}
	r := ImageRequest{Image: image}
	if own, _, _ := strings.Cut(c.Image, "/"); c.Login != nil && host == own {
		r.Username, r.Password = c.Login.Username, c.Login.Password
	}
	return r, nil
}

// Controllers are those of the kernel that its limits need.
func (c ContainerConfig) Controllers() (needed []string) {
	if c.Memory > 0 {
		needed = append(needed, ControlMemory)
	}
	if c.CPU > 0 {
		needed = append(needed, ControlCPU)
	}
	if c.PIDs > 0 {
		needed = append(needed, ControlTasks)
	}
	return needed
}

// A ContainerSecret is a secret in a container, as a variable or as a file.
type ContainerSecret struct {
	Name        string // of the secret of the device
	Fingerprint string // of its value: see Secrets
	Env         string // name of the variable; empty: a file
	Target      string // path of the file
	Mode        uint32
	UID, GID    uint32
	Value       SecretValue // for Run; never read back
}

// A SecretValue is the value of a secret. It is shown to nobody.
type SecretValue []byte

// Format writes no value, whatever the verb.
func (SecretValue) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("(secret)")) }

// MarshalText writes no value.
func (SecretValue) MarshalText() ([]byte, error) { return []byte("(secret)"), nil }

// A ContainerTmpfs is a directory in memory.
type ContainerTmpfs struct {
	Target string
	Size   uint64 // bytes; 0: the device decides
}

// A ContainerHealthCheck is run in the container. Without a command it is that of the image, which must have one.
type ContainerHealthCheck struct {
	Command                        []string
	Interval, Timeout, StartPeriod time.Duration
	Retries                        int
}

// An InitContainer runs to completion before each start of a container.
type InitContainer struct {
	Name       string // of its container
	Image      string
	Entrypoint []string
	Command    []string
	User       string
	Env        []string          // NAME=value, sorted
	Secrets    []ContainerSecret // variables, sorted
	Volumes    []string          // canonical text, sorted
	Timeout    time.Duration
}

// Images lists the images that c needs, that of the container first, each once.
func (c ContainerConfig) Images() []string {
	out := []string{c.Image}
	seen := map[string]bool{c.Image: true}
	for _, i := range c.Init {
		if !seen[i.Image] {
			out, seen[i.Image] = append(out, i.Image), true
		}
	}
	return out
}

// AllSecrets lists the secrets of c and of its init containers.
func (c ContainerConfig) AllSecrets() []ContainerSecret {
	out := append([]ContainerSecret(nil), c.Secrets...)
	for _, i := range c.Init {
		out = append(out, i.Secrets...)
	}
	return out
}
