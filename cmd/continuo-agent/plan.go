package main

import (
	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
)

func newPlan() *cobra.Command {
	var o once
	cmd := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Show what a manifest would change on this device, and change nothing",
		Long: `plan compares one manifest with this device and shows every field that differs.
It reads only. Whom the manifest is for is not checked. A running agent is not disturbed.

OUTCOME is unchanged for what is so already, and drifted for what apply would change, because
the manifest is new (intent) or the device was changed (drift).`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			st, err := o.play(cmd, false)
			if err != nil {
				return err
			}
			return showStatus(cmd, st, o.format, "")
		},
	}
	o.flags(cmd)
	return cmd
}
