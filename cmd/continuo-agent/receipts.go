package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

func newReceipts() *cobra.Command {
	var s settings
	var format show.Format
	cmd := &cobra.Command{
		Use:   "receipts [ID]",
		Short: "Show what was done to this device, and by whose authority",
		Long: `receipts lists the records that this device keeps of what was done to it, the newest first:
of operations that somebody asked for, and of passes that changed something (VERB is pass). With
an ID, as in RECEIPT, it shows one of them: every action, its fields, a diff of text, and the backup
of what was there.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("name one receipt, or none for all")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := s.look(cmd)
			if err != nil {
				return err
			}
			defer l.close()
			if len(args) == 1 {
				r, err := l.receipt(args[0])
				if err != nil {
					return err
				}
				if done, err := format.Write(cmd.OutOrStdout(), r); done || err != nil {
					return err
				}
				return show.Receipt(cmd.OutOrStdout(), r)
			}
			all, err := l.receipts(cmd)
			if err != nil {
				return err
			}
			if done, err := format.Write(cmd.OutOrStdout(), all); done || err != nil {
				return err
			}
			if len(all) == 0 {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "nothing was done yet, or so long ago that its record is gone")
				return err
			}
			return show.Receipts(cmd.OutOrStdout(), all)
		},
	}
	s.flags(cmd)
	format.Flag(cmd.Flags())
	return cmd
}

func (l *look) receipt(id string) (r interpret.Receipt, err error) {
	body, ok, err := l.books.Receipt(id)
	switch {
	case err != nil:
		return r, err
	case !ok:
		return r, fmt.Errorf("cannot find receipt %q on this device: continuo-agent receipts lists what there is", id)
	}
	if err := score.Decode(body, &r); err != nil {
		return r, fmt.Errorf("cannot read receipt %s: %w", id, err)
	}
	return r, nil
}

// receipts are all that can be read, the newest first. The others are told on stderr.
func (l *look) receipts(cmd *cobra.Command) ([]interpret.Receipt, error) {
	infos, err := l.books.Receipts()
	if err != nil {
		return nil, err
	}
	out := []interpret.Receipt{}
	for _, info := range slices.Backward(infos) {
		r, err := l.receipt(info.ID)
		if err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", cmd.Root().Name(), err)
			continue
		}
		out = append(out, r)
	}
	return out, nil
}

func newRollbackCheck() *cobra.Command {
	var s settings
	var format show.Format
	cmd := &cobra.Command{
		Use:   "rollback-check",
		Short: "Prove that every rollback that is declared could be done now",
		Long: `rollback-check looks, for every manifest with onFailure: rollBack, whether its last good version
can be read, and whether everything that it needs from elsewhere, such as images, is still here. It
changes nothing. It ends with 1 if a rollback could not be done, and names what is missing.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.read(cmd)
			if err != nil {
				return err
			}
			l, err := lookAt(cmd, c)
			if err != nil {
				return err
			}
			defer l.close()
			l.tell(cmd)
			in, err := l.accepted()
			if err != nil {
				return fmt.Errorf("cannot check rollbacks: %w", err)
			}
			found := l.runner.CheckRollbacks(cmd.Context(), in)
			done, err := format.Write(cmd.OutOrStdout(), append([]interpret.ReceiptAction{}, found...))
			if !done {
				err = show.RollbackCheck(cmd.OutOrStdout(), found)
			}
			if err == nil && slices.ContainsFunc(found, func(a interpret.ReceiptAction) bool { return a.Outcome == interpret.Failed }) {
				err = cli.ErrDiffers
			}
			return err
		},
	}
	s.flags(cmd)
	format.Flag(cmd.Flags())
	return cmd
}
