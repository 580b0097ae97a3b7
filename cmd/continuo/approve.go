package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// approving is what continuo approve is asked to do.
type approving struct {
	asking
	plan    string
	actions []string
	reject  bool
}

func newApprove() *cobra.Command {
	var a approving
	cmd := &cobra.Command{
		Use:   "approve REQUEST [DEVICE] --confirm",
		Short: "Sign that what a device waits for may happen, also what cannot be undone",
		Long: `approve signs that an action may happen which a device does not do by itself, because it destroys
data, removes more at once than a device does unasked, or because the policy asks for consent.

Without arguments it lists the open requests, as continuo requests does. A REQUEST is its id, or the
first 8 or more digits of it. The signature is for exactly that action on exactly those resources; if
the device finds anything else, it refuses it. With --reject nothing happens, and the device does not
ask for the same again. Without --confirm it only shows what it would sign, and ends with 0.

To sign elsewhere, or by several people, write it to a file with --out (and --unsigned, if no key is
here), add signatures with continuo sign, also those of ssh-keygen, and ask for it with continuo publish.

With --plan it is about actions of a plan (continuo plan DEVICE): approve DEVICE --plan ID. Without
--action those are all that wait for a signature.`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case a.plan != "" || len(a.actions) > 0:
				return a.ofPlan(cmd, args)
			case len(args) == 0:
				f, err := a.connect(cmd.Context(), false)
				if err != nil {
					return err
				}
				defer f.Close()
				return listRequests(cmd, f, a.format)
			}
			return a.ofRequest(cmd, args)
		},
	}
	a.changing(cmd, "sign and ask for it")
	cmd.Flags().BoolVar(&a.reject, "reject", false, "say no: the device does not ask for the same again")
	cmd.Flags().BoolVar(&a.unsigned, "unsigned", false, "with --out: sign nothing here, the key is somewhere else")
	cmd.Flags().StringVar(&a.plan, "plan", "", "id of a plan, as continuo plan shows it, or its first digits, 8 or more: approve actions of it")
	cmd.Flags().StringSliceVar(&a.actions, "action", nil, "MANIFEST/SCORE of an action of the plan; may be given several times (default all that wait for a signature)")
	return cmd
}

// ofRequest answers one request.
func (a *approving) ofRequest(cmd *cobra.Command, args []string) error {
	if !isPlanID(args[0]) {
		return cli.Usagef("%q is no REQUEST: give its id, or the first 8 or more digits of it, as continuo requests shows them, or --plan with a DEVICE", args[0])
	}
	devices, err := parseDevices(args[1:])
	if err != nil {
		return err
	}
	f, err := a.connect(cmd.Context(), false)
	if err != nil {
		return err
	}
	defer f.Close()
	all, err := f.Requests(cmd.Context(), devices...)
	if err != nil {
		return err
	}
	q, err := all.Find(args[0])
	if err != nil {
		return fmt.Errorf("%w; continuo requests lists those that are open", err)
	}
	verb, words := interpret.VerbApprove, "let what request %s is about happen"
	if a.reject {
		verb, words = interpret.VerbReject, "end request %s, and not to ask for the same again"
	}
	if a.unsigned && a.out == "" {
		return cli.Usagef("--unsigned is for what is written to a file: give --out")
	}
	op := a.operation(q.Device, fleet.Answer(verb, q))
	if !a.confirm {
		return a.preview(cmd, preview{Operation: op, Request: &q}, fmt.Sprintf(words, q.ID), func() error { return show.Requests(cmd.OutOrStdout(), requestLines(q)) })
	}
	r, err := a.ask(cmd.Context(), f, q.Device, op)
	if err != nil {
		return err
	}
	return a.answer(cmd, q.Device, r)
}

// ofPlan approves actions of a plan.
func (a *approving) ofPlan(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || a.reject {
		return cli.Usagef("give one DEVICE with --plan, and no --reject: that is for a REQUEST")
	}
	d, err := theDevice(args)
	if err != nil {
		return err
	}
	if !isPlanID(a.plan) {
		return cli.Usagef("give --plan ID, the 64 digits that continuo plan %s ends with, or the first 8 or more of them", name(d))
	}
	f, err := a.connect(cmd.Context(), false)
	if err != nil {
		return err
	}
	defer f.Close()
	p, known, err := findPlan(cmd.Context(), f, d, a.plan)
	if err != nil {
		return err
	}
	if !known {
		return noPlan("approve", a.plan, d)
	}
	chosen, err := chooseActions(p, a.actions)
	if err != nil {
		return err
	}
	op := a.operation(d, interpret.Operation{Verb: interpret.VerbApprove, Plan: p.ID, Approvals: approvalsOf(chosen)})
	if !a.confirm {
		words := fmt.Sprintf("let %s of plan %s happen", show.Plural(len(chosen), "action"), p.ID)
		p.Actions, p.Truncated, p.Unchanged = chosen, 0, 0
		return a.preview(cmd, preview{Operation: op, Plan: &p}, words, func() error { return show.Actions(cmd.OutOrStdout(), chosen) })
	}
	r, err := a.ask(cmd.Context(), f, d, op)
	if err != nil {
		return err
	}
	return a.answer(cmd, d, r)
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
