package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/interpret"
)

func newPlan() *cobra.Command {
	var o once
	cmd := &cobra.Command{
		Use:   "plan [-f FILE]",
		Short: "Show what would be changed on this device, and change nothing",
		Long: `plan compares a manifest with this device and shows every field that differs, what would be
restarted and removed, and what the policy of the manifest says to each action. Without -f it
is about what the agent accepted last. It reads only: a running agent is not disturbed.
Whom a manifest is for is not checked.

CAUSE is why it would be done: intent (the manifest is new), drift (the device was changed),
dependency (a score that restarts it has changed), secret (one that it uses has another value), absent (nothing names it any more), explicit
(decommission: true), rollback.
EFFECT is the worst that it does: create, mutate, disrupt, remove, or destroy, which cannot be
undone.
DECISION says what happens to it: apply (with the authority that covers it), pending (a person
has to say yes, or it is not the time), report (it is said, and stays), or refuse. To say yes:
continuo install or continuo approve from anywhere, continuo-agent apply -f FILE --confirm here.

Exit status: 0 nothing differs, 1 something does, 2 the command or its input is wrong.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := o.plan(cmd)
			if err != nil {
				return err
			}
			err = writePlan(cmd, p, o.format)
			if err == nil && p.Differs() {
				err = cli.ErrDiffers
			}
			return err
		},
	}
	o.flags(cmd, "manifest to compare with, YAML or JSON; - is standard input (default what the agent accepted last)")
	return cmd
}

// plan computes the plan on a copy of the books, so that nothing at all is written.
func (o *once) plan(cmd *cobra.Command) (interpret.Plan, error) {
	c, in, err := o.input(cmd)
	if err != nil {
		return interpret.Plan{}, err
	}
	l, err := lookAt(cmd, c)
	if err != nil {
		return interpret.Plan{}, err
	}
	defer l.close()
	l.tell(cmd)
	if in == nil {
		accepted, err := l.accepted()
		if err != nil {
			return interpret.Plan{}, fmt.Errorf("cannot plan: %w", err)
		}
		in = &accepted
	}
	return planOf(cmd.Context(), l, *in)
}

func planOf(ctx context.Context, l *look, in agent.Intent) (interpret.Plan, error) {
	p, err := l.runner.Plan(ctx, in)
	if p.Device == "" {
		p.Device = l.config.Device
	}
	return p, err
}

func writePlan(cmd *cobra.Command, p interpret.Plan, format show.Format) error {
	done, err := format.Write(cmd.OutOrStdout(), p)
	if !done {
		err = show.Plan(cmd.OutOrStdout(), p)
	}
	return err
}
