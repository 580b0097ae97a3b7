package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
)

func newKeysPublish() *cobra.Command {
	var c connection
	var confirm bool
	var format show.Format
	cmd := &cobra.Command{
		Use:   "publish --confirm",
		Short: "Hand the next version of the trust root on to the devices",
		Long: `publish makes the version that was made with continuo keys the one that counts, if enough root keys have
signed it, and keeps it beside the others. Devices take it as soon as they are connected, one version
after the other, and never go back. Versions that the store has lost are put there again, and those that
others published are kept here. Without --confirm it only shows what would change, and ends with 0.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := roots{data: c.data, dir: c.root, format: format}
			dir, chain, draft, drafted, err := r.read()
			if err != nil {
				return err
			}
			f, err := c.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer f.Close()
			if confirm {
				if err := f.KeepRoots(cmd.Context(), chain); err != nil {
					return err
				}
			}
			others, err := f.FollowRoots(cmd.Context(), chain.Last())
			if err != nil {
				return err
			}
			if len(others) > 0 {
				return overtaken(cmd, dir, chain.Last(), others, draft, drafted)
			}
			if !drafted {
				fmt.Fprintf(cmd.ErrOrStderr(), "version %d is published, and no other one is being made (continuo keys add, rotate, revoke, require)\n", chain.Last().Metadata.Version)
				return nil
			}
			next, err := fleet.Follows(chain.Last(), draft.Envelope)
			if err != nil {
				return fmt.Errorf("cannot publish version %d of the trust root: no device would follow it: %w; continuo keys sign adds a signature", draft.Metadata.Version, err)
			}
			if done, err := format.Write(cmd.OutOrStdout(), next); err != nil {
				return err
			} else if !done {
				fmt.Fprintf(cmd.OutOrStdout(), "version %d of the trust root of fleet %s\n", next.Metadata.Version, show.Text(next.Metadata.Name))
				for _, line := range chain.Last().Changes(next) {
					fmt.Fprintln(cmd.OutOrStdout(), "  "+show.Text(line))
				}
			}
			if !confirm {
				fmt.Fprintln(cmd.ErrOrStderr(), "nothing was published: enough root keys have signed, and this is a preview; add --confirm to publish it")
				return nil
			}
			if _, err := f.PublishRoot(cmd.Context(), chain.Last(), draft.Envelope); err != nil {
				return err
			}
			if err := errors.Join(dir.Keep(draft), dir.DropDraft()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "published, and kept as %s\n", dir.File(next.Metadata.Version))
			return nil
		},
	}
	c.flags(cmd)
	cmd.Flags().BoolVar(&confirm, "confirm", false, "publish it; without it the change is only shown")
	format.Flag(cmd.Flags())
	return cmd
}

// overtaken keeps what others have published. A version that was made here meanwhile is to be made again, unless it is theirs.
func overtaken(cmd *cobra.Command, dir fleet.RootDir, before fleet.Root, others fleet.Chain, draft fleet.SignedRoot, drafted bool) error {
	for _, s := range others {
		if err := dir.Keep(s); err != nil {
			return err
		}
	}
	if err := dir.DropDraft(); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "version %d is published, and kept as %s:\n", others.Last().Metadata.Version, dir.File(others.Last().Metadata.Version))
	tell(cmd, before, others.Last())
	if drafted && string(draft.Envelope.Statement) != string(others[0].Envelope.Statement) {
		return fmt.Errorf("cannot publish version %d of the trust root: somebody else did meanwhile: look at it, and make the change again", draft.Metadata.Version)
	}
	return nil
}
