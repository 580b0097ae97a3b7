// Command continuo-agent is the device's binary: the daemon that keeps a device as its
// owner wrote it down, and commands that do the same once, by hand. It holds flags and
// wiring only; package agent does the work.
package main

import (
	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
)

func main() {
	hide()
	cli.Main(newRoot())
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "continuo-agent",
		Short: "Keep this device in the state that its owner wrote down",
		Long: `continuo-agent makes a device what a manifest says and keeps it so.

As a service it takes signed manifests from its fleet (continuo-agent run).
By hand it plays one manifest, without any server (continuo-agent plan, apply).
What changes the device by hand only shows a preview without --confirm, and ends with 0.

Exit status: 0 nothing differs, 1 something differs, failed or has not converged,
2 the command or its input is wrong.`,
		Args: cobra.ArbitraryArgs,
		RunE: cli.Group,
	}
	root.AddCommand(newRun(), newEnroll(), newPlan(), newApply(), newStatus(), newInventory(), newExport(), newSecrets(), newBackups(), newRestore(), newReceipts(),
		newRollbackCheck(), newRevert(), newJobEnded(), newInfo(), newKinds(), newUnit(), cli.VersionCommand())
	return root
}
