package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/wire"
)

func newDeviceEnroll() *cobra.Command {
	var a admin
	var life time.Duration
	var file string
	var servers []string
	cmd := &cobra.Command{
		Use:   "enroll DEVICE",
		Short: "Invite a device: write the file by which it can ask to be let in",
		Long: `enroll writes a file for the device, which is given to continuo-agent enroll there. Under one
invitation one request can be presented, until it ends. The file lets its holder ask and nothing
else; whoever else gets hold of it has another fingerprint. A new card or board of a device that
is known is enrolled in the same way, under the same name. It needs no connection.`,
		Args: oneDevice(0, 0, "one DEVICE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := theDevice(args)
			if err != nil {
				return err
			}
			if life < wire.MinInvitation || life > wire.MaxInvitation {
				return cli.Usagef("--for is %s: at least %s and at most %s", life, wire.MinInvitation, wire.MaxInvitation)
			}
			signer, _, dir, err := a.open()
			if err != nil {
				return err
			}
			t, err := dir.Invite(d, life, time.Now(), signer)
			if err != nil {
				return err
			}
			if len(servers) > 0 {
				t.Servers = servers
			}
			b, err := json.MarshalIndent(t, "", "  ")
			if err != nil {
				return err
			}
			if file == "" {
				file = name(d) + ".invitation"
			}
			f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				return fmt.Errorf("cannot write the invitation: %w; --file names another", err)
			}
			_, err = f.Write(append(b, '\n'))
			if cerr := f.Close(); err == nil {
				err = cerr
			}
			if err != nil {
				return fmt.Errorf("cannot write the invitation: %w", err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is good until %s, for one request\non the device:  continuo-agent enroll %[1]s\nthen here:      continuo device approve %[3]s\n", file, t.Until.Format(time.RFC3339), name(d))
			return err
		},
	}
	a.flags(cmd)
	f := cmd.Flags()
	f.DurationVar(&life, "for", wire.DefaultInvitation, "how long it is good: 1m to 4h")
	f.StringVar(&file, "file", "", "file to write (default DEVICE.invitation)")
	f.StringSliceVar(&servers, "at", nil, "URLs of the servers as the device reaches them (default as continuo up tells them)")
	return cmd
}

func newDeviceApprove() *cobra.Command {
	var a admin
	var fingerprint string
	var confirm, replace bool
	cmd := &cobra.Command{
		Use:   "approve DEVICE --fingerprint F",
		Short: "Let a device in that asks for it",
		Long: `approve signs that who asks is the device. Compare the fingerprint with the one that the device
itself shows: --fingerprint is that one, or --confirm says that you have. If the name has another
key already, --replace says that this one takes its place: the old credential is dead from then on,
and its connection is cut. Without any of them it only shows who asks, and ends with 0.`,
		Args: oneDevice(0, 0, "one DEVICE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, e, by, err := a.at(cmd.Context(), args)
			if err != nil {
				return err
			}
			defer f.Close()
			w, err := chooseWaiting(e, fingerprint)
			if err != nil {
				return err
			}
			if fingerprint == "" && !confirm {
				showDevice(cmd, e)
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "nothing is changed; let it in with --fingerprint %s\n", w.Fingerprint)
				return err
			}
			other := e.Key() != "" && e.Fingerprint != w.Fingerprint
			if other && !e.Retired && !replace {
				return cli.Usagef("cannot approve %s: it has another key (%s, board %s) and this one is of board %s; --replace takes that one's place and ends it", name(e.Device), e.Fingerprint, e.Board.Serial, w.Board.Serial)
			}
			if other {
				if err := by.revoke(cmd.Context(), e.Key()); err != nil {
					return err
				}
			}
			if _, err := f.Approve(cmd.Context(), e.Device, w, by.operators, by.signer, time.Now()); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is let in with the key %s\n", name(e.Device), w.Fingerprint)
			return err
		},
	}
	a.flags(cmd)
	cmd.Flags().StringVar(&fingerprint, "fingerprint", "", "fingerprint that the device shows")
	cmd.Flags().BoolVar(&confirm, "confirm", false, "the fingerprint that is shown is the device's")
	cmd.Flags().BoolVar(&replace, "replace", false, "end the key that the device had")
	return cmd
}

// chooseWaiting finds the request that is meant.
func chooseWaiting(e fleet.Enrolled, fingerprint string) (fleet.Waiting, error) {
	var fit []fleet.Waiting
	for _, w := range e.Waiting {
		if fingerprint == "" || w.Fingerprint == fingerprint {
			fit = append(fit, w)
		}
	}
	switch {
	case len(e.Waiting) == 0:
		return fleet.Waiting{}, fmt.Errorf("cannot approve %s: nobody asks to be it; invite it with continuo device enroll %[1]s", name(e.Device))
	case len(fit) == 0:
		var others []string
		for _, w := range e.Waiting {
			others = append(others, w.Fingerprint)
		}
		return fleet.Waiting{}, fmt.Errorf("cannot approve %s: who asks has another fingerprint (%s): somebody else holds the invitation, or it was mistyped", name(e.Device), strings.Join(others, ", "))
	case len(fit) > 1:
		return fleet.Waiting{}, cli.Usagef("%d ask to be %s: name one of them with --fingerprint, as continuo device show %[2]s tells them", len(fit), name(e.Device))
	}
	return fit[0], nil
}

func newDeviceReject() *cobra.Command {
	var a admin
	var fingerprint string
	var confirm bool
	cmd := &cobra.Command{
		Use: "reject DEVICE --confirm", Short: "Refuse who asks to be a device; the invitation is used up", Args: oneDevice(0, 0, "one DEVICE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, e, _, err := a.at(cmd.Context(), args)
			if err != nil {
				return err
			}
			defer f.Close()
			w, err := chooseWaiting(e, fingerprint)
			if err != nil {
				return err
			}
			if !confirm {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "would reject the key %s; do it with --confirm\n", w.Fingerprint)
				return err
			}
			if err := f.Reject(cmd.Context(), e.Device, w); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "the key %s was rejected\n", w.Fingerprint)
			return err
		},
	}
	a.flags(cmd)
	cmd.Flags().StringVar(&fingerprint, "fingerprint", "", "which one, if several ask")
	cmd.Flags().BoolVar(&confirm, "confirm", false, "do it")
	return cmd
}

func newDeviceRetire() *cobra.Command {
	var a admin
	var confirm bool
	cmd := &cobra.Command{
		Use:   "retire DEVICE --confirm",
		Short: "Take a device out of the fleet: its credential is dead, and its connection is cut",
		Long: `retire ends the credential of a device, for ever. The device itself goes on as it is; it only hears
nothing any more. Enrolled again, it makes another key. Without --confirm it only shows what it
would do, and ends with 0.`,
		Args: oneDevice(0, 0, "one DEVICE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, e, by, err := a.at(cmd.Context(), args)
			if err != nil {
				return err
			}
			defer f.Close()
			if !confirm {
				showDevice(cmd, e)
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "nothing is changed; retire it with --confirm")
				return err
			}
			key, err := f.Retire(cmd.Context(), e.Device, by.operators, by.signer, time.Now())
			if err != nil {
				return err
			}
			if err := by.revoke(cmd.Context(), key); err != nil {
				return fmt.Errorf("%w; it gets no other credential any more, but the one that it has still counts: do it again", err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is retired\n", name(e.Device))
			return err
		},
	}
	a.flags(cmd)
	cmd.Flags().BoolVar(&confirm, "confirm", false, "do it")
	return cmd
}
