package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/standard"
	"github.com/continuo-fleet/continuo/score"
)

// A kindRow says whether a kind can be had on this device.
type kindRow struct {
	// Kind of score.
	Kind score.Kind `json:"kind"`
	// Needs are the capabilities that a device must have.
	Needs []score.Capability `json:"needs"`
	// Available says whether this device has them.
	Available bool `json:"available"`
	// Reason why not.
	Reason string `json:"reason,omitempty"`
	// Doc says what the kind is.
	Doc string `json:"doc"`
}

func newKinds() *cobra.Command {
	var s settings
	var format show.Format
	cmd := &cobra.Command{
		Use:   "kinds",
		Short: "List the kinds of scores, and whether this device can have them",
		Long: `kinds lists every kind of score that this agent knows, with what a device must have for it, and looks
whether this device has it, and whether the ceiling in its configuration lets it be played. It needs
no network and no running agent, and changes nothing.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.optional(cmd)
			if err != nil {
				return err
			}
			dev, err := openMachine(cmd.Context(), c, nil, true)
			if err != nil {
				return err
			}
			defer dev.Close()
			rows := kinds(cmd.Context(), standard.Bind(dev), c.Ceiling)
			if done, err := format.Write(cmd.OutOrStdout(), rows); done || err != nil {
				return err
			}
			t := show.NewTable("KIND", "NEEDS", "AVAILABLE", "WHAT")
			for _, r := range rows {
				available := "yes"
				if !r.Available {
					available = "no"
				}
				t.Row(string(r.Kind), join(r.Needs), available, r.Doc)
				if !r.Available {
					t.Note(show.Text(r.Reason))
				}
			}
			return t.Write(cmd.OutOrStdout())
		},
	}
	s.flags(cmd)
	format.Flag(cmd.Flags())
	return cmd
}

// kinds looks at the sample of every kind that the ceiling allows: what the device lacks says so itself.
func kinds(ctx context.Context, table *interpret.Table, ceiling authority.Ceiling) []kindRow {
	bound := table.Kinds()
	var rows []kindRow
	for _, k := range score.Kinds() {
		r := kindRow{Kind: k.Kind, Needs: k.Needs, Doc: k.Doc}
		if why, refused := ceiling.RefusesKind(k.Kind); refused {
			r.Reason = why
		} else if slices.Contains(bound, k.Kind) {
			st := table.Observe(ctx, interpret.Wish{Score: score.Score{ID: "sample", Spec: k.Sample}})
			r.Available = st.Outcome != interpret.Unsupported && st.Outcome != interpret.Failed
			if !r.Available {
				r.Reason = strings.TrimPrefix(st.Message, "cannot observe: ")
			}
		} else {
			r.Reason = "this agent has no interpreter for it"
		}
		rows = append(rows, r)
	}
	return rows
}

func join(cs []score.Capability) string {
	s := make([]string, len(cs))
	for i, c := range cs {
		s[i] = string(c)
	}
	return strings.Join(s, ", ")
}
