package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

func newPlan() *cobra.Command {
	var a asking
	cmd := &cobra.Command{
		Use:   "plan DEVICE",
		Short: "Ask a device what it would do now, and what of it is allowed",
		Long: `plan asks a device to compare itself with what is published for it. The device answers with a
plan: every action, every field that differs, what would be restarted and removed, and what the
policies say. Nothing is changed by it.

CAUSE is why it would be done: intent (the manifest is new), drift (the device was changed),
dependency (a score that restarts it has changed), absent (nothing names it any more), explicit
(decommission: true), rollback.
EFFECT is the worst that it does: create, mutate, disrupt, remove, or destroy, which cannot be
undone.
DECISION is what the device does about it by itself, and why:
  apply    it does it: an authority covers it
  pending  it waits: for continuo install, for a signature (continuo approve), or for its time
  report   it says so, and leaves it; install corrects drift, approve removes what is left over
  refuse   it will not; what is foreign, because somebody else made it, is taken over by
           continuo adopt, or overwritten after a backup by continuo install
The id at the end stands for exactly this plan. On stderr stands what to do with it.

Exit status: 0 nothing differs, 1 something does or the device did not answer, 2 wrong usage.`,
		Args: oneDevice(0, 0, "one DEVICE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := theDevice(args)
			if err != nil {
				return err
			}
			signer, err := a.signing(a.key)
			if err != nil {
				return err
			}
			f, err := a.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer f.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), a.timeout)
			defer cancel()
			p, err := f.Plan(ctx, d, a.who(), fleet.OperateOptions{Signer: signer})
			if errors.Is(err, context.DeadlineExceeded) {
				return errors.New(a.silence(cmd.Context(), f, d))
			}
			if err != nil {
				return err
			}
			done, err := a.format.Write(cmd.OutOrStdout(), p)
			if !done {
				if err = show.Plan(cmd.OutOrStdout(), p); err == nil {
					next(cmd.ErrOrStderr(), name(d), p)
				}
			}
			if err == nil && p.Differs() {
				err = cli.ErrDiffers
			}
			return err
		},
	}
	a.flags(cmd)
	return cmd
}

// next says which commands consent to p, or to actions of it.
func next(w io.Writer, device string, p interpret.Plan) {
	if slices.ContainsFunc(p.Actions, confirmable) {
		fmt.Fprintf(w, "to confirm it: continuo install %s --plan %s --confirm\n", device, p.ID)
	}
	if slices.ContainsFunc(p.Actions, signable) {
		fmt.Fprintf(w, "to approve what waits for a signature: continuo approve %s --plan %s --confirm\n", device, p.ID)
	}
	if left := namesOf(p, leftOver); len(left) > 0 {
		fmt.Fprintf(w, "to let what is left over be removed: continuo approve %s --plan %s --action %s --confirm\n", device, p.ID, strings.Join(left, ","))
	}
}

// leftOver tells whether an action removes what is no longer named, and only an approval lets it.
func leftOver(a interpret.PlannedAction) bool {
	return a.Decision == interpret.DecideReport && a.Code == interpret.CodeOrphaned
}

// namesOf are MANIFEST/SCORE of some actions of a plan.
func namesOf(p interpret.Plan, which func(interpret.PlannedAction) bool) (names []string) {
	for _, a := range p.Actions {
		if which(a) {
			names = append(names, show.Text(a.Manifest+"/"+string(a.Score)))
		}
	}
	return names
}

// confirmable tells whether an action waits for a plan to be confirmed.
func confirmable(a interpret.PlannedAction) bool {
	switch {
	case a.Decision == interpret.DecidePending:
		return a.Code == interpret.CodeConfirm || a.Code == interpret.CodeWindow
	case a.Decision == interpret.DecideReport:
		return a.Cause == interpret.CauseDrift && a.Code == interpret.CodePolicy
	}
	return a.Code == authority.CodeForeign && a.Cause != interpret.CauseAbsent && a.Cause != interpret.CauseExplicit
}

// installable tells whether an action is done when its plan is confirmed.
func installable(a interpret.PlannedAction) bool {
	return a.Decision == interpret.DecideApply || confirmable(a)
}

// signable tells whether an action waits for a signed approval.
func signable(a interpret.PlannedAction) bool {
	return a.Decision == interpret.DecidePending && (a.Code == interpret.CodeSignature || a.Code == authority.CodeBrake)
}

func newInstall() *cobra.Command {
	var a asking
	var plan string
	cmd := &cobra.Command{
		Use:   "install DEVICE --plan ID --confirm",
		Short: "Let a device do exactly one plan",
		Long: `install confirms a plan (continuo plan DEVICE): the device does exactly that, whatever its
policies would wait for, and answers with a receipt. Foreign content is overwritten after a
backup; data is never destroyed by it (continuo approve is for that). If anything is not as it was
when the plan was made, the device does nothing and answers with the plan of now.
Without --confirm it only shows what it would ask for, and ends with 0.`,
		Args: oneDevice(0, 0, "one DEVICE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := theDevice(args)
			if err != nil {
				return err
			}
			if !isDigest(plan) {
				return cli.Usagef("give --plan ID, the 64 digits that continuo plan %s ends with", name(d))
			}
			f, err := a.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer f.Close()
			op := a.operation(d, interpret.Operation{Verb: interpret.VerbInstall, Plan: plan})
			if !a.confirm {
				p, known, err := findPlan(cmd.Context(), f, d, plan)
				if err != nil {
					return err
				}
				what := preview{Operation: op}
				if known {
					what.Plan = &p
				}
				return a.preview(cmd, what, "do exactly the plan "+plan, func() error {
					if !known {
						_, err := fmt.Fprintln(cmd.OutOrStdout(), "the fleet knows no such plan of this device: it would be refused, unless the device happens to make the same one now")
						return err
					}
					if err := show.Plan(cmd.OutOrStdout(), p); err != nil {
						return err
					}
					return installs(cmd, f, d, p)
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
	cmd.Flags().StringVar(&plan, "plan", "", "id of the plan, as continuo plan shows it (required)")
	return cmd
}

// installs says what of p would be done, and whether it can be the plan of now.
func installs(cmd *cobra.Command, f *fleet.Fleet, d fleet.Device, p interpret.Plan) error {
	states, err := f.Status(cmd.Context(), d)
	if err != nil {
		return err
	}
	if now := states[0].Desired; now != p.Generation {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "it would be refused: the plan is for generation %d, and %d is published; ask for a new one: continuo plan %s\n", p.Generation, now, name(d))
		return err
	}
	left := namesOf(p, func(a interpret.PlannedAction) bool { return !installable(a) })
	what := "every action of it is done then"
	switch {
	case len(p.Actions) == 0:
		return nil
	case len(left) == len(p.Actions):
		what = "none of it is done by that"
	case len(left) > 0:
		what = "every action of it is done then, but not " + strings.Join(left, ", ")
	}
	at := ""
	if !p.Time.IsZero() {
		at = " since " + p.Time.UTC().Format(time.RFC3339)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s; all of it is refused if anything has changed%s\n", what, at)
	return err
}

// findPlan finds a plan that the device answered with.
func findPlan(ctx context.Context, f *fleet.Fleet, d fleet.Device, id string) (interpret.Plan, bool, error) {
	all, err := f.Receipts(ctx, d, 0)
	if err != nil {
		return interpret.Plan{}, false, err
	}
	for _, r := range all {
		if r.Plan != nil && r.Plan.ID == id {
			return *r.Plan, true, nil
		}
	}
	return interpret.Plan{}, false, nil
}

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
			if !isDigest(plan) {
				return cli.Usagef("give --plan ID, the 64 digits that continuo plan %s ends with", name(d))
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
				return fmt.Errorf("cannot approve plan %s: the fleet knows no such plan of %s; ask for one: continuo plan %[2]s", plan, name(d))
			}
			chosen, err := chooseActions(p, actions)
			if err != nil {
				return err
			}
			op := a.operation(d, interpret.Operation{Verb: interpret.VerbApprove, Plan: plan, Approvals: approvalsOf(chosen)})
			if !a.confirm {
				words := fmt.Sprintf("let %s of plan %s happen", show.Plural(len(chosen), "action"), plan)
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
	cmd.Flags().StringVar(&plan, "plan", "", "id of the plan, as continuo plan shows it (required)")
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
		out = append(out, interpret.Approval{Manifest: a.Manifest, Score: a.Score, Action: a.Action,
			Resources: append([]score.Resource{}, a.Resources...), SpecDigest: a.SpecDigest})
	}
	return out
}
