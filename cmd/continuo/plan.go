package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
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
			root, err := a.followed(ctx, f, a.key)
			if err != nil {
				return err
			}
			p, err := f.Plan(ctx, d, a.who(), fleet.OperateOptions{Signer: signer, Root: root})
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
	return a.Decision == interpret.DecidePending && (a.Code == interpret.CodeSignature || a.Code == interpret.CodeBrake)
}

// planDigits is how long the id of a plan is.
const planDigits = 64

// isPlanID tells whether s may be the id of a plan, or how one begins.
func isPlanID(s string) bool {
	return len(s) >= 8 && len(s) <= planDigits && strings.Trim(s, "0123456789abcdef") == ""
}

// findPlan finds the plan that the device answered with whose id begins so. Only the device can tell
// whether it is that of now.
func findPlan(ctx context.Context, f *fleet.Fleet, d fleet.Device, id string) (p interpret.Plan, known bool, err error) {
	all, err := f.Receipts(ctx, d, 0)
	if err != nil {
		return p, false, err
	}
	return planOf(all, id)
}

func planOf(receipts []interpret.Receipt, id string) (p interpret.Plan, known bool, err error) {
	for _, r := range receipts {
		switch {
		case r.Plan == nil || !strings.HasPrefix(r.Plan.ID, id):
		case known && p.ID != r.Plan.ID:
			return p, false, fmt.Errorf("cannot tell which plan is meant: %s and %s begin with %s; give more digits", show.Text(p.ID), show.Text(r.Plan.ID), id)
		default:
			p, known = *r.Plan, true
		}
	}
	return p, known, nil
}

func noPlan(verb, id string, d fleet.Device) error {
	return fmt.Errorf("cannot %s plan %s: the fleet knows no such plan of %s; ask for one: continuo plan %[3]s", verb, id, name(d))
}
