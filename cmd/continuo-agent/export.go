package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent/export"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

func newExport() *cobra.Command {
	var s settings
	var format show.Format
	var name string
	cmd := &cobra.Command{
		Use:   "export PATH|UNIT|container:NAME…",
		Short: "Write a manifest that says what is on this device",
		Long: `export reads files, directories, links, units and containers, whoever made them, and writes a
manifest that says exactly what is there: playing it here changes nothing. What they refer to comes
with them: where a link leads to; drop-ins, environment files, programs and credentials of a unit, and
units that it cannot be without; directories, networks and volumes of a container. The formats of other
programs are not read: name what they include as well.

Only configurations are exported, by their path, and only texts without secrets. What else is in a
directory refuses all of it, by name; copies, caches and what programs write while they run are left
out, and told of. A file that not everybody may read has to be named by itself. One file may have
1 MiB, all together 4,096 things and 16 MiB.

Everything was there at one time, or nothing is written. Exit status: 0 it is written, 1 it was
refused, 2 the command is wrong.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("name what to export: a PATH, a UNIT such as kiosk.service, or container:NAME")
			}
			return checkPaths(args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := s.look(cmd)
			if err != nil {
				return err
			}
			defer l.close()
			out, err := l.reader().Export(cmd.Context(), name, cmp.Or(l.config.Device, "device"), args)
			if err != nil {
				return tellRefusal(cmd, "nothing was exported", err)
			}
			for _, f := range out.Left {
				fmt.Fprintf(cmd.ErrOrStderr(), "left out: %s\n", f)
			}
			_, err = cmp.Or(format, show.YAML).Write(cmd.OutOrStdout(), out.Manifest)
			return err
		},
	}
	s.flags(cmd)
	format.Flag(cmd.Flags())
	cmd.Flags().Lookup("output").Usage = "format of the manifest: json or yaml (default yaml)"
	cmd.Flags().StringVar(&name, "name", "live", "name of the manifest")
	return cmd
}

// checkPaths wants paths that the device can be asked for.
func checkPaths(args []string) error {
	for _, a := range args {
		if p := strings.TrimPrefix(a, "file:"); strings.Contains(p, "/") && (!path.IsAbs(p) || path.Clean(p) != p) {
			return cli.Usagef("path %q must be absolute and clean: no '..', no '//' and no '/' at the end", p)
		}
	}
	return nil
}

// tellRefusal tells on stderr what refuses a reading.
func tellRefusal(cmd *cobra.Command, what string, err error) error {
	no, is := errors.AsType[*export.Refusal](err)
	if !is {
		return err
	}
	for _, f := range no.Findings {
		fmt.Fprintln(cmd.ErrOrStderr(), f)
	}
	return fmt.Errorf("%s: the device refused it", what)
}

// reader reads the device, with what its books and its ceiling say.
func (l *look) reader() *export.Reader {
	applied := map[topology.Mark]score.Score{}
	owners := map[score.Resource]export.Owner{}
	for _, e := range l.books.Entries() {
		var s score.Score
		if len(e.Spec) > 0 && score.Decode(e.Spec, &s) == nil {
			applied[mark(e.Manifest, e.Score)] = s
		}
	}
	for _, e := range l.books.Entries() {
		owners[score.Resource(e.Resource)] = export.Owner{Manifest: e.Manifest, Score: e.Score, Provenance: string(e.Provenance), Applied: applied[mark(e.Manifest, e.Score)]}
	}
	ceiling := l.config.Ceiling
	return &export.Reader{
		Files: l.dev.Snapshots(), Services: l.dev.Services(), Teller: interpret.TellerOf(l.dev),
		Owner:     func(r score.Resource) (export.Owner, bool) { o, owned := owners[r]; return o, owned },
		AsApplied: l.asApplied,
		Refuses: func(s score.Score) (string, bool) {
			if _, why, refused := ceiling.RefusesAdoption(s); refused {
				return why, true
			}
			_, why, refused := ceiling.Refuses(s)
			return why, refused
		},
	}
}

// asApplied looks whether what a score made is there as it was applied.
func (l *look) asApplied(ctx context.Context, o export.Owner) (why string, is bool) {
	rows, err := l.inventory(ctx)
	if err != nil {
		return err.Error(), false
	}
	for _, r := range rows {
		if r.Manifest == o.Manifest && r.Score == o.Score {
			return cmp.Or(r.Reason, "it is "+string(r.Now)), r.Now == asApplied
		}
	}
	return "the books do not name it", false
}

// files lists what is at paths.
func (l *look) files(cmd *cobra.Command, format show.Format, paths []string) error {
	for _, p := range paths {
		if !strings.HasPrefix(p, "/") {
			return cli.Usagef("%q is no absolute path", p)
		}
	}
	if err := checkPaths(paths); err != nil {
		return err
	}
	rows, err := l.reader().Inventory(cmd.Context(), paths)
	if err != nil {
		return tellRefusal(cmd, "nothing was listed", err)
	}
	if done, err := format.Write(cmd.OutOrStdout(), rows); done || err != nil {
		return err
	}
	t := show.NewTable("PATH", "CLASS", "SIZE", "DIGEST", "OWNER", "MODE", "SCORE")
	for _, e := range rows {
		digest := "-"
		switch {
		case e.SHA256 != "":
			digest = "sha256:" + e.SHA256[:12]
		case e.Fingerprint != "":
			digest = interpret.Keyed + e.Fingerprint[:12]
		case e.Target != "":
			digest = "→ " + e.Target
		case e.Type != topology.Regular:
			digest = string(e.Type)
		}
		score := "foreign"
		if e.Manifest != "" {
			score = e.Manifest + "/" + e.Score
		}
		t.Row(show.Text(e.Path), string(e.Class), fmt.Sprint(e.Size), show.Text(digest), e.Owner+":"+e.Group, e.Mode, score)
		if e.Note != "" {
			t.Note(e.Note)
		}
	}
	return t.Write(cmd.OutOrStdout())
}
