package pi

import (
	"cmp"
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

const (
	podmanTimeout = 30 * time.Second // of one call
	healthAge     = 10 * time.Second // a health check changes without a sign

	maxWord = 64 // bytes of a word of podman's that is reported
)

// containers is podman under systemd: a definition for podman's generator (Quadlet), the
// unit that it makes, and the container that the unit runs.
type containers struct {
	*services // of the units
	podman    *podman
	maxAge    time.Duration

	mu    sync.Mutex
	known map[string]*looked
}

func newContainers(s *services, o Options) *containers {
	p := newPodman(s, podmanSocket, podmanTimeout)
	p.plaintext = o.Plaintext
	return &containers{services: s, maxAge: o.MaxAge, known: map[string]*looked{}, podman: p}
}

// looked is what podman said about a container, and what systemd said at that time.
// While the service manager says the same, podman need not be asked: its service costs
// 50 MB and a process, a question to systemd costs neither.
type looked struct {
	invocation, active, sub string
	text                    topology.Sum // digest of the definition
	definition              definition
	at                      time.Time
	found                   *inspected // nil: no container
	digest                  string     // of its image
	here                    string     // digest of what its reference stands for
	newest                  string     // and of what its registry had last
}

func (l *looked) fresh(u topology.ServiceState, maxAge time.Duration) bool {
	if l == nil || l.invocation != u.Invocation || l.active != u.Active || l.sub != u.Sub || l.text != u.Definition.SHA256 {
		return false
	}
	if l.found != nil && l.found.State.Health != nil {
		maxAge = min(maxAge, healthAge)
	}
	return time.Since(l.at) < maxAge
}

// available says why there are no containers, if there are none.
func (c *containers) available(ctx context.Context) error {
	if _, err := c.bus.link(ctx); err != nil {
		return err
	}
	_, noQuadlet := os.Stat(generator)
	_, err := os.Stat(podmanProgram) // the units that the generator makes start it by this path
	switch {
	case noQuadlet == nil && err == nil:
		return nil
	case noQuadlet == nil:
		return topology.Faultf(topology.CodeUnavailable, "podman is missing: there is no %s; what runs goes on, and nothing of containers is looked at until it is back", podmanProgram)
	case err != nil: // nor is its socket asked, which the service manager gives up on after a few
		return topology.Faultf(topology.CodeUnavailable, "podman is not installed: there is no %s, and Quadlet needs podman 4.4 or newer", podmanProgram)
	}
	u, err := c.ask(ctx, podmanUnit)
	if err != nil {
		return err
	}
	if u.Load == topology.NotFound {
		return topology.Faultf(topology.CodeUnavailable, "podman is not installed: Quadlet needs podman 4.4 or newer")
	}
	var is struct{ Version string }
	_ = c.podman.call(ctx, c.podman.limit, request{method: "GET", path: "/version"}, into(&is))
	return topology.Faultf(topology.CodeUnavailable, "Quadlet needs podman 4.4 or newer; this device has %s", cmp.Or(is.Version, "an older one"))
}

func checkContainer(name string) error {
	if err := checkUnit(unitOf(name)); err != nil {
		return topology.Faultf(topology.CodeInvalid, "%q is not the name of a container", name)
	}
	return nil
}

// Container returns the state of a container.
func (c *containers) Container(ctx context.Context, name string) (topology.ContainerState, error) {
	if err := checkContainer(name); err != nil {
		return topology.ContainerState{}, err
	}
	if err := c.available(ctx); err != nil {
		return topology.ContainerState{}, err
	}
	u, err := c.unit(ctx, name)
	if err != nil {
		return topology.ContainerState{}, err
	}
	l, err := c.look(ctx, name, u.ServiceState)
	if err != nil {
		return topology.ContainerState{}, err
	}
	return l.state(u), nil
}

// AllContainers returns every container of podman's. It asks podman, and starts no socket
// for that: who stopped it is not surprised by a mere look around.
func (c *containers) AllContainers(ctx context.Context) ([]topology.NamedContainer, error) {
	if err := c.available(ctx); err != nil {
		return nil, err
	}
	u, err := c.ask(ctx, podmanUnit)
	if err != nil {
		return nil, err
	}
	if u.Active != "active" {
		return nil, topology.Faultf(topology.CodeUnavailable, "%s is %s", podmanUnit, u.Active)
	}
	return c.podman.list(ctx)
}

// unit observes the unit of a container, and its definition.
func (c *containers) unit(ctx context.Context, name string) (unitState, error) {
	u, err := c.observe(ctx, unitOf(name))
	if err != nil {
		return u, err
	}
	u.Definition, err = c.files.File(ctx, definitionFile(name))
	return u, err
}

// look returns what podman says, from memory if systemd says that nothing happened.
func (c *containers) look(ctx context.Context, name string, u topology.ServiceState) (*looked, error) {
	c.mu.Lock()
	l := c.known[name]
	c.mu.Unlock()
	if l.fresh(u, c.maxAge) {
		return l, nil
	}
	l = &looked{invocation: u.Invocation, active: u.Active, sub: u.Sub, text: u.Definition.SHA256, at: time.Now()}
	if u.Definition.Type == topology.Regular {
		text, err := c.files.Content(ctx, definitionFile(name), 1<<20)
		if err != nil {
			return nil, err
		}
		l.definition = parseDefinition(text)
	}
	var err error
	if l.found, err = c.podman.inspect(ctx, name); err != nil {
		return nil, err
	}
	if l.found != nil {
		if err := c.lookAtImages(ctx, l); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	c.known[name] = l
	c.mu.Unlock()
	return l, nil
}

// forgetLook makes the next look ask podman.
func (c *containers) forgetLook(name string) {
	c.mu.Lock()
	delete(c.known, name)
	c.mu.Unlock()
}

// state puts together what systemd, podman and the definition say.
func (l *looked) state(u unitState) topology.ContainerState {
	st := topology.ContainerState{
		State: "absent", Since: u.Since, Restarts: u.Restarts, ExitCode: u.ExitCode, Unit: u.ServiceState, Definition: u.Definition,
	}
	ours := u.Definition.Type == topology.Regular && l.definition.config.Mark != ""
	switch {
	case l.found != nil:
		l.container(&st)
	case ours: // a container that ended is gone; its definition stays
		st.State, st.Mark = "exited", l.definition.config.Mark
		switch u.Active {
		case "active":
			st.State = "absent" // somebody removed it below the unit
		case "activating":
			st.State = "created"
		case "deactivating":
			st.State = "stopping"
		}
	}
	// What is run at the next start counts as much as what runs: a definition that is
	// gone, or that somebody edited, does not answer for its spec.
	if made := &l.definition.config; ours && l.definition.intact && (l.found == nil || st.SpecDigest == made.SpecDigest) {
		if st.SpecDigest, st.Made = made.SpecDigest, made; l.found != nil {
			st.Departs = l.found.departs(made)
		}
	} else {
		st.SpecDigest = ""
	}
	return st
}

// container fills in what podman says of the container itself.
func (l *looked) container(st *topology.ContainerState) {
	st.ID, st.Digest, st.Here, st.Newest = l.found.ID, l.digest, l.here, l.newest
	st.Image = l.found.Config.Image
	st.Mark = topology.Mark(l.found.Config.Labels[ownerLabel])
	st.SpecDigest = l.found.Config.Labels[specLabel]
	s := l.found.State
	st.State = clip(s.Status)
	if s.Health != nil && s.Health.Status != "none" {
		st.Health = clip(s.Health.Status)
	}
	since := s.StartedAt
	if !s.Running && !s.Paused {
		since, st.ExitCode = s.FinishedAt, s.ExitCode
	}
	if t, err := time.Parse(time.RFC3339Nano, since); err == nil && t.Year() > 1970 {
		st.Since = t
	}
}

// clip is a word of podman's, at most as long as those that are known.
func clip(word string) string { return strings.ToValidUTF8(word[:min(len(word), maxWord)], "") }
