package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/standard"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/pi"
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
	var root string
	var format show.Format
	cmd := &cobra.Command{
		Use:   "kinds",
		Short: "List the kinds of scores, and whether this device can have them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dev, err := pi.Open(cmd.Context(), pi.Options{Root: root})
			if err != nil {
				return err
			}
			defer dev.Close()
			rows := kinds(cmd.Context(), standard.Bind(dev))
			if done, err := format.Write(cmd.OutOrStdout(), rows); done || err != nil {
				return err
			}
			tw := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tw, "KIND\tNEEDS\tAVAILABLE\tWHAT")
			for _, r := range rows {
				fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", r.Kind, join(r.Needs), available(r), r.Doc)
			}
			return tw.Flush()
		},
	}
	cmd.Flags().StringVar(&root, "root", "", "ask for a directory that all paths are below")
	format.Flag(cmd.Flags())
	return cmd
}

// kinds looks at the sample of every kind: what the device lacks says so itself.
func kinds(ctx context.Context, table *interpret.Table) []kindRow {
	bound := table.Kinds()
	var rows []kindRow
	for _, k := range score.Kinds() {
		r := kindRow{Kind: k.Kind, Needs: k.Needs, Doc: k.Doc}
		if slices.Contains(bound, k.Kind) {
			st := table.Observe(ctx, interpret.Wish{Score: score.Score{ID: "sample", Spec: k.Sample}})
			r.Available = st.Outcome != interpret.Unsupported
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

func available(r kindRow) string {
	if r.Available {
		return "yes"
	}
	return "no: " + show.Text(r.Reason)
}

func join(cs []score.Capability) string {
	s := make([]string, len(cs))
	for i, c := range cs {
		s[i] = string(c)
	}
	return strings.Join(s, ", ")
}
