package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

func newApprove() *cobra.Command {
	var a asking
	var plan string
	var actions []string
	cmd := &cobra.Command{
		Use:   "approve DEVICE --plan ID [--action MANIFEST/SCORE...] --confirm",
		Short: "Sign that actions of a plan may happen, also those that cannot be undone",
		Long: `approve signs that actions of a plan may happen: those that the policies let happen only with a
signature, because they destroy data or remove more at once than a device does by itself. Each
approval is for exactly one action on exactly those resources, as the plan names them; if the
device finds anything else, it is refused. Without --action it is about every action of the plan
that waits for a signature. Without --confirm it only shows what it would sign, and ends with 0.`,
		Args: oneDevice(0, 0, "one DEVICE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := theDevice(args)
			if err != nil {
				return err
			}
			if !isPlanID(plan) {
				return cli.Usagef("give --plan ID, the 64 digits that continuo plan %s ends with, or the first 8 or more of them", name(d))
			}
			f, err := a.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer f.Close()
			p, known, err := findPlan(cmd.Context(), f, d, plan)
			if err != nil {
				return err
			}
			if !known {
				return noPlan("approve", plan, d)
			}
			chosen, err := chooseActions(p, actions)
			if err != nil {
				return err
			}
			op := a.operation(d, interpret.Operation{Verb: interpret.VerbApprove, Plan: p.ID, Approvals: approvalsOf(chosen)})
			if !a.confirm {
				words := fmt.Sprintf("let %s of plan %s happen", show.Plural(len(chosen), "action"), p.ID)
				p.Actions, p.Truncated, p.Unchanged = chosen, 0, 0
				return a.preview(cmd, preview{op, &p}, words, func() error { return show.Actions(cmd.OutOrStdout(), chosen) })
			}
			r, err := a.ask(cmd.Context(), f, d, op)
			if err != nil {
				return err
			}
			return a.answer(cmd, d, r)
		},
	}
	a.changing(cmd, "sign and ask for it")
	cmd.Flags().StringVar(&plan, "plan", "", "id of the plan, as continuo plan shows it, or its first digits, 8 or more (required)")
	cmd.Flags().StringSliceVar(&actions, "action", nil, "MANIFEST/SCORE of an action of the plan; may be given several times (default all that wait for a signature)")
	return cmd
}

// chooseActions finds the actions of a plan that were named, or those that wait for a signature.
func chooseActions(p interpret.Plan, names []string) (out []interpret.PlannedAction, err error) {
	var there []string
	for _, a := range p.Actions {
		full := a.Manifest + "/" + string(a.Score)
		there = append(there, full)
		if len(names) == 0 && signable(a) || slices.Contains(names, full) {
			out = append(out, a)
		}
	}
	for _, n := range names {
		if !slices.Contains(there, n) {
			return nil, cli.Usagef("the plan has no action for %q: it has %s", n, strings.Join(there, ", "))
		}
	}
	if left := namesOf(p, leftOver); len(out) == 0 && len(left) > 0 {
		return nil, fmt.Errorf("cannot approve anything: no action of the plan waits for a signature; to let what is left over be removed, name it: --action %s", strings.Join(left, ","))
	}
	if len(out) == 0 {
		return nil, errors.New("cannot approve anything: no action of the plan waits for a signature; --action names others")
	}
	return out, nil
}

func approvalsOf(actions []interpret.PlannedAction) (out []interpret.Approval) {
	for _, a := range actions {
		out = append(out, interpret.Approval{Manifest: a.Manifest, Score: a.Score, Action: a.Action, Effect: a.Effect,
			Resources: append([]score.Resource{}, a.Resources...), SpecDigest: a.SpecDigest})
	}
	return out
}
