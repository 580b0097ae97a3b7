package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/schemas"
	"github.com/continuo-fleet/continuo/score"
)

func newExplain() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [KIND[.FIELD]]",
		Short: "Tell what a kind of score or a field means",
		Long: `explain tells what a kind of score is and which fields it has, or what one field means.
Documents are explained too: manifest.spec.target. Without an argument it lists both.`,
		Example: "  continuo explain file\n  continuo explain container.ports\n  continuo explain manifest.spec.target",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("name one KIND or KIND.FIELD, or none for a list")
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			names := schemas.Names()
			for _, k := range score.Kinds() {
				names = append(names, string(k.Kind))
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				width := 0
				for _, k := range score.Kinds() {
					width = max(width, len(k.Kind))
				}
				for _, k := range score.Kinds() {
					fmt.Fprintf(cmd.OutOrStdout(), "%-*s  %s\n", width, k.Kind, k.Doc)
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "\nFields: continuo explain file, continuo explain file.mode\nDocuments: %s\n", strings.Join(schemas.Names(), ", "))
				return err
			}
			text, err := schemas.Explain(args[0])
			if err != nil {
				return &cli.UsageError{Err: err}
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), strings.TrimRight(text, "\n"))
			return err
		},
	}
}
