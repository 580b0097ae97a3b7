package main

import (
	"cmp"
	"context"
	"os"

	"github.com/continuo-fleet/continuo/agent/blobs"
	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/agent/secrets"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/pi"
)

// serviceCredentials is where systemd puts the credentials of the agent's service.
const serviceCredentials = "/run/credentials/continuo-agent.service"

// A machine is the machine with what its agent keeps on it: the secrets of its owner, and
// large contents of its fleet.
type machine struct {
	*pi.Device
	secrets *secrets.Store
	blobs   *blobs.Store
}

var _ device = machine{}

// openMachine opens the machine that c is about. Without a source, contents that are not
// here cannot be had. Who only looks leaves nothing behind.
func openMachine(ctx context.Context, c config.Config, source blobs.Source, look bool) (machine, error) {
	dev, err := pi.Open(ctx, pi.Options{Version: cli.ThisBuild().Version, Root: c.Root, State: c.StateDir(), Plaintext: c.Registries.Plaintext})
	return machine{dev, openSecrets(c, look), blobs.Open(c.StateDir(), source)}, err
}

func openSecrets(c config.Config, look bool) *secrets.Store {
	return secrets.Open(secrets.Options{
		EnvFiles: c.Secrets.EnvFiles, Root: c.Root, State: c.StateDir(), Look: look,
		Credentials: cmp.Or(c.Secrets.Credentials, os.Getenv("CREDENTIALS_DIRECTORY"), serviceCredentials),
	})
}

// Secrets are those of its owner.
func (m machine) Secrets() topology.Secrets { return m.secrets }

// Blobs are large contents.
func (m machine) Blobs() topology.Blobs { return m.blobs }

// Events tells about changes, those of secrets included.
func (m machine) Events() topology.Events { return m.secrets.Events(m.Device.Events()) }
