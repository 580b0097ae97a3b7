package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

func newStatus() *cobra.Command {
	var s settings
	var format show.Format
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Compare this device with what it accepted last",
		Long: `status reads what the agent accepted last from its state directory, verifies it as the
agent does at its start, and compares it with the device as it is now. It needs no network
and no running agent, and changes nothing. What the agent tried and why it failed is in
its report (continuo status DEVICE) and in its log (journalctl -u continuo-agent).`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.read(cmd)
			if err != nil {
				return err
			}
			st, err := observe(cmd, c)
			if err != nil {
				return err
			}
			return showDevice(cmd, st, format)
		},
	}
	s.flags(cmd)
	format.Flag(cmd.Flags())
	return cmd
}

// observe compares the device with what was accepted last.
func observe(cmd *cobra.Command, c config.Config) (interpret.DeviceStatus, error) {
	st := interpret.DeviceStatus{APIVersion: score.APIVersion, Kind: interpret.StatusKind, Device: c.Device,
		Phase: interpret.PhaseIdle, State: interpret.StateNoIntent}
	l, err := lookAt(cmd, c)
	if err != nil {
		return st, err
	}
	defer l.close()
	for _, f := range l.rec.Findings {
		st.Problems = append(st.Problems, interpret.Problem{Code: agent.CodeRecovered, Message: f.String()})
	}
	in, err := l.accepted()
	if untrusted, ok := errors.AsType[*untrustedError](err); ok {
		st.Problems = append(st.Problems, interpret.Problem{Code: agent.CodeRecovered, Message: untrusted.Error()})
		return st, nil
	}
	if errors.Is(err, errNothingAccepted) {
		return st, nil
	}
	if err != nil {
		return st, err
	}
	now, err := l.runner.Observe(cmd.Context(), in)
	now.Device, now.Problems = st.Device, st.Problems
	if err == nil {
		l.runner.Unmanaged(cmd.Context(), l.dev.Containers(), in, &now)
	}
	return now, err
}

// showDevice shows the device as it is, below a line about what was accepted.
func showDevice(cmd *cobra.Command, st interpret.DeviceStatus, format show.Format) error {
	head := fmt.Sprintf("device %s, generation %d: %s\n", show.Text(st.Device), st.Generation, st.State)
	if st.State == interpret.StateNoIntent {
		head = fmt.Sprintf("device %s: nothing was accepted yet\n", show.Text(st.Device))
	}
	return showStatus(cmd, st, format, head)
}

// showStatus writes a status, for people below head, and turns what has not converged into
// the exit code.
func showStatus(cmd *cobra.Command, st interpret.DeviceStatus, format show.Format, head string) error {
	out := cmd.OutOrStdout()
	done, err := format.Write(out, st)
	if !done {
		_, err = fmt.Fprint(out, head)
		if err == nil {
			err = show.Scores(out, st)
		}
		if err == nil && st.State != interpret.StateNoIntent {
			_, err = fmt.Fprintln(out, show.Summary(st))
		}
	}
	if err != nil {
		return err
	}
	if st.State != interpret.StateConverged {
		return cli.ErrDiffers
	}
	return nil
}
