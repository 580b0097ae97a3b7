package main

import (
	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
)

func newInfo() *cobra.Command {
	var s settings
	var format show.Format
	cmd := &cobra.Command{
		Use:   "info",
		Short: "Show what this device is",
		Long: `info shows what the agent tells the fleet this device is: model, serial number, system, kernel,
memory, disks and the health of its card, temperature and power, addresses, and whether it wants a
reboot. What the machine does not tell is left out. It needs no network and no running agent, and
knows therefore nothing of how far the clock is from the fleet's. Who the device is, is what its configuration says.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.optional(cmd)
			if err != nil {
				return err
			}
			dev, err := openMachine(cmd.Context(), c, nil, true)
			if err != nil {
				return err
			}
			defer dev.Close()
			info, err := agent.Self{Facts: dev.Facts(), Tools: dev.Tools()}.Describe(cmd.Context(), c.Device, identity())
			if err != nil {
				return err
			}
			if done, err := format.Write(cmd.OutOrStdout(), info); done || err != nil {
				return err
			}
			return show.Info(cmd.OutOrStdout(), info)
		},
	}
	s.flags(cmd)
	format.Flag(cmd.Flags())
	return cmd
}
