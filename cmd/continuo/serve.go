package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/fleet/localnats"
)

func newServe() *cobra.Command {
	var c connection
	var control string
	var trusted []string
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the control service of a fleet: answer heartbeats, and notice who is silent",
		Long: `serve answers the heartbeats of devices. It has no authority over any of them, keeps
nothing that it could not read again, and any number of it may run. continuo up has one.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := fleet.ServeOptions{Interval: interval, Notice: func(err error) { fmt.Fprintln(cmd.ErrOrStderr(), "continuo:", err) }}
			signer, err := c.key(control, "control.nk", "--control-key")
			if err != nil {
				return err
			}
			o.Signer = signer
			if len(trusted) == 0 {
				if o.Root, err = c.known(""); err != nil {
					return err
				}
			}
			if len(trusted) == 0 && o.Root.Metadata.Version == 0 {
				operator, err := c.signing("")
				if err != nil {
					return fmt.Errorf("%w; or name the public keys with --trust", err)
				}
				public, err := operator.PublicKey()
				if err != nil {
					return fmt.Errorf("cannot read the operator key: %w", err)
				}
				trusted = []string{public}
			}
			if o.Keys, err = fleet.DocumentKeys(trusted...); err != nil {
				return &cli.UsageError{Err: err}
			}
			f, err := c.connectAs(cmd.Context(), localnats.Dir.Control, false)
			if err != nil {
				return err
			}
			defer f.Close()
			fmt.Fprintln(cmd.OutOrStdout(), "control service is running")
			if err := f.Serve(cmd.Context(), o); err != nil && cmd.Context().Err() == nil {
				return err
			}
			return nil
		},
	}
	c.flags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&control, "control-key", "", "file with the seed of the control key (default DATA/keys/control.nk)")
	fl.StringSliceVar(&trusted, "trust", nil, "public keys that may sign documents (default those of the trust root, else that of DATA/keys/operator.nk)")
	fl.DurationVar(&interval, "interval", 0, "time between heartbeats of a device (default 30s)")
	return cmd
}

func newSetup() *cobra.Command {
	var c connection
	var replicas int
	var format show.Format
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Create the streams of a fleet on an existing NATS server",
		Long: `setup creates the streams that are missing. It changes and deletes nothing that is there:
what differs is shown, and is for a person to judge. continuo up does this by itself.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if replicas != 1 && replicas != 3 && replicas != 5 {
				return cli.Usagef("--replicas is %d: it is 1, or 3 or 5 on a cluster", replicas)
			}
			f, err := c.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer f.Close()
			res, err := f.Setup(cmd.Context(), replicas)
			if err != nil {
				return err
			}
			if done, err := format.Write(cmd.OutOrStdout(), res); err != nil {
				return err
			} else if !done {
				for _, name := range res.Created {
					fmt.Fprintln(cmd.OutOrStdout(), "created", name)
				}
				for _, d := range res.Differences {
					fmt.Fprintln(cmd.OutOrStdout(), "differs:", d)
				}
				if len(res.Created)+len(res.Differences) == 0 {
					fmt.Fprintln(cmd.OutOrStdout(), "every stream is there and as it must be")
				}
			}
			if len(res.Differences) > 0 {
				return cli.ErrDiffers
			}
			return nil
		},
	}
	c.flags(cmd)
	cmd.Flags().IntVar(&replicas, "replicas", 1, "copies of every stream: 1, or 3 on a cluster")
	format.Flag(cmd.Flags())
	return cmd
}
