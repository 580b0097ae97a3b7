package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/topology/pi"
)

// newRevert is what the timer of an open checkpoint runs, when the agent has neither kept nor taken back a change in time.
func newRevert() *cobra.Command {
	return &cobra.Command{
		Use:    "revert CHECKPOINT",
		Short:  "Bring back what a checkpoint holds, and end it",
		Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("revert wants one file: that of a checkpoint")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			was, err := pi.Revert(cmd.Context(), args[0])
			if was {
				fmt.Fprintf(cmd.OutOrStdout(), "the change that was not proved in time is taken back (%s)\n", args[0])
			}
			return err
		},
	}
}
