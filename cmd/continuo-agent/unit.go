package main

import (
	_ "embed"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
)

//go:embed continuo-agent.service
var unitFile string

func newUnit() *cobra.Command {
	return &cobra.Command{
		Use:   "unit",
		Short: "Print the systemd unit that runs the agent",
		Long: `unit prints the unit file. To install the agent as a service:

  continuo-agent unit > /etc/systemd/system/continuo-agent.service
  systemctl daemon-reload
  systemctl enable --now continuo-agent`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write([]byte(unitFile))
			return err
		},
	}
}
