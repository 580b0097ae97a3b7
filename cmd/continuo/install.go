package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
)

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
			if !isPlanID(plan) {
				return cli.Usagef("give --plan ID, the 64 digits that continuo plan %s ends with, or the first 8 or more of them", name(d))
			}
			f, err := a.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer f.Close()
			var p interpret.Plan
			known := false
			if !a.confirm || len(plan) < planDigits {
				if p, known, err = findPlan(cmd.Context(), f, d, plan); err != nil {
					return err
				}
			}
			switch {
			case known:
				plan = p.ID
			case len(plan) < planDigits:
				return noPlan("install", plan, d)
			}
			op := a.operation(d, interpret.Operation{Verb: interpret.VerbInstall, Plan: plan})
			if !a.confirm {
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
	cmd.Flags().StringVar(&plan, "plan", "", "id of the plan, as continuo plan shows it, or its first digits, 8 or more (required)")
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
