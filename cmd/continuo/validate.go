package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/schemas"
	"github.com/continuo-fleet/continuo/score"
)

func newValidate() *cobra.Command {
	var format show.Format
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check manifests, and show everything that is wrong with them",
		Long: `validate reads manifests, YAML or JSON, and shows everything that is wrong with them:
FILE:LINE:COLUMN: path: what is wrong. Files that they take contents from (contentFrom) are looked
at beside them. It needs no server. - is standard input.`,
		Args: cli.Files,
		RunE: func(cmd *cobra.Command, files []string) error {
			var b besides
			defer b.close()
			_, found, err := readManifests(cmd.Context(), files, cmd.InOrStdin(), &b)
			if err != nil {
				return err
			}
			bad := schemas.Errors(found)
			if done, err := format.Write(cmd.OutOrStdout(), validation{found, len(files), bad}); done || err != nil {
				if err == nil && bad > 0 {
					err = cli.ErrInvalid
				}
				return err
			}
			for _, d := range found {
				fmt.Fprintln(cmd.OutOrStdout(), d)
			}
			if bad > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s in %s\n", show.Plural(bad, "error"), show.Plural(len(files), "file"))
				return cli.ErrInvalid
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s, no error\n", show.Plural(len(files), "file"))
			return err
		},
	}
	format.Flag(cmd.Flags())
	return cmd
}

// A validation is what came of checking files.
type validation struct {
	Diagnostics []schemas.Diagnostic `json:"diagnostics"`
	Files       int                  `json:"files"`
	Errors      int                  `json:"errors"`
}

// readManifests reads all files and gives everything that is wrong with them. What they take
// contents from goes to b. The error is about files that cannot be read at all.
func readManifests(ctx context.Context, files []string, stdin io.Reader, b *besides) ([]score.Manifest, []schemas.Diagnostic, error) {
	var all []score.Manifest
	found := []schemas.Diagnostic{}
	from := map[string]string{}
	for _, file := range files {
		data, err := cli.ReadInput(ctx, file, stdin)
		if err != nil {
			return nil, nil, &cli.UsageError{Err: err}
		}
		name := cli.InputName(file)
		m, ds := schemas.ValidateWith(name, data, b.resolver(file))
		found = append(found, ds...)
		if schemas.Errors(ds) > 0 {
			continue
		}
		key := m.Metadata.Name + " for " + m.Spec.Target.Device
		if first, dup := from[key]; dup {
			found = append(found, schemas.Diagnostic{File: name, Line: 1, Column: 1, Path: "/metadata/name", Severity: score.Error,
				Text: fmt.Sprintf("manifest %q for the same target is in %s too: one of them would replace the other", m.Metadata.Name, first)})
			continue
		}
		from[key] = name
		all = append(all, m)
	}
	return all, found, nil
}
