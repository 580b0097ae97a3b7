package pi

import (
	"context"
	"errors"

	sdbus "github.com/coreos/go-systemd/v22/dbus"

	"github.com/continuo-fleet/continuo/topology"
)

// Run writes the definition of a container and has systemd start it.
func (c *containers) Run(ctx context.Context, cfg topology.ContainerConfig) error {
	return c.blame(ctx, cfg, c.run(ctx, cfg))
}

func (c *containers) run(ctx context.Context, cfg topology.ContainerConfig) error {
	if err := checkContainer(cfg.Name); err != nil {
		return err
	}
	if cfg.Mark == "" {
		return topology.Faultf(topology.CodeInvalid, "container %s needs a mark: without one it would be foreign", cfg.Name)
	}
	if err := c.available(ctx); err != nil {
		return err
	}
	text, err := quadlet(cfg)
	if err != nil {
		return err
	}
	u, err := c.ours(ctx, cfg.Name)
	if err != nil {
		return err
	}
	if err := c.mistaken(ctx, cfg.Name); err != nil {
		return err
	}
	if err := c.freeForInit(ctx, cfg); err != nil {
		return err
	}
	if err := c.able(ctx, cfg); err != nil {
		return err
	}
	if !u.madeOf(cfg.Name, text) {
		if err := dryRun(ctx, cfg.Name, text); err != nil {
			return err
		}
	}
	if err := c.giveSecrets(ctx, cfg); err != nil {
		return err
	}
	defer c.forgetLook(cfg.Name)
	if cfg.Stopped {
		err = c.halt(ctx, cfg, text)
	} else {
		err = c.mend(ctx, cfg, c.start(ctx, cfg, text))
	}
	if err != nil {
		return err
	}
	return c.dropSecrets(ctx, cfg.Name, cfg)
}

// halt puts the definition of a container that does not run in place, and stops what runs.
func (c *containers) halt(ctx context.Context, cfg topology.ContainerConfig, text []byte) error {
	if err := c.define(ctx, cfg, text); err != nil {
		return err
	}
	unit := unitOf(cfg.Name)
	if err := c.services.Stop(ctx, unit); err != nil {
		return err
	}
	return c.reset(ctx, unit)
}

// start puts the definition of a container in place, and starts it.
func (c *containers) start(ctx context.Context, cfg topology.ContainerConfig, text []byte) error {
	unit := unitOf(cfg.Name)
	waited, err := c.yield(ctx, "start", unit)
	if err != nil {
		return err
	}
	u, err := c.unit(ctx, cfg.Name)
	if err != nil {
		return err
	}
	switch same := u.Definition.SHA256 == topology.SumOf(text); {
	case waited && same && u.Active == "active": // somebody else started it, just now
		return c.watch(ctx, "start", unit)
	case same && u.waits():
		// What podman itself cannot start is not left to systemd, which can do no more.
		back, err := c.spare(ctx, unit, u)
		if now, _ := c.ask(ctx, unit); back || err != nil && !byPodman(now.ExitCode) {
			return err
		}
	}
	if err := c.define(ctx, cfg, text); err != nil {
		return err
	}
	err = c.launch(ctx, "start", unit, restart, true, "")
	if f, ok := errors.AsType[*topology.Fault](err); ok && f.Code == topology.CodeJobFailed {
		if step := c.stepFailed(ctx, unit, cfg); step != nil {
			return step
		}
		return c.recover(ctx, cfg, err)
	}
	return err
}

// madeOf reports whether systemd made the unit of exactly this definition.
func (u unitState) madeOf(container string, text []byte) bool {
	return u.Load == topology.Loaded && u.sourcePath == definitionFile(container) && u.Definition.SHA256 == topology.SumOf(text)
}

// byPodman tells whether podman itself ended with a status, and not the program in the
// container, as far as a status can tell.
func byPodman(status int) bool { return status >= 125 && status <= 127 }

func changedBelow(p string) error {
	return topology.Faultf(topology.CodeChanged, "%s was changed by somebody else just now, and was left so", p)
}

// define puts the definition in place and has systemd load it. If systemd gets no unit
// from it, the old definition is back when define returns.
func (c *containers) define(ctx context.Context, cfg topology.ContainerConfig, text []byte) error {
	p, unit := definitionFile(cfg.Name), unitOf(cfg.Name)
	ctx = about(ctx, unit)
	write := func(text []byte, mark topology.Mark, replaces topology.Sum) error {
		return c.files.WriteFile(ctx, topology.FileWrite{Path: p, Content: text, Mode: 0o644, Owner: "0", Group: "0", Mark: mark, Replaces: replaces})
	}
	now, err := c.files.File(ctx, p)
	if err != nil {
		return err
	}
	if cfg.Replaces != "" && now.Is() != cfg.Replaces && now.SHA256 != topology.SumOf(text) {
		return changedBelow(p)
	}
	var old []byte
	if now.Type == topology.Regular {
		if old, err = c.files.Content(ctx, p, 1<<20); err != nil {
			return err
		}
	}
	if now.SHA256 != topology.SumOf(text) {
		if err := write(text, cfg.Mark, now.Is()); err != nil {
			return err
		}
	}
	u, err := c.observe(ctx, unit)
	if err != nil {
		return err
	}
	if u.Load == topology.Loaded && u.sourcePath == p {
		return nil
	}
	if now.Type == topology.Regular {
		err = write(old, now.Mark, "")
	} else {
		err = c.files.RemoveFile(ctx, p)
	}
	if err == nil {
		err = c.reload.load(ctx, unit)
	}
	if err != nil {
		return err
	}
	return topology.Faultf(topology.CodeDefinition, "systemd made no unit of the definition of container %s: it is %s, from %q; the old definition is back",
		cfg.Name, u.Load, u.Source)
}

// ours refuses to touch a container, a unit or a definition of somebody else. Marks
// decide, not names.
func (c *containers) ours(ctx context.Context, name string) (unitState, error) {
	u, err := c.unit(ctx, name)
	if err != nil {
		return u, err
	}
	p := definitionFile(name)
	switch {
	case u.Load == topology.Masked:
		return u, masked("start", unitOf(name))
	case u.Load == topology.Loaded && u.sourcePath != p:
		return u, topology.Faultf(topology.CodeForeign, "the unit %s.service is defined by %s already; choose another name for the container", name, u.Source)
	case u.Definition.Type != topology.Absent && u.Definition.Type != topology.Regular:
		return u, topology.Faultf(topology.CodeNotRegular, "%s is a %s, not a regular file", p, u.Definition.Type)
	case u.Definition.Type == topology.Regular && u.Definition.Mark == "":
		// A file system without extended attributes has no marks; the text has one.
		text, err := c.files.Content(ctx, p, 1<<20)
		if err != nil {
			return u, err
		}
		if parseDefinition(text).config.Mark == "" {
			return u, topology.Faultf(topology.CodeForeign, "%s was written by somebody else; adopt it, or choose another name", p)
		}
	}
	found, err := c.podman.inspect(ctx, name)
	if err == nil && found != nil && found.Config.Labels[ownerLabel] == "" {
		return u, topology.Faultf(topology.CodeForeign, "the name %s is taken by container %.12s, which was made by somebody else; adopt it, remove it, or choose another name",
			name, found.ID)
	}
	return u, err
}

// mistaken refuses a name that podman would take for another container. The generator has
// it replace what it finds under the name, and it finds by the beginning of an id as well.
func (c *containers) mistaken(ctx context.Context, name string) error {
	found, err := c.podman.find(ctx, name)
	if err == nil && found != nil && found.Name != name {
		return topology.Faultf(topology.CodeForeign, "the name %s is also the beginning of the id of container %s, which podman would remove; choose a name that does not consist of the digits 0-9 and a-f alone",
			name, found.Name)
	}
	return err
}

// Restart starts a container again, as it is defined.
func (c *containers) Restart(ctx context.Context, name string) error {
	if err := checkContainer(name); err != nil {
		return err
	}
	if err := c.available(ctx); err != nil {
		return err
	}
	defer c.forgetLook(name)
	return c.services.Restart(ctx, unitOf(name), true)
}

// reloading has the program of a unit read its configuration again.
var reloading order = (*sdbus.Conn).ReloadUnitContext

// Reload sends a container that runs its reload signal, as its definition says.
func (c *containers) Reload(ctx context.Context, name string) error {
	if err := checkContainer(name); err != nil {
		return err
	}
	if err := c.available(ctx); err != nil {
		return err
	}
	unit := unitOf(name)
	u, _, err := c.idle(ctx, "reload", unit)
	if err != nil {
		return err
	}
	if err := u.usable("reload", unit); err != nil || u.Active != "active" {
		return err // what does not run reads everything when it is started
	}
	text, err := c.files.Content(ctx, definitionFile(name), 1<<20)
	if err != nil {
		return err
	}
	if parseDefinition(text).config.ReloadSignal == "" {
		return topology.Faultf(topology.CodeInvalid, "cannot reload container %s: its definition has no reload signal", name)
	}
	return c.job(ctx, "reload", unit, reloading, "")
}

// RemoveContainer stops a container, and removes it and its definition.
func (c *containers) RemoveContainer(ctx context.Context, name string) error {
	if err := checkContainer(name); err != nil {
		return err
	}
	if err := c.available(ctx); err != nil {
		return err
	}
	u, err := c.ours(ctx, name)
	if err != nil {
		return err
	}
	steps, err := c.steps(ctx, name, u)
	if err != nil {
		return err
	}
	defer c.forgetLook(name)
	unit := unitOf(name)
	if u.Load != topology.NotFound && u.Active != "inactive" && u.Active != "failed" {
		if err := c.job(ctx, "stop", unit, stop, ""); err != nil {
			return err
		}
	}
	p := definitionFile(name)
	if now, err := c.files.File(ctx, p); err != nil {
		return err
	} else if now.Type != topology.Absent && now.Is() != u.Definition.Is() {
		return changedBelow(p)
	}
	if err := c.files.RemoveFile(about(ctx, unit), p); err != nil {
		return err
	}
	if !c.letGo(ctx, unit) {
		if err := c.reload.load(ctx, unit); err != nil {
			return err
		}
	}
	if err := c.reset(ctx, unit); err != nil {
		return err
	}
	left, err := c.podman.inspect(ctx, name)
	if err == nil && left != nil {
		err = c.podman.removeContainer(ctx, left.ID)
	}
	if err != nil {
		return err
	}
	if err := c.removeSteps(ctx, steps); err != nil {
		return err
	}
	return c.dropSecrets(ctx, name, topology.ContainerConfig{})
}
