package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
)

func newRequests() *cobra.Command {
	var c connection
	var format show.Format
	cmd := &cobra.Command{
		Use:   "requests [DEVICE...]",
		Short: "List what devices wait for a person to approve",
		Long: `requests lists the actions that devices do not do by themselves, because they destroy data, remove
more at once than a device does unasked, or because the policy asks for consent. Each is one request;
continuo approve REQUEST shows it and lets it happen, and with --reject ends it. No device is asked:
it is what they wrote down last, and what is done, rejected or no longer wanted is not in the list.

Exit status: 0 nothing waits, 1 something does, 2 wrong usage.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			devices, err := parseDevices(args)
			if err != nil {
				return err
			}
			f, err := c.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer f.Close()
			return listRequests(cmd, f, format, devices...)
		},
	}
	c.flags(cmd)
	format.Flag(cmd.Flags())
	return cmd
}

// listRequests shows the open requests, and what of them cannot be shown.
func listRequests(cmd *cobra.Command, f *fleet.Fleet, format show.Format, devices ...fleet.Device) error {
	all, err := f.Requests(cmd.Context(), devices...)
	if err != nil {
		return err
	}
	for _, u := range all.Unreadable {
		fmt.Fprintf(cmd.ErrOrStderr(), "cannot read what a device waits for: %s\n", show.Plain(u))
	}
	written, err := format.Write(cmd.OutOrStdout(), all)
	if err != nil {
		return err
	}
	switch {
	case written:
	case len(all.Open)+all.More == 0:
		_, err = fmt.Fprintln(cmd.OutOrStdout(), "no request is open")
	default:
		err = show.Requests(cmd.OutOrStdout(), requestLines(all.Open...))
		if all.More > 0 && err == nil {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "and %s that the documents have no room for\n", show.Plural(all.More, "more request"))
		}
	}
	if err == nil && len(all.Open) > 0 && !written {
		fmt.Fprintln(cmd.ErrOrStderr(), "to look at one: continuo approve REQUEST; to sign for it: continuo approve REQUEST --confirm; to end it: continuo approve REQUEST --reject --confirm")
	}
	if err == nil && len(all.Open)+all.More > 0 {
		err = cli.ErrDiffers
	}
	return err
}

func requestLines(requests ...fleet.Request) (out []show.RequestLine) {
	for _, q := range requests {
		out = append(out, show.RequestLine{Device: name(q.Device), Request: q.ApprovalRequest})
	}
	return out
}
