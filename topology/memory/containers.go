package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// A Step is what an init container does. The zero value ends well.
type Step struct {
	Status int
	Hangs  bool // it does not end by itself
}

type container struct {
	config topology.ContainerConfig
	id     string
	state  string // absent: only its definition is left
	since  time.Time
	exit   int
	health string
	digest string // of the image it was made from

	secrets map[string]string // that it was given, by variable or path
	departs []string          // somebody made it anew, otherwise
	reloads int               // reload signals that it got
}

// definitionFile is the definition of a container, and unitOf the unit that runs it.
func definitionFile(container string) string { return containerDir + container + ".container" }
func unitOf(container string) string         { return container + ".service" }

type containers struct{ d *Device }

func (c containers) Container(ctx context.Context, name string) (topology.ContainerState, error) {
	if err := c.d.control.call(ctx, OpContainer, containerResource(name)); err != nil {
		return topology.ContainerState{}, err
	}
	if err := c.d.loads(ctx, unitOf(name)); err != nil {
		return topology.ContainerState{}, err
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	st := topology.ContainerState{State: "absent"}
	var err error
	if st.Definition, err = c.d.fileState(definitionFile(name)); err != nil {
		return st, err
	}
	if st.Unit, err = c.d.serviceState(unitOf(name)); err != nil {
		return st, err
	}
	if k := c.d.containers[name]; k != nil && k.state != "absent" {
		st.State, st.Since, st.ID, st.Image, st.Digest = k.state, k.since, k.id, k.config.Image, k.digest
		st.ExitCode, st.Health, st.SpecDigest, st.Mark = k.exit, k.health, k.config.SpecDigest, k.config.Mark
		if k.config.Mark != "" {
			made := k.config
			st.Made = &made
		}
		st.Restarts, st.Departs = st.Unit.Restarts, k.departs
		st.Here, st.Newest = c.d.images[k.config.Image].Digest, c.d.newest[k.config.Image].Digest
		if k.config.Mark != "" && st.Definition.SHA256 != topology.SumOf([]byte(define(k.config))) {
			st.SpecDigest, st.Made = "", nil // the definition says something else by now
		}
	}
	return st, nil
}

func (c containers) AllContainers(ctx context.Context) ([]topology.NamedContainer, error) {
	if err := c.d.control.call(ctx, OpAllContainers, ""); err != nil {
		return nil, err
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	var out []topology.NamedContainer
	for name, k := range c.d.containers {
		if k.state != "absent" {
			out = append(out, topology.NamedContainer{Name: name, Mark: k.config.Mark})
		}
	}
	slices.SortFunc(out, func(a, b topology.NamedContainer) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// containerStarted makes a container anew from its image, as each start of its unit does.
func (d *Device) containerStarted(c *container) {
	im := d.images[c.config.Image]
	c.id, c.state, c.since, c.exit, c.health, c.digest, c.departs = d.fresh(), "running", time.Now(), 0, im.Health, im.Digest, nil
	if h := c.config.HealthCheck; h != nil && len(h.Command) > 0 {
		c.health = cmp.Or(im.Health, "healthy")
	}
	d.changed(containerResource(c.config.Name))
}

func (d *Device) containerEnded(c *container, status int) {
	if c.state == "absent" {
		return
	}
	c.state, c.since, c.exit, c.health = "exited", time.Now(), status, ""
	d.changed(containerResource(c.config.Name))
}

func (c containers) Restart(ctx context.Context, name string) error {
	if err := c.d.control.call(ctx, OpRestartRun, containerResource(name)); err != nil {
		return err
	}
	return c.d.start(ctx, unitOf(name), true, true)
}

func (c containers) Reload(ctx context.Context, name string) error {
	if err := c.d.control.call(ctx, OpReloadRun, containerResource(name)); err != nil {
		return err
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	k := c.d.containers[name]
	switch {
	case k == nil || k.config.Mark == "":
		return topology.Faultf(topology.CodeInvalid, "cannot reload container %s: there is no such container", name)
	case k.config.ReloadSignal == "":
		return topology.Faultf(topology.CodeInvalid, "cannot reload container %s: its definition has no reload signal", name)
	case k.state == "running":
		k.reloads++
	}
	return nil
}

func (c containers) RemoveContainer(ctx context.Context, name string) error {
	if err := c.d.control.call(ctx, OpRemoveContainer, containerResource(name)); err != nil {
		return err
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if k := c.d.containers[name]; k != nil && k.config.Mark == "" {
		return topology.Faultf(topology.CodeForeign, "the container %s (%s) was made by somebody else", name, k.id)
	}
	c.d.halt(unitOf(name), c.d.unit(unitOf(name)))
	if err := c.d.remove(definitionFile(name)); err != nil {
		return err
	}
	delete(c.d.containers, name)
	delete(c.d.units, unitOf(name))
	if !c.d.letGo(ctx, unitOf(name)) {
		c.d.reload()
		c.d.manager.reloads++
	}
	c.d.changed(containerResource(name))
	return nil
}

// The methods below act on containers and images as somebody else would.

// RunByHand runs a container that is no business of the agent.
func (d *Device) RunByHand(name, image string) {
	d.hands(func() {
		if !d.hasImage(image) {
			d.store(image, Image{})
		}
		c := &container{config: topology.ContainerConfig{Name: name, Image: image}}
		d.containers[name] = c
		d.containerStarted(c)
	})
}

// Config is what a container was made from.
func (d *Device) Config(name string) (c topology.ContainerConfig) {
	d.hands(func() {
		if k := d.containers[name]; k != nil {
			c = k.config
		}
	})
	return c
}

// SecretIn is the value of a secret that a container was given, as a variable or a file.
func (d *Device) SecretIn(name, place string) (value string, ok bool) {
	d.hands(func() {
		if k := d.containers[name]; k != nil {
			value, ok = k.secrets[place]
		}
	})
	return value, ok
}

// Reloads counts the reload signals that a container got.
func (d *Device) Reloads(name string) (n int) {
	d.hands(func() {
		if k := d.containers[name]; k != nil {
			n = k.reloads
		}
	})
	return n
}

// MakeAnew makes a container anew by hand, under the labels it had and with other parts.
func (d *Device) MakeAnew(name string, parts ...string) {
	d.hands(func() {
		if k := d.containers[name]; k != nil {
			k.id, k.departs = d.fresh(), parts
			d.changed(containerResource(name))
		}
	})
}

// SetController turns a controller of the kernel on or off: memory, cpu, pids.
func (d *Device) SetController(name string, on bool) {
	d.hands(func() { d.controllersOff[name] = !on })
}

// SetHealth changes what a container says of itself.
func (d *Device) SetHealth(name, health string) {
	d.hands(func() {
		if c := d.containers[name]; c != nil {
			c.health = health
			d.changed(containerResource(name))
		}
	})
}

// RemoveByHand removes a container, and leaves its definition. Its unit sees that it
// ended, and does what the definition says.
func (d *Device) RemoveByHand(name string) {
	d.hands(func() {
		c := d.containers[name]
		if c == nil {
			return
		}
		c.state = "absent"
		d.changed(containerResource(name))
		if c.config.Mark == "" {
			delete(d.containers, name)
			return
		}
		if u := d.units[unitOf(name)]; u != nil && u.active == "active" {
			d.ended(unitOf(name), d.load(unitOf(name)), u, 137)
		}
	})
}
