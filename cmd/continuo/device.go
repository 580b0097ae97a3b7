package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/fleet/localnats"
	"github.com/continuo-fleet/continuo/internal/access"
	"github.com/continuo-fleet/continuo/internal/wire"
)

func newDevice() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "device",
		Short: "Let devices into the fleet, and take them out",
		Long: `device is about who a device is: the key of its connection, which it makes itself and never sends,
and the serial number of its board. An operator invites it (enroll), compares the fingerprint of
the key that asks with the one that the device shows, and lets it in (approve).`,
		Args: cobra.ArbitraryArgs, RunE: cli.Group,
	}
	cmd.AddCommand(newDeviceEnroll(), newDeviceList(), newDeviceShow(), newDeviceApprove(), newDeviceReject(), newDeviceRetire())
	return cmd
}

// admin is what these commands have in common: the directory with the keys, and a connection to its server.
type admin struct {
	key string
	connection
}

func (a *admin) flags(cmd *cobra.Command) {
	dataFlag(cmd, &a.connection.data)
	cmd.Flags().StringVar(&a.key, "key", "", "file with the seed of the operator key (default DATA/keys/operator.nk)")
}

// open gives the operator's key, whose signatures count, and the directory.
func (a *admin) open() (signer nkeys.KeyPair, operators fleet.KeySet, dir localnats.Dir, err error) {
	path, err := dataDir(a.connection.data)
	if err != nil {
		return nil, operators, "", err
	}
	if signer, err = a.signing(a.key); err != nil {
		return nil, operators, "", err
	}
	operators, err = localnats.Dir(path).Operators()
	return signer, operators, localnats.Dir(path), err
}

// look is the devices as they are now, and what is needed to change them.
func (a *admin) look(ctx context.Context) (f *fleet.Fleet, devices []fleet.Enrolled, decide decider, err error) {
	signer, operators, dir, err := a.open()
	if err != nil {
		return nil, nil, decide, err
	}
	if f, err = a.connectAs(ctx, localnats.Dir.Control, false); err != nil {
		return nil, nil, decide, err
	}
	if devices, err = f.Devices(ctx, operators, time.Now()); err != nil {
		f.Close()
		return nil, nil, decide, err
	}
	return f, devices, decider{signer, operators, dir}, nil
}

// A decider is what signs for a device, and revokes.
type decider struct {
	signer    nkeys.KeyPair
	operators fleet.KeySet
	dir       localnats.Dir
}

func (d decider) revoke(ctx context.Context, key string) error {
	return d.dir.Revoke(ctx, access.Fleet, key)
}

// at is the one device that a command is about.
func (a *admin) at(ctx context.Context, args []string) (f *fleet.Fleet, e fleet.Enrolled, decide decider, err error) {
	d, err := theDevice(args)
	if err != nil {
		return nil, e, decide, err
	}
	f, devices, decide, err := a.look(ctx)
	return f, find(devices, d), decide, err
}

func find(devices []fleet.Enrolled, d fleet.Device) fleet.Enrolled {
	for _, e := range devices {
		if e.Device == d {
			return e
		}
	}
	return fleet.Enrolled{Device: d}
}

func newDeviceList() *cobra.Command {
	var a admin
	var pending bool
	var format show.Format
	cmd := &cobra.Command{
		Use: "list", Short: "List the devices that were let in, and those that ask for it", Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, devices, _, err := a.look(cmd.Context())
			if err != nil {
				return err
			}
			defer f.Close()
			shown := make([]fleet.Enrolled, 0, len(devices))
			for _, e := range devices {
				if !pending || len(e.Waiting) > 0 {
					shown = append(shown, e)
				}
			}
			if done, err := format.Write(cmd.OutOrStdout(), shown); done || err != nil {
				return err
			}
			if len(shown) == 0 {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "no device; continuo device enroll NAME invites one")
				return err
			}
			t := show.NewTable("DEVICE", "STATE", "BOARD", "KEY")
			for _, e := range shown {
				if stateOf(e) != "asks" {
					t.Row(name(e.Device), stateOf(e), e.Board.Serial, e.Fingerprint)
				}
				for _, w := range e.Waiting {
					t.Row(name(e.Device), "asks", w.Board.Serial, w.Fingerprint)
				}
			}
			return t.Write(cmd.OutOrStdout())
		},
	}
	a.flags(cmd)
	cmd.Flags().BoolVar(&pending, "pending", false, "only those that ask to be let in")
	format.Flag(cmd.Flags())
	return cmd
}

// stateOf is one word for a device.
func stateOf(e fleet.Enrolled) string {
	switch {
	case e.Unusable != "":
		return "unusable"
	case e.Retired:
		return "retired"
	case e.Key() != "":
		return "enrolled"
	}
	return "asks"
}

func newDeviceShow() *cobra.Command {
	var a admin
	var format show.Format
	cmd := &cobra.Command{
		Use: "show DEVICE", Short: "Show who a device is, and who asks to be it", Args: oneDevice(0, 0, "one DEVICE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, e, _, err := a.at(cmd.Context(), args)
			if err != nil {
				return err
			}
			defer f.Close()
			if done, err := format.Write(cmd.OutOrStdout(), e); done || err != nil {
				return err
			}
			showDevice(cmd, e)
			return nil
		},
	}
	a.flags(cmd)
	format.Flag(cmd.Flags())
	return cmd
}

func showDevice(cmd *cobra.Command, e fleet.Enrolled) {
	out := cmd.OutOrStdout()
	switch {
	case e.Unusable != "":
		fmt.Fprintf(out, "%s: what is stored of it cannot be used: %s\n", name(e.Device), show.Plain(e.Unusable))
	case e.Key() == "":
		fmt.Fprintf(out, "%s was never let in\n", name(e.Device))
	default:
		fmt.Fprintf(out, "%s is %s since %s\n", name(e.Device), stateOf(e), e.Approved.UTC().Format(time.RFC3339))
		showBoard(cmd, e.Fingerprint, e.Board)
	}
	for _, w := range e.Waiting {
		fmt.Fprintf(out, "asks since %s", w.Since.UTC().Format(time.RFC3339))
		if !w.Until.IsZero() {
			fmt.Fprintf(out, ", under an invitation that is good until %s", w.Until.UTC().Format(time.RFC3339))
		}
		fmt.Fprintln(out)
		showBoard(cmd, w.Fingerprint, w.Board)
	}
}

func showBoard(cmd *cobra.Command, fingerprint string, b wire.Board) {
	for _, f := range [][2]string{{"key", fingerprint}, {"board", b.Serial}, {"model", b.Model}, {"host name", b.Hostname}, {"machine id", b.Machine}} {
		if f[1] != "" {
			fmt.Fprintf(cmd.OutOrStdout(), "  %-10s %s\n", f[0], show.Plain(f[1]))
		}
	}
}
