package memory

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/continuo-fleet/continuo/topology"
)

func (c containers) Run(ctx context.Context, cfg topology.ContainerConfig) error {
	if err := c.d.control.call(ctx, OpRun, containerResource(cfg.Name)); err != nil {
		return err
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	return c.d.run(ctx, cfg)
}

func (d *Device) run(ctx context.Context, cfg topology.ContainerConfig) error {
	p, unitName := definitionFile(cfg.Name), unitOf(cfg.Name)
	if k := d.containers[cfg.Name]; k != nil && k.config.Mark == "" {
		return topology.Faultf(topology.CodeForeign, "the container %s (%s) was made by somebody else", cfg.Name, k.id)
	}
	for _, i := range cfg.Init {
		if k := d.containers[i.Name]; k != nil && k.state != "absent" {
			return topology.Faultf(topology.CodeForeign, "the name %s of an init container is taken by container %s", i.Name, k.id)
		}
	}
	if n, err := d.lookup(p); err != nil {
		return err
	} else if n != nil && n.mark == "" && d.containers[cfg.Name] == nil {
		return topology.Faultf(topology.CodeForeign, "%s was written by somebody else", p)
	}
	switch def := d.load(unitName); {
	case def.load == topology.Masked:
		return masked(unitName)
	case def.load != topology.NotFound && def.container == "":
		return topology.Faultf(topology.CodeForeign, "the unit %s is defined by %s already", unitName, def.source)
	}
	if err := d.able(cfg); err != nil {
		return err
	}
	if err := d.renew(cfg); err != nil {
		return err
	}
	replaces := cfg.Replaces
	cfg.Replaces, cfg.Login, cfg.Never = "", nil, false
	if st, err := d.fileState(p); replaces != "" && (err != nil || st.Is() != replaces) {
		return topology.Faultf(topology.CodeChanged, "%s was changed by somebody else just now, and was left so", p)
	}
	k, err := d.give(cfg)
	if err != nil {
		return err
	}
	text := define(k.config)
	if st, err := d.fileState(p); err != nil || st.SHA256 != topology.SumOf([]byte(text)) || st.Mark != cfg.Mark {
		if err := d.write(topology.FileWrite{Path: p, Content: []byte(text), Mode: 0o644, Mark: cfg.Mark}); err != nil {
			return err
		}
	}
	d.mu.Unlock()
	err = d.acts(ctx, unitName)
	d.mu.Lock()
	if err != nil {
		return err
	}
	u := d.unit(unitName)
	d.halt(unitName, u)
	d.containers[cfg.Name] = k
	if cfg.Stopped {
		k.state = "exited"
		d.changed(containerResource(cfg.Name))
		return nil
	}
	def := d.load(unitName)
	u.restarts = 0
	for _, i := range cfg.Init {
		if step := d.images[i.Image].Init; step.Status != 0 || step.Hangs {
			u.result, u.status = "exit-code", 0
			d.become(unitName, u, "failed", "failed")
			if step.Hangs {
				return topology.Faultf(topology.CodeTimeout, "the init container %s did not end within %v", i.Name, i.Timeout)
			}
			return topology.Faultf(topology.CodeExited, "the init container %s ended with exit code %d", i.Name, step.Status)
		}
	}
	d.launch(unitName, def, u)
	return outcome(unitName, def, u)
}

// able reports what the device lacks for a container.
func (d *Device) able(cfg topology.ContainerConfig) error {
	if !cfg.Stopped {
		for _, image := range cfg.Images() {
			if !d.hasImage(image) {
				return topology.Faultf(topology.CodeImage, "the image %s is not here", image)
			}
		}
		if h := cfg.HealthCheck; h != nil && len(h.Command) == 0 && d.images[cfg.Image].Health == "" {
			return topology.Faultf(topology.CodeUnavailable, "the image %s has no health check", cfg.Image)
		}
	}
	for _, need := range cfg.Controllers() {
		if err := topology.CheckController(d.controllers(), need); err != nil {
			return err
		}
	}
	return nil
}

// give makes a container with its secrets. What is kept of its config has no value of any.
func (d *Device) give(cfg topology.ContainerConfig) (*container, error) {
	k := &container{config: cfg, state: "created", secrets: map[string]string{}}
	strip := func(in []topology.ContainerSecret) (out []topology.ContainerSecret, err error) {
		for _, s := range in {
			if len(s.Value) == 0 && !cfg.Stopped {
				return nil, topology.Faultf(topology.CodeSecret, "the secret %s is empty", s.Name)
			}
			k.secrets[s.Env+s.Target] = string(s.Value)
			s.Value = nil
			out = append(out, s)
		}
		return out, nil
	}
	var err error
	if k.config.Secrets, err = strip(cfg.Secrets); err != nil {
		return nil, err
	}
	k.config.Init = nil
	for _, i := range cfg.Init {
		if i.Secrets, err = strip(i.Secrets); err != nil {
			return nil, err
		}
		k.config.Init = append(k.config.Init, i)
	}
	return k, nil
}

// define is the text of a container's definition: what can be shown of it, and that
// it is one and the same text for one config.
func define(c topology.ContainerConfig) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[Container]\nContainerName=%s\nImage=%s\n", c.Name, c.Image)
	for _, group := range []struct {
		key    string
		values []string
	}{{"Exec", c.Command}, {"Environment", c.Env}, {"PublishPort", c.Ports}, {"Volume", c.Volumes}} {
		for _, v := range group.values {
			fmt.Fprintf(&b, "%s=%q\n", group.key, v)
		}
	}
	rest := c // everything else is one line
	rest.Name, rest.Image, rest.Command, rest.Env, rest.Ports, rest.Volumes, rest.Restart, rest.HealthCheck = "", "", nil, nil, nil, nil, "", nil
	rest.SpecDigest, rest.Mark = "", ""
	fmt.Fprintf(&b, "# %q\n", fmt.Sprintf("%+v %+v", rest, c.HealthCheck))
	restart := map[string]string{"never": "no"}[c.Restart]
	fmt.Fprintf(&b, "\n[Service]\nRestart=%s\n", cmp.Or(restart, c.Restart, "always"))
	if !c.Stopped {
		b.WriteString("\n[Install]\nWantedBy=multi-user.target\n")
	}
	return b.String()
}
