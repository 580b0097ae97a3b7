package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/interpret"
)

func newApply() *cobra.Command {
	var o once
	var confirm bool
	cmd := &cobra.Command{
		Use:   "apply -f FILE --confirm",
		Short: "Make one manifest true on this device, without any server",
		Long: `apply makes one manifest true. Whom the manifest is for is not checked, and --confirm
is the authority for the changes: without it apply only shows them, like plan.
What other manifests own stays theirs, and nothing is removed that this one does not name.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			st, err := o.play(cmd, confirm)
			if err != nil {
				return err
			}
			if !confirm && st.State != interpret.StateConverged {
				defer fmt.Fprintln(cmd.ErrOrStderr(), "nothing was changed: this is a preview; add --confirm to apply it")
			}
			return showStatus(cmd, st, o.format, "")
		},
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&confirm, "confirm", false, "make the changes; without it they are only shown")
	return cmd
}
