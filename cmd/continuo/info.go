package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/show"
)

func newInfo() *cobra.Command {
	var c connection
	var format show.Format
	cmd := &cobra.Command{
		Use:   "info DEVICE",
		Short: "Show what a device says it is",
		Long: `info shows what a device says it is: model, serial number, system, kernel, memory, disks and the
health of its card, temperature and power, addresses, how far its clock is from the fleet's, and
whether it wants a reboot. No device is asked: it is what the device told last, and it tells again
when something changes.

It is the word of the device and no more. It fills in text templates on the device itself, and
selects nothing: which devices a manifest is for is not decided by what they say of themselves.`,
		Args: oneDevice(0, 0, "one DEVICE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, f, err := c.about(cmd.Context(), args)
			if err != nil {
				return err
			}
			defer f.Close()
			all, err := f.Info(cmd.Context(), d)
			switch {
			case err != nil:
				return err
			case len(all) == 0:
				return fmt.Errorf("cannot show what %s is: it has told nothing yet; continuo status %[1]s says whether it is heard of", name(d))
			case all[0].Info == nil:
				return fmt.Errorf("cannot show what %s is: what it told cannot be read: %s", name(d), all[0].Unreadable)
			}
			if written, err := format.Write(cmd.OutOrStdout(), all[0].Info); written || err != nil {
				return err
			}
			return show.Info(cmd.OutOrStdout(), *all[0].Info)
		},
	}
	c.flags(cmd)
	format.Flag(cmd.Flags())
	return cmd
}
