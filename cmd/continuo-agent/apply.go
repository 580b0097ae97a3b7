package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology/pi"
)

func newApply() *cobra.Command {
	var o once
	var confirm bool
	cmd := &cobra.Command{
		Use:   "apply -f FILE --confirm",
		Short: "Make one manifest true on this device, without any server",
		Long: `apply makes one manifest true. Whom the manifest is for is not checked, and --confirm
is the authority for the changes: without it apply only shows them, like plan, and ends with 0.
What was there before is kept as a backup before it is overwritten; data is never destroyed.
What other manifests own stays theirs, and nothing is removed that this one does not name.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.file == "" {
				return cli.Usagef("give a manifest: -f FILE")
			}
			if !confirm {
				p, err := o.plan(cmd)
				if err != nil {
					return err
				}
				if err := writePlan(cmd, p, o.format); err != nil {
					return err
				}
				if p.Differs() {
					fmt.Fprintln(cmd.ErrOrStderr(), "nothing was changed: this is a preview; add --confirm to apply it")
				}
				if slices.ContainsFunc(p.Actions, consented) {
					fmt.Fprintln(cmd.ErrOrStderr(), "--confirm is the consent to what waits for one, too: what was there before is kept as a backup and overwritten; no data is destroyed")
				}
				return nil
			}
			st, err := o.apply(cmd)
			if err != nil {
				return err
			}
			return showStatus(cmd, st, o.format, "")
		},
	}
	o.flags(cmd, "manifest to make true, YAML or JSON; - is standard input (required)")
	cmd.Flags().BoolVar(&confirm, "confirm", false, "make the changes; without it they are only shown")
	return cmd
}

// consented tells whether --confirm lets an action happen that waits for consent. What is no longer named is not removed by it.
func consented(a interpret.PlannedAction) bool {
	return a.Decision != interpret.DecideApply && a.Action != interpret.ActionNone && a.Cause != interpret.CauseAbsent
}

// byHand is what records call what is done now by whoever stands before the device.
func byHand() string { return "by-hand-" + rand.Text() }

func (o *once) apply(cmd *cobra.Command) (st interpret.DeviceStatus, err error) {
	c, in, err := o.input(cmd)
	if err != nil {
		return st, err
	}
	l, err := openAt(cmd, c, store.Dir(c.StateDir()), false)
	if err != nil {
		return st, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	l.tell(cmd)
	if len(c.Servers) > 0 { // its fleet proves that a change did not cut the device off
		trust, err := trustOf(c)
		if err != nil {
			return st, err
		}
		link, err := newLink(c, trust, identity(), nil)
		if err != nil {
			return st, err
		}
		l.runner.Reach = link.Reach
	}
	if err := sweep(cmd.Context(), l.dev.Device, l.books); err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", cmd.Root().Name(), err)
	}
	if err := l.runner.Recover(cmd.Context()); err != nil {
		return st, err
	}
	st, err = l.runner.Confirm(cmd.Context(), *in, byHand())
	// What other manifests own is not left over: this command knows nothing of them.
	st.Orphans = slices.DeleteFunc(st.Orphans, func(o interpret.Orphan) bool { return o.Manifest != in.Assignment.Spec.Manifests[0].Metadata.Name })
	if err != nil {
		return st, fmt.Errorf("cannot keep the books: %w", err)
	}
	return st, nil
}

// sweep removes what a killed apply left behind beside the files it was writing.
func sweep(ctx context.Context, dev *pi.Device, books *store.Store) error {
	var dirs []string
	for _, a := range books.OpenActions() {
		if p, ok := strings.CutPrefix(a.Entry.Resource, "file:"); ok {
			dirs = append(dirs, path.Dir(p))
		}
	}
	_, err := dev.SweepTemp(ctx, dirs)
	return err
}
