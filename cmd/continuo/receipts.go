package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
)

// done turns a receipt into the exit code.
func done(r interpret.Receipt) error {
	if r.Result != interpret.ResultDone {
		return cli.ErrDiffers
	}
	return nil
}

func newReceipts() *cobra.Command {
	var c connection
	var format show.Format
	var limit int
	cmd := &cobra.Command{
		Use:   "receipts DEVICE [ID]",
		Short: "Show what came of the operations that a device was asked for",
		Long: `receipts lists what came of the operations that a device was asked for, the newest first. With an
ID it shows one receipt: every action with its fields, a diff of text, digests and backups. The
device is not asked: what it sent is read from the fleet's journal. continuo history shows as well
what a device did without being asked.`,
		Args: oneDevice(0, 1, "a DEVICE, and the ID of a receipt if one is meant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, f, err := c.about(cmd.Context(), args)
			if err != nil {
				return err
			}
			defer f.Close()
			if len(args) == 1 {
				all, err := f.Receipts(cmd.Context(), d, limit)
				if err != nil {
					return err
				}
				return listReceipts(cmd, d, all, format)
			}
			r, known, err := f.Receipt(cmd.Context(), d, args[1])
			if err != nil {
				return err
			}
			if !known {
				return fmt.Errorf("cannot find receipt %q: %s has not sent it, or it is too old; continuo status %[2]s says whether the device is heard of", args[1], name(d))
			}
			if written, err := format.Write(cmd.OutOrStdout(), r); written || err != nil {
				return err
			}
			return show.Receipt(cmd.OutOrStdout(), r)
		},
	}
	c.flags(cmd)
	cmd.Flags().IntVar(&limit, "limit", 50, "how many are listed, 0 for all that are kept")
	format.Flag(cmd.Flags())
	return cmd
}

func newHistory() *cobra.Command {
	var c connection
	var format show.Format
	var limit int
	cmd := &cobra.Command{
		Use:   "history DEVICE",
		Short: "Show what a device did, asked or by itself",
		Long: `history lists what a device did, the newest first: operations that it was asked for, and passes in
which it changed something by itself, because a manifest is new or because the device was changed by
somebody else (VERB is pass). RESULT is done, failed, refused, conflict (another operation had this
id), or interrupted. continuo receipts DEVICE ID, with the id in RECEIPT, shows one in full.`,
		Args: oneDevice(0, 0, "one DEVICE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, f, err := c.about(cmd.Context(), args)
			if err != nil {
				return err
			}
			defer f.Close()
			all, err := f.History(cmd.Context(), d, limit)
			if err != nil {
				return err
			}
			return listReceipts(cmd, d, all, format)
		},
	}
	c.flags(cmd)
	cmd.Flags().IntVar(&limit, "limit", 50, "how many are listed, 0 for all that are kept")
	format.Flag(cmd.Flags())
	return cmd
}

func listReceipts(cmd *cobra.Command, d fleet.Device, all []interpret.Receipt, format show.Format) error {
	if written, err := format.Write(cmd.OutOrStdout(), append([]interpret.Receipt{}, all...)); written || err != nil {
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s has sent no receipt; continuo status %[1]s says whether it is heard of\n", name(d))
		return err
	}
	return show.Receipts(cmd.OutOrStdout(), all)
}
