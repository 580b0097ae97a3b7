package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

func newAdopt() *cobra.Command {
	return ofScores(interpret.VerbAdopt, "Let a device take over what is there and what its scores claim",
		`adopt lets a device take over what somebody else made and the scores of a manifest claim: a file
that was there before, a unit, a container. Its content is kept as a backup, and nothing is changed
by it; what differs from the scores is drift from then on, and the policy says what to do about it.
Without a SCORE it is about the whole manifest. Without --confirm it only shows what it would ask
for, and ends with 0.`, "take over what is there for ")
}

func newRelease() *cobra.Command {
	return ofScores(interpret.VerbRelease, "Let a device give up what its scores own: it stays",
		`release lets a device give up what the scores of a manifest own. It stays as it is, and is foreign
from then on: nothing corrects or removes it. Take the scores out of the manifest as well, or they
report a conflict as soon as it differs. Without a SCORE it is about the whole manifest. Without
--confirm it only shows what it would ask for, and ends with 0.`, "give up, and leave as it is, what it owns for ")
}

// ofScores is a command about scores of one manifest on one device.
func ofScores(verb interpret.Verb, short, long, words string) *cobra.Command {
	var a asking
	cmd := &cobra.Command{
		Use:   string(verb) + " DEVICE MANIFEST [SCORE...] --confirm",
		Short: short, Long: long,
		Args: oneDevice(1, -1, "a DEVICE and a MANIFEST, and SCOREs if not all of them are meant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := theDevice(args)
			if err != nil {
				return err
			}
			op := interpret.Operation{Verb: verb, Manifest: args[1]}
			for _, s := range args[2:] {
				op.Scores = append(op.Scores, score.ID(s))
			}
			f, err := a.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer f.Close()
			op = a.operation(d, op)
			if !a.confirm {
				return a.preview(cmd, preview{Operation: op}, words+about(op), func() error { return reported(cmd, f, d, op) })
			}
			r, err := a.ask(cmd.Context(), f, d, op)
			if err != nil {
				return err
			}
			return a.answer(cmd, d, r)
		},
	}
	a.changing(cmd, "ask for it")
	return cmd
}

// about names the scores of an operation.
func about(op interpret.Operation) string {
	if len(op.Scores) == 0 {
		return "manifest " + show.Text(op.Manifest)
	}
	var ids []string
	for _, s := range op.Scores {
		ids = append(ids, show.Text(op.Manifest+"/"+string(s)))
	}
	return strings.Join(ids, ", ")
}

// reported shows what the device reported last of the scores of an operation.
func reported(cmd *cobra.Command, f *fleet.Fleet, d fleet.Device, op interpret.Operation) error {
	states, err := f.Status(cmd.Context(), d)
	if err != nil {
		return err
	}
	st := interpret.DeviceStatus{}
	var names []string // of what it has of the kind that was named
	if s := states[0].Status; s != nil {
		for _, m := range s.Manifests {
			if m.Name != op.Manifest {
				names = append(names, m.Name)
				continue
			}
			m.Scores = slices.DeleteFunc(slices.Clone(m.Scores), func(s interpret.ScoreStatus) bool {
				return len(op.Scores) > 0 && !slices.Contains(op.Scores, s.ID)
			})
			st.Manifests = append(st.Manifests, m)
		}
	}
	if _, total := show.Converged(st); total == 0 {
		hint := ""
		if n, ok := score.Nearest(op.Manifest, names); ok && len(st.Manifests) == 0 {
			hint = fmt.Sprintf(", did you mean %q?", n)
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s has not reported any of them%s: it would be refused if that is still so\n", name(d), hint)
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), "as the device reported them last:")
	return show.Scores(cmd.OutOrStdout(), st)
}

func newRestore() *cobra.Command {
	var a asking
	cmd := &cobra.Command{
		Use:   "restore DEVICE BACKUP --confirm",
		Short: "Let a device put a backup back in its place",
		Long: `restore makes a file of a device what it was when a backup was kept: content, mode and owner.
What is there now is kept as a backup first. If a manifest wants the file otherwise, the device
corrects it at its next pass: unpublish or change that manifest first. Receipts and statuses name
backups; on the device, continuo-agent backups lists them. Without --confirm it only shows what it
would ask for, and ends with 0.`,
		Args: oneDevice(1, 1, "a DEVICE and a BACKUP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := theDevice(args)
			if err != nil {
				return err
			}
			f, err := a.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer f.Close()
			op := a.operation(d, interpret.Operation{Verb: interpret.VerbRestore, Backup: args[1]})
			if !a.confirm {
				return a.preview(cmd, preview{Operation: op}, "put backup "+show.Text(op.Backup)+" back in its place", func() error {
					return origin(cmd.Context(), cmd, f, d, op.Backup)
				})
			}
			r, err := a.ask(cmd.Context(), f, d, op)
			if err != nil {
				return err
			}
			return a.answer(cmd, d, r)
		},
	}
	a.changing(cmd, "ask for it")
	return cmd
}

// origin tells which receipt names a backup.
func origin(ctx context.Context, cmd *cobra.Command, f *fleet.Fleet, d fleet.Device, backup string) error {
	all, err := f.History(ctx, d, 0)
	if err != nil {
		return err
	}
	for _, r := range all {
		for _, a := range r.Actions {
			if a.Backup == backup {
				what := "a restore"
				if len(a.Resources) > 0 {
					what = show.Text(string(a.Resources[0])) + ", which " + show.Text(a.Manifest+"/"+string(a.Score)) + " replaced"
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "it is of %s, kept by %s %s\n", what, show.Text(string(r.Verb)), show.Text(r.ID))
				return err
			}
		}
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), "no receipt that the fleet has names it; the device may have it all the same")
	return err
}

func newRollbackCheck() *cobra.Command {
	var a asking
	cmd := &cobra.Command{
		Use:   "rollback-check DEVICE",
		Short: "Let a device prove that every rollback that is declared could be done",
		Long: `rollback-check asks a device to look, for every manifest with onFailure: rollBack, whether its last
good version can be read, and whether everything that it needs from elsewhere, such as images, is
still there. Nothing is changed by it. It ends with 1 if a rollback could not be done, and names
what is missing.`,
		Args: oneDevice(0, 0, "one DEVICE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := theDevice(args)
			if err != nil {
				return err
			}
			f, err := a.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer f.Close()
			r, err := a.ask(cmd.Context(), f, d, a.operation(d, interpret.Operation{Verb: interpret.VerbRollbackCheck}))
			if err != nil {
				return err
			}
			if a.format != "" || r.Result != interpret.ResultDone && len(r.Actions) == 0 {
				return a.answer(cmd, d, r)
			}
			if err := show.RollbackCheck(cmd.OutOrStdout(), r.Actions); err != nil {
				return err
			}
			return done(r)
		},
	}
	a.flags(cmd)
	return cmd
}
