package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/score"
)

func newWatch() *cobra.Command {
	var c connection
	var asJSON show.Format
	cmd := &cobra.Command{
		Use:   "watch [DEVICE...]",
		Short: "Show every change of how the devices are, one a line",
		Long: `watch shows how every device is now, and then a line whenever one changes, until it is
stopped. A line is the time, the device, its state (see continuo status --help), what was
published for it, and how many of its scores hold. With -o json it is the whole state.`,
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
			var failed error
			err = f.Watch(cmd.Context(), devices, func(s fleet.DeviceState) bool {
				failed = event(cmd, s, asJSON)
				return failed == nil
			})
			if cmd.Context().Err() != nil {
				return nil // stopped, as it is meant to be
			}
			if err == nil {
				err = failed
			}
			return err
		},
	}
	c.flags(cmd)
	asJSON.Flag(cmd.Flags())
	return cmd
}

// event writes one line, or one document.
func event(cmd *cobra.Command, s fleet.DeviceState, format show.Format) error {
	out := cmd.OutOrStdout()
	switch format {
	case show.JSON: // one a line, for programs that read lines
		line, err := score.Encode(s)
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", line)
		}
		return err
	case show.YAML:
		fmt.Fprintln(out, "---")
		_, err := format.Write(out, s)
		return err
	}
	r := row(s)
	line := fmt.Sprintf("%s %s %s, generation %s, %s converged", time.Now().UTC().Format(time.RFC3339), r[0], r[1], r[2], r[3])
	if reason := r[len(r)-1]; reason != "" {
		line += ": " + reason
	}
	_, err := fmt.Fprintln(out, line)
	return err
}
