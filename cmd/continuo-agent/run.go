package main

import (
	"context"
	"os"
	"runtime/debug"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
)

func newRun() *cobra.Command {
	var s settings
	var level, format string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the agent: make true what was accepted last, connect, and keep it true",
		Long: `run is what the service does (see continuo-agent unit). It first makes true, from disk
and without any network, what it accepted last, and connects only then. It listens on no
port. SIGTERM lets the action under way end, and stops.

The configuration is written by continuo up --device ID: device, servers, credentials, tls and
trust. By hand can be added:
  ceiling  what may be done to this device at all, whoever signed for it: lists of kinds, paths,
           images, units, verbs, and of paths that may be adopted (adopt), and a policy, as in
           ceiling: {kinds: [file], paths: [/etc/kiosk], policy: {preset: reviewed}}
           A list that is left out restricts nothing, an empty one allows nothing.
           It may list secrets by pattern, too: secrets: [wifi-psk, kiosk-*]
  secrets  where the owner keeps the values that scores name as {secret: NAME}; see
           continuo-agent secrets (default: /etc/continuo/secrets.env, and the credentials of the unit)
  registries  which registries of images are asked without encryption, on a network that is protected
           otherwise: registries: {plaintext: ["192.0.2.7:5000"]}
  relist   time between full passes when nothing happens (default 5m)
  state    directory of the agent's books (default /var/lib/continuo)
  root     directory that all paths are below, for trying things out`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.read(cmd)
			if err != nil {
				return err
			}
			log, err := newLog(cmd.ErrOrStderr(), level, format)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), c, log.WithField("device", c.Device))
		},
	}
	s.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&format, "log-format", "text", "text or json")
	return cmd
}

// serve runs an agent until ctx ends.
func serve(ctx context.Context, c config.Config, log *logrus.Entry) error {
	bound()
	id := identity()
	p, closeParts, err := realParts(ctx, c, id, log)
	if err != nil {
		return err
	}
	a, books, err := assemble(c, id, p)
	if err != nil {
		_ = closeParts()
		return err
	}
	facts := logrus.Fields{"version": id.Version, "state": c.StateDir()}
	if commit := cli.ThisBuild().Commit; commit != "" {
		facts["commit"] = commit
	}
	log.WithFields(facts).Info("starting")
	a.Run(ctx)
	log.Info("stopped")
	if err := books.Close(); err != nil {
		_ = closeParts()
		return err
	}
	return closeParts()
}

// bound keeps the agent small, unless the environment says how large it may be.
func bound() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(64 << 20)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}
