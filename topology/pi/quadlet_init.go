package pi

import (
	"context"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/continuo-fleet/continuo/topology"
)

// podmanProgram is the program that the generator writes into units, too.
const podmanProgram = "/usr/bin/podman"

// initRun starts what runs an init container to its end: in the group of the unit, without a
// restart, replacing what a crash left of it, and with its output in the journal of the unit.
const initRun = podmanProgram + " run --rm --replace --pull=never --cgroups=split --sdnotify=ignore --log-driver=none"

// initial is the command that runs an init container. The service manager runs it before each
// start, shows it in the status of the unit, and does not start the unit if it fails.
func (b *definitionText) initial(c topology.ContainerConfig, i topology.InitContainer) string {
	out := []string{initRun}
	option := func(name, value string) { out = append(out, word("--"+name+"="+value)) }
	option("name", i.Name)
	option("label", ownerLabel+"="+string(c.Mark))
	option("timeout", seconds(i.Timeout))
	if c.Network != "" {
		option("network", c.Network)
	}
	if i.User != "" {
		option("user", i.User)
	}
	if len(i.Entrypoint) > 0 {
		s, ok := asOne(i.Entrypoint)
		if !ok {
			b.bad = topology.Faultf(topology.CodeInvalid, "an argument of init container %s is no text", i.Name)
		}
		option("entrypoint", s)
	}
	for _, e := range i.Env {
		option("env", e)
	}
	for _, s := range i.Secrets {
		option("secret", secretOption(c.Name, s))
	}
	for _, v := range i.Volumes {
		option("volume", v)
	}
	out = append(out, word(i.Image))
	for _, a := range i.Command {
		out = append(out, word(a))
	}
	return strings.Join(out, " ")
}

// parseInit reads back what initial wrote.
func (d *definition) parseInit(line string) {
	rest, ours := strings.CutPrefix(line, initRun+" ")
	if !ours {
		return
	}
	var i topology.InitContainer
	words := arguments(rest)
	for len(words) > 0 {
		option, is := strings.CutPrefix(words[0], "--")
		if !is {
			break
		}
		words = words[1:]
		switch name, value, _ := strings.Cut(option, "="); name {
		case "name":
			i.Name = value
		case "timeout":
			i.Timeout = parseSeconds(value)
		case "user":
			i.User = value
		case "entrypoint":
			i.Entrypoint = fromOne(value)
		case "env":
			i.Env = append(i.Env, value)
		case "secret":
			i.Secrets = append(i.Secrets, d.secret(value))
		case "volume":
			i.Volumes = append(i.Volumes, value)
		}
	}
	if len(words) > 0 {
		i.Image = words[0]
	}
	if len(words) > 1 {
		i.Command = words[1:]
	}
	d.config.Init = append(d.config.Init, i)
}

// stepFailed tells which init container kept a container from starting, if one did.
func (c *containers) stepFailed(ctx context.Context, unit string, cfg topology.ContainerConfig) error {
	if len(cfg.Init) == 0 {
		return nil
	}
	var ran dbus.Variant
	err := c.bus.do(ctx, func(ctx context.Context, l *link) error {
		return l.calls.Object("org.freedesktop.systemd1", unitPath(unit)).
			CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, "org.freedesktop.systemd1.Service", "ExecStartPre").Store(&ran)
	})
	if err != nil {
		return nil // the words of the unit have to do
	}
	return stepFault(unit, cfg.Init, ran.Value())
}

// stepFault reads how the commands before the start ended: what systemd says of each is path, arguments,
// whether failure counts, begin and end (each on two clocks, in µs), process, and how it ended.
func stepFault(unit string, steps []topology.InitContainer, ran any) error {
	commands, _ := ran.([][]any)
	for n, c := range commands {
		if n >= len(steps) || len(c) < 10 {
			return nil
		}
		began, _ := c[3].(uint64)
		ended, _ := c[5].(uint64)
		code, _ := c[8].(int32)
		status, _ := c[9].(int32)
		if code == 0 || code == 1 && status == 0 { // it did not run, or ended well
			continue
		}
		step, took := steps[n], time.Duration(0)
		if ended > began && ended-began < uint64(24*time.Hour/time.Microsecond) {
			took = time.Duration(ended-began) * time.Microsecond
		}
		if took >= step.Timeout {
			return topology.Faultf(topology.CodeTimeout, "the init container %s did not end within %v and was killed; journalctl -u %s has its words", step.Name, step.Timeout, unit)
		}
		return topology.Faultf(topology.CodeExited, "the init container %s ended with exit code %d; journalctl -u %s has its words", step.Name, exitCode(int64(code), int64(status)), unit)
	}
	return nil
}

func parseSeconds(s string) time.Duration {
	d, err := time.ParseDuration(strings.TrimSuffix(s, "s") + "s")
	if err != nil {
		return 0
	}
	return d
}

// isStep tells an init container from others of ours, which have the digest of their spec, and from foreign ones.
func (f *inspected) isStep() bool {
	return f.Config.Labels[ownerLabel] != "" && f.Config.Labels[specLabel] == ""
}

// freeForInit refuses a container whose init containers would take the place of others: podman replaces what has their
// name at every start.
func (c *containers) freeForInit(ctx context.Context, cfg topology.ContainerConfig) error {
	for _, i := range cfg.Init {
		found, err := c.podman.inspect(ctx, i.Name)
		if err != nil {
			return err
		}
		if found != nil && !found.isStep() {
			return topology.Faultf(topology.CodeForeign, "the name %s of an init container is taken by container %.12s, which would be replaced; remove that, or choose another name", i.Name, found.ID)
		}
	}
	return nil
}

// steps are the init containers of a container, by its definition.
func (c *containers) steps(ctx context.Context, name string, u unitState) ([]topology.InitContainer, error) {
	if u.Definition.Type != topology.Regular {
		return nil, nil
	}
	text, err := c.files.Content(ctx, definitionFile(name), 1<<20)
	return parseDefinition(text).config.Init, err
}

// removeSteps removes what a crash left of init containers.
func (c *containers) removeSteps(ctx context.Context, steps []topology.InitContainer) error {
	for _, i := range steps {
		left, err := c.podman.inspect(ctx, i.Name)
		if err == nil && left != nil && left.isStep() {
			err = c.podman.removeContainer(ctx, left.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
