package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"
)

// settings is where the configuration of the device is, and what flags say instead of it.
type settings struct{ file, root, state string }

func (s *settings) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.file, "config", config.DefaultFile, "configuration of the device")
	f.StringVar(&s.root, "root", "", "instead of root in the configuration: directory that all paths are below, for trying things out")
	f.StringVar(&s.state, "state", "", "instead of state in the configuration: directory of the agent's books")
}

// read reads the configuration. Everything that is wrong with it is told on stderr, with
// its place.
func (s settings) read(cmd *cobra.Command) (config.Config, error) {
	var c config.Config
	if s.file != "-" {
		if err := config.CheckFile(s.file); err != nil {
			return c, err
		}
	}
	data, err := cli.ReadInput(cmd.Context(), s.file, cmd.InOrStdin())
	if err != nil {
		return c, &cli.UsageError{Err: fmt.Errorf("%w; continuo up --device ID writes one for a device, and --config names another place", err)}
	}
	found := source.Decode(s.file, data, &c, func() []score.Problem { return c.Validate() })
	for _, d := range found {
		fmt.Fprintln(cmd.ErrOrStderr(), d)
	}
	if source.Errors(found) > 0 {
		return c, cli.ErrInvalid
	}
	c.Root, c.State = cmp.Or(s.root, c.Root), cmp.Or(s.state, c.State)
	return c, nil
}

// optional is read for commands that work on a device without an agent, too. There is no
// configuration then, and none counts for a directory that things are tried out in, unless
// it is named: a ceiling is for the device that has it.
func (s settings) optional(cmd *cobra.Command) (config.Config, error) {
	if !cmd.Flags().Changed("config") {
		if _, err := os.Stat(s.file); s.root != "" || errors.Is(err, fs.ErrNotExist) {
			return config.Config{Root: s.root, State: cmp.Or(s.state, filepath.Join(s.root, config.DefaultState))}, nil
		}
	}
	return s.read(cmd)
}
