// Command continuo is the operator's: it validates and publishes manifests, reads back
// how the devices are, and runs a server for one machine. It holds flags and wiring
// only; package fleet does the work.
package main

import (
	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
)

func main() { cli.Main(newRoot()) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "continuo",
		Short: "Keep a fleet of devices in the state that you wrote down",
		Long: `continuo publishes manifests to devices over NATS and reads back how the devices are.

It finds the server as the NATS CLI does: flags, then NATS_URL, NATS_CONTEXT and NATS_CREDS,
then the server that "continuo up" runs on this machine, then the selected NATS context.

Every command that changes something for a device only shows a preview without --confirm, and
ends with 0. The words that it shows are told by continuo status --help and continuo plan --help.

Exit status: 0 done and nothing differs, 1 something differs, failed or has not converged,
2 the command or its input is wrong.`,
		Args: cobra.ArbitraryArgs,
		RunE: cli.Group,
	}
	root.AddCommand(newUp(), newSetup(), newServe(), newKeys(), newUser(), newValidate(), newExplain(), newPublish(), newSign(), newUnpublish(), newCollect(), newStatus(), newInfo(), newWatch(),
		newPlan(), newInstall(), newRequests(), newApprove(), newDevice(), newAdopt(), newRelease(), newRestore(), newRollbackCheck(), newReceipts(), newHistory(), newAudit(),
		newDemo(), cli.VersionCommand())
	return root
}
