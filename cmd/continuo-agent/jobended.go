package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/topology/pi"
)

// newJobEnded is what the service manager runs when a job has ended, whatever the agent does then.
func newJobEnded() *cobra.Command {
	return &cobra.Command{
		Use:    "job-ended RECORD",
		Short:  "Write down how a job ended",
		Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("job-ended wants one file: the record of a job")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return pi.JobEnded(cmd.Context(), args[0], os.Getenv) },
	}
}
