// Command continuo is the operator's: it validates and publishes manifests, reads back
// how the devices are, and runs a server for one machine. It holds flags and wiring
// only; package fleet does the work.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole command, for main and for tests.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(ctx, newRoot(), args, stdin, stdout, stderr)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "continuo",
		Short: "Keep a fleet of devices in the state that you wrote down",
		Long: `continuo publishes manifests to devices over NATS and reads back how the devices are.

It finds the server as the NATS CLI does: flags, then NATS_URL, NATS_CONTEXT and NATS_CREDS,
then the server that "continuo up" runs on this machine, then the selected NATS context.

Exit status: 0 done and nothing differs, 1 something differs, failed or has not converged,
2 the command or its input is wrong.`,
		Args: cobra.ArbitraryArgs,
		RunE: cli.Group,
	}
	root.AddCommand(newUp(), newSetup(), newServe(), newValidate(), newExplain(), newPublish(), newStatus(), newWatch(),
		newDemo(), cli.VersionCommand())
	return root
}
