package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"
)

// readConfig reads the configuration of the device. Everything that is wrong with it is
// told on stderr, with its place.
func readConfig(cmd *cobra.Command, file string) (config.Config, error) {
	var c config.Config
	data, err := cli.ReadInput(cmd.Context(), file, cmd.InOrStdin())
	if err != nil {
		return c, &cli.UsageError{Err: fmt.Errorf("%w; continuo up --device ID writes one for a device, and --config names another place", err)}
	}
	doc := source.Read(file, data)
	if doc.OK() {
		decodeConfig(doc, &c)
	}
	for _, d := range doc.Diagnostics() {
		fmt.Fprintln(cmd.ErrOrStderr(), d)
	}
	if !doc.OK() {
		return c, cli.ErrInvalid
	}
	return c, nil
}

// decodeConfig reads doc strictly, and checks it as a whole.
func decodeConfig(doc *source.Document, c *config.Config) {
	var de *score.DecodeError
	switch err := score.Decode(doc.JSON(), c); {
	case errors.As(err, &de):
		doc.Report(de.Path, score.Error, "%s", de.Text)
		return
	case err != nil:
		doc.Report("", score.Error, "%s", err)
		return
	}
	for _, p := range c.Validate() {
		doc.Report(p.Path, p.Severity, "%s", p.Text)
	}
}
