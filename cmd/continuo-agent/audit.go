package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/config"
)

// leaveAudit writes down, for the audit of this device, that somebody has asked cmd to show what is on it. The agent, which
// has the books, finds it with its next pass. That it could not be written down hides nothing and stops nothing.
func leaveAudit(cmd *cobra.Command, c config.Config) {
	if err := agent.LeaveAudit(c.StateDir(), agent.By(cmd.Name(), cmd.Flags().Args()...)); err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", cmd.Root().Name(), err)
	}
}
