package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"
)

// once plays one manifest file, for the commands plan and apply.
type once struct {
	settings
	file   string
	format show.Format
}

func (o *once) flags(cmd *cobra.Command, file string) {
	o.settings.flags(cmd)
	cmd.Flags().StringVarP(&o.file, "file", "f", "", file)
	o.format.Flag(cmd.Flags())
}

// input is the device and the manifest; no manifest means what the agent accepted last.
func (o *once) input(cmd *cobra.Command) (config.Config, *agent.Intent, error) {
	if o.file == "" {
		c, err := o.settings.read(cmd)
		return c, nil, err
	}
	m, err := o.manifest(cmd)
	if err != nil {
		return config.Config{}, nil, err
	}
	c, err := o.settings.optional(cmd)
	return c, new(agent.Once(m)), err
}

// manifest reads the file. What is wrong with it is told on stderr.
func (o *once) manifest(cmd *cobra.Command) (score.Manifest, error) {
	data, err := cli.ReadInput(cmd.Context(), o.file, cmd.InOrStdin())
	if err != nil {
		return score.Manifest{}, &cli.UsageError{Err: err}
	}
	m, found := source.Manifest(cli.InputName(o.file), data)
	for _, d := range found {
		fmt.Fprintln(cmd.ErrOrStderr(), d)
	}
	if source.Errors(found) > 0 {
		return m, cli.ErrInvalid
	}
	if m.Metadata.Generation == 0 {
		m.Metadata.Generation = 1 // written by hand: nobody has counted yet, and 0 would mean "never applied"
	}
	return m, nil
}
